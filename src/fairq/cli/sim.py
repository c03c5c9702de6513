"""`fairq sim`: run schedulers on a layer. Each layer's command is in a file of its own."""

import typer

from fairq.cli import sim_cluster, sim_cpu, sim_engine, sim_fleet, sim_link, sim_router

app = typer.Typer(add_completion=False, rich_markup_mode="markdown", help="Run schedulers on a layer.")


@app.callback()
def sim() -> None:
    """Run schedulers on a layer, several side by side on identical arrivals."""


app.command("cpu", epilog=sim_cpu.EXAMPLES)(sim_cpu.cpu)
app.command("cluster", epilog=sim_cluster.EXAMPLES)(sim_cluster.cluster)
app.command("engine", epilog=sim_engine.EXAMPLES)(sim_engine.engine)
app.command("fleet", epilog=sim_fleet.EXAMPLES)(sim_fleet.fleet)
app.command("link", epilog=sim_link.EXAMPLES)(sim_link.link)
app.command("router", epilog=sim_router.EXAMPLES)(sim_router.router)
