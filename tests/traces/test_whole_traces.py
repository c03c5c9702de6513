"""The whole recorded traces, against what their publishers and independent counts say of them."""

from pathlib import Path

import pytest

from fairq.traces import Description, Trace, TraceError, describe

DATA = Path(__file__).parents[2] / "data"


def described(name: str) -> Description:
    found = describe(Trace(DATA / name))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "requests", "hit_ratio", "unique"),
    [
        ("mooncake_conversation.jsonl.xz", 12_031, 0.3664, 182_790),
        ("mooncake_synthetic.jsonl.xz", 3_993, 0.6396, 43_924),
        ("sharegpt.jsonl", 300, 0.0765, None),
    ],
)
def test_a_cache_without_limit_hits_the_known_share(
    name: str, requests: int, hit_ratio: float, unique: int | None
) -> None:
    found = described(name)
    assert found.blocks is not None
    assert (found.requests, round(found.blocks.hit_ratio, 4)) == (requests, hit_ratio)
    assert unique is None or found.blocks.unique == unique


@pytest.mark.parametrize(
    ("name", "requests", "span", "cv", "context", "generated"),
    [
        ("azure_code.csv.xz", 8_819, 3435.95, 13.15, (3, 2047.85, 1469, 7437), (6, 27.88, 13, 1899)),
        ("azure_conv.csv.xz", 19_366, 3501.72, 1.094, (2, 1154.70, 1020, 14050), (7, 211.13, 129, 1000)),
    ],
)
def test_azures_day_has_its_published_shape(
    name: str,
    requests: int,
    span: float,
    cv: float,
    context: tuple[float, ...],
    generated: tuple[float, ...],
) -> None:
    found = described(name)
    assert found.requests == requests
    assert found.span == pytest.approx(span, abs=0.005)
    assert found.cv == pytest.approx(cv, rel=5e-4)
    for spread, published in ((found.input_tokens, context), (found.output_tokens, generated)):
        assert (spread.min, spread.mean, spread.p50, spread.max) == pytest.approx(published, abs=0.005)


@pytest.mark.parametrize(("limit", "served"), [(5, 581), (10, 900), (15, 1053), (20, 1158), (30, 1324)])
def test_the_authors_rate_limits_served_as_many_as_they_say(limit: int, served: int) -> None:
    found = described(f"vtc/LShare_rpm{limit}__real.csv")
    assert found.measured is not None
    assert (found.requests, found.requests - found.measured.refused) == (1500, served)


@pytest.mark.parametrize(
    ("name", "ttft", "makespan"),
    [
        ("RTX4090", (65.46, 60.16, 137.8), 183.57),
        ("RTXPRO6000", (7.097, 9.498, 19.865), 65.93),
    ],
)
def test_vllms_times_are_those_published(name: str, ttft: tuple[float, ...], makespan: float) -> None:
    requests = list(Trace(DATA / f"vllm/{name}_Llama-3.1-8B.csv"))
    waits = sorted(one.measured.ttft or 0 for one in requests if one.measured)
    assert (sum(waits) / 300, waits[150], waits[297]) == pytest.approx(ttft, rel=5e-4)
    ends = [one.measured.queued + (one.measured.latency or 0) for one in requests if one.measured]
    assert max(ends) == pytest.approx(makespan, abs=0.005)


def test_a_cut_off_compressed_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl.xz"
    path.write_bytes((DATA / "mooncake_synthetic.jsonl.xz").read_bytes()[:30_000])
    with pytest.raises(TraceError, match=r"cut\.jsonl\.xz: is not a whole \.xz file"):
        list(Trace(path))
