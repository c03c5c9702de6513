"""What `fairq sim engine` prints for people."""

from typer.testing import CliRunner

from fairq.cli.sim import app


def test_requests_that_can_never_fit_are_told_of() -> None:
    """A cache of 100 blocks of one token: 90 and 10 fit, 90 and 11 do not."""
    line = ["engine", "--pool-tokens", "100", "--reserve", "limit", "--policy", "vtc", "--request", "A:0:90:10"]
    assert "turned away" not in CliRunner().invoke(app, line).output
    told = CliRunner().invoke(app, [*line, "--request", "B:0:90:11:count=2"]).output
    assert "vtc: 2 turned away: the engine holds 100 tokens of prompt and answer" in told
