"""What a trace says is what the policy said, and storing it loses nothing."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq.core.job import Job
from fairq.core.policy import ROOMY, Layer, Pick, Why
from fairq.policies.sfq import SFQ
from fairq.sim.trace import KEYFRAME, Frame, Step, Tape, Trace, difference, patched, stored


def fresh() -> SFQ:
    policy = SFQ()
    policy.bind(Layer(name="test"))
    return policy


def recorded(rounds: int) -> tuple[Tape, list[dict[str, object]]]:
    """Two flows served in turn; the tape, and the policy's own `show()` at every step."""
    tape, shown = Tape(fresh()), []
    for n in range(rounds):
        tape.arrive(Job(id=f"a{n}", flow="A", seq=2 * n, size=3), n)
        tape.arrive(Job(id=f"b{n}", flow="B", seq=2 * n + 1, size=1), n)
        decision = tape.select(n, ROOMY)
        assert isinstance(decision, Pick)
        tape.commit(decision, n)
        tape.charge(decision.job, decision.job.size or 0, n)
        tape.step(n, "dispatch", decision.why, flow=decision.job.flow)
        shown.append(dict(tape.show()))
    return tape, shown


def test_playing_a_tape_shows_what_the_policy_showed() -> None:
    tape, shown = recorded(20)
    steps = list(tape.play(fresh))
    assert [step.show for step in steps] == shown
    assert steps[0] == Step(
        time=0,
        kind="dispatch",
        what={"flow": "A"},
        why=Why("least-meter", {"meter": 0, "virtual_time": 0}),
        queues={"B": ["b0"]},
        running=["a0"],
        remaining={"a0": 0, "b0": 1},
        show={"virtual_time": 0, "meters": {"A": 3, "B": 0}},
    )


def test_a_stored_trace_gives_every_step_back() -> None:
    tape, _ = recorded(3 * KEYFRAME)
    steps = list(tape.play(fresh))
    trace = Trace(layer="test", scenario={}, policy="sfq", params={}, frames=list(stored(iter(steps))))
    again = msgspec.json.decode(msgspec.json.encode(trace), type=Trace)
    assert list(again.steps()) == steps
    for index in (0, 1, KEYFRAME - 1, KEYFRAME, KEYFRAME + 1, -1):
        assert again.at(index) == steps[index]
    with pytest.raises(IndexError):
        again.at(len(steps))


def test_a_frame_holds_only_what_its_step_touched() -> None:
    before = Step(time=0, kind="x", show={"meters": {f"flow{n}": n for n in range(1000)}})
    after = Step(time=1, kind="x", show={"meters": before.show["meters"] | {"flow7": 99}})
    assert list(stored(iter([before, after])))[1] == Frame(time=1, kind="x", patch={"show": {"meters": {"flow7": 99}}})


values = st.recursive(
    st.integers() | st.text(max_size=2), lambda inner: st.dictionaries(st.text(max_size=2), inner, max_size=4)
)


@given(st.dictionaries(st.text(max_size=2), values), st.dictionaries(st.text(max_size=2), values))
@settings(max_examples=50, deadline=None)
def test_a_patch_turns_the_old_into_the_new(old: dict[str, object], new: dict[str, object]) -> None:
    assert patched(old, difference(old, new)) == new
