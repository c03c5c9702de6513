"""The status page: plain tables that need no script. Where the built page is there, its dashboard takes their place;
else status.js fetches them again and again."""

import time
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from fairq.console.views import PoolView, State, TenantView
from fairq.core.commands import Dispatch
from fairq.lab.bundle import NotBuilt, head
from fairq.ledger.words import reason

SHOWN_DECISIONS = 15


def page(state: State, decisions: Mapping[str, Sequence[Dispatch]]) -> str:
    """`decisions`: of each pool, oldest first. Everything that comes from outside is escaped."""
    parts = [_link(state), *(_pool(pool, decisions.get(pool.name, ())) for pool in state.pools)]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>fairq</title>\n'
        '<noscript><link rel="stylesheet" href="/static/status.css">'
        '<meta http-equiv="refresh" content="5"></noscript>\n'
        f'{_script()}</head>\n<body data-live>\n<div id="app"></div>\n<div id="plain">\n<h1>fairq</h1>\n<main>\n'
        + "\n".join(parts)
        + '\n</main>\n<footer><a href="/metrics">metrics</a> <a href="/api/state">state</a> '
        '<a href="/api/openapi.json">API</a></footer>\n</div>\n</body>\n</html>\n'
    )


def _script() -> str:
    try:
        return head()
    except NotBuilt:
        return (
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<link rel="stylesheet" href="/static/status.css">\n<script src="/static/status.js" defer></script>\n'
        )


def _link(state: State) -> str:
    since = _clock(state.since)
    if state.connected:
        complaint = f'<p class="bad">{escape(state.complaint)}.</p>' if state.complaint else ""
        return f"<p>Connected since {since}.</p>{complaint}"
    return f'<p class="bad">Disconnected since {since}: {escape(state.complaint)}. This is how it was then.</p>'


def _pool(pool: PoolView, decisions: Sequence[Dispatch]) -> str:
    bounds = pool.bounds
    margin = "none measured" if bounds.worst_margin is None else f"{bounds.worst_margin:,.1f}"
    audit = (
        f"Every promise held for {bounds.decisions:,} decisions; least margin of V &le; M &le; V + q: {margin}."
        if bounds.held
        else f'<strong class="bad">{bounds.violations:,} violations in {bounds.decisions:,} decisions.</strong>'
    )
    jain = pool.fairness.jain_minute
    shared = "" if jain is None else f" Jain's index of share / fair share, last minute: {jain:.4f}."
    return "\n".join(
        (
            f"<h2>{escape(pool.name)}: {escape(pool.policy)}, {escape(pool.settlement)}</h2>",
            f"<p>Since {_clock(pool.since)}. {pool.waiting:,} wait, {pool.inflight:,} of {pool.slots:,} slots taken, "
            f"virtual time {pool.virtual_time:,.0f}. {audit}{shared}</p>",
            _table(
                "Tenants",
                "tenant,state,weight,share of the last minute,fair,entitled if all were backlogged,waiting,running,"
                "charged,actual,meter ahead,ended",
                map(_tenant, pool.tenants),
            ),
            f"<p>{pool.more_tenants:,} more tenants.</p>" if pool.more_tenants else "",
            _table(
                "Upstreams",
                "upstream,slots,running,state,queue inside",
                (
                    (
                        upstream.name,
                        upstream.slots,
                        upstream.inflight,
                        "draining" if upstream.draining else "up" if upstream.healthy else "down",
                        "unknown" if upstream.queue is None else f"{upstream.queue:g}",
                    )
                    for upstream in pool.upstreams
                ),
            ),
            _table("Outcomes", "outcome,requests", pool.outcomes.items()),
            _table(
                "Last decisions",
                "event,request,tenant,upstream,charge,why",
                (
                    (each.seq, each.id, each.tenant, each.upstream, each.charge, reason(each.why))
                    for each in list(decisions)[: -SHOWN_DECISIONS - 1 : -1]
                ),
            ),
        )
    )


def _tenant(tenant: TenantView) -> tuple[object, ...]:
    return (
        tenant.id,
        tenant.standing.value,
        tenant.weight or "",
        _percent(tenant.share),
        _percent(tenant.fair),
        _percent(tenant.entitled),
        tenant.waiting,
        tenant.inflight,
        tenant.charged,
        tenant.actual,
        "" if tenant.lead is None else f"{tenant.lead:,.0f}",
        sum(tenant.outcomes.values()),
    )


def _clock(wall: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(wall))


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _table(caption: str, columns: str, rows: Iterable[Sequence[object]]) -> str:
    body = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    head = "".join(f'<th scope="col">{column}</th>' for column in columns.split(","))
    if not body:
        body = f'<tr><td colspan="{columns.count(",") + 1}">none yet</td></tr>'
    return f"<table>\n<caption>{caption}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f'<td class="number">{value:,}</td>'
    return f"<td>{escape(str(value))}</td>"
