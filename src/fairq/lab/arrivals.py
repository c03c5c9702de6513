"""Link steps as the lab shows them: packets that arrive at one moment are one step."""

from msgspec.structs import replace

from fairq.sim.trace import Step


def together(steps: list[Step]) -> list[Step]:
    """`what` of an arrival has `packets`, all of that moment; how things stand is as after the last of them."""
    found: list[Step] = []
    for step in steps:
        if step.kind != "arrive":
            found.append(step)
            continue
        packets = [step.what["packet"]]
        if found and found[-1].kind == "arrive" and found[-1].time == step.time:
            packets = [*found.pop().what["packets"], *packets]
        found.append(replace(step, what={"packets": packets}))
    return found
