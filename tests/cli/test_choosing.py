"""`fairq policies` and `fairq choose`: the ten situations of the article, and what each policy says of itself."""

import json
import re
import shlex
from itertools import product
from pathlib import Path

import pytest
from tests.cli.program import fairq

from fairq.cli.advice import Advice, advise
from fairq.cli.choose import ask, told
from fairq.cli.questions import OF_LAYER, QUESTIONS, settled
from fairq.core.policy import Need
from fairq.policies import ALIASES, POLICIES
from fairq.sim.catalogue import TRIES, Entry, entries, entry, provided
from fairq.sim.scenario import LAYERS

TABLE = (Path(__file__).parents[2] / "docs" / "choosing.md").read_text()

SITUATIONS = [
    (1, "--layer cpu --objective completion --sizes exact", ["srtf", "sjf"]),
    (2, "--layer cpu --objective response", ["rr", "mlfq"]),
    (3, "--layer cpu --objective deadlines", ["edf", "rm"]),
    (4, "--layer cpu --objective share", ["stride", "cfs", "eevdf"]),
    (5, "--layer link --objective share", ["drr", "sfq", "wf2q"]),
    (6, "--layer cluster --objective share", ["drf"]),
    (7, "--layer router --objective share", ["sfq"]),
    (8, "--layer engine --objective share", ["vtc"]),
    (9, "--layer engine --objective share --locality yes", ["dlpm", "d2lpm"]),
    (10, "--layer engine --objective slo", ["equinox"]),
]


@pytest.mark.parametrize(("row", "options", "policies"), SITUATIONS, ids=lambda value: str(value)[:40])
def test_the_ten_situations(row: int, options: str, policies: list[str]) -> None:
    said = fairq("choose", *options.split(), "--json")
    assert (said.status, said.err) == (0, "")
    first = said.json["recommended"][0]
    assert (first["row"], first["policies"]) == (row, policies)
    assert first["why"]
    assert first["assumes"]
    assert first["beware"]
    assert [item["number"] for item in said.json["checklist"]] == list(range(1, 11))


@pytest.mark.parametrize("layer", ["router", "engine"])
def test_nobody_is_promised_a_hard_deadline_in_front_of_a_language_model(layer: str) -> None:
    first = fairq("choose", "--layer", layer, "--objective", "deadlines", "--deadlines", "hard", "--json")
    assert "no hard deadline is kept for certain" in " ".join(first.json["recommended"][0]["beware"])


def test_the_page_has_the_same_table() -> None:
    rows = re.findall(r"^\| (\d+) \|[^|]*\| `([^`]*)` \| ([^|]*) \|", TABLE, re.M)
    assert [(int(row), options, re.findall("`([^`]*)`", policies)) for row, options, policies in rows] == SITUATIONS


@pytest.mark.parametrize(
    ("options", "policies"),
    [
        ("--layer cpu --objective completion --sizes unknown", ["mlfq", "rr"]),  # nobody knows who is short
        ("--layer cpu --objective completion --preemption no", ["sjf"]),
        ("--layer cpu --objective share --resources several", ["drf"]),
        ("--layer cpu --objective response --deadlines soft", ["edf", "rm"]),
        ("--layer cpu --objective deadlines --preemption no", ["priority:preemptive=false"]),
        ("--layer cpu --objective share --preemption no", ["sfq", "request-rr"]),
        ("--layer link --objective share --sizes estimated", ["sfq"]),
        ("--layer link --objective deadlines", ["wf2q", "wfq", "virtual-clock"]),
        ("--layer router --objective completion", ["shortest"]),
        ("--layer router --objective completion --sizes unknown", ["sfq"]),
        ("--layer router --objective share --locality yes", ["dlpm", "d2lpm"]),
        ("--layer router --objective slo", ["equinox"]),
    ],
)
def test_other_answers_change_the_advice(options: str, policies: list[str]) -> None:
    assert fairq("choose", *options.split(), "--json").json["recommended"][0]["policies"] == policies


@pytest.mark.parametrize("layer", ["link", "cluster", "engine"])
def test_where_nothing_aims_at_the_objective_that_is_said(layer: str) -> None:
    def bewares(objective: str) -> str:
        said = fairq("choose", "--layer", layer, "--objective", objective, "--json").json
        return " ".join(said["recommended"][0]["beware"])

    assert "no policy here aims at early completion on average" in bewares("completion")
    assert "no policy here aims" not in bewares("share")


def test_organisations_share_first() -> None:
    said = fairq("choose", "--layer", "router", "--objective", "share", "--subject", "organisation", "--json").json
    assert [one["policies"] for one in said["recommended"]] == [["sfq"], ["hierarchical"]]


def every_advice() -> list[Advice]:
    """That some answers lead to."""
    found: dict[tuple[object, ...], Advice] = {}
    asked = [question for question in QUESTIONS if question.key not in ("subject", "deadlines", "resources")]
    for answers in product(*(question.answers for question in asked), ("user", "organisation")):
        given = dict(zip([*(question.key for question in asked), "subject"], answers, strict=True))
        for advice in advise(settled(given)):
            found[advice.policies, advice.command] = advice
    return list(found.values())


@pytest.mark.parametrize("advice", every_advice(), ids=lambda advice: advice.policies[0])
def test_every_command_that_is_recommended_runs(advice: Advice) -> None:
    """Whatever is answered there is an advice, and its command does not fail."""
    found = told(advice)
    if found["command"] is None:
        assert not {spec.partition(":")[0] for spec in advice.policies} & POLICIES.keys()
        return
    program, *arguments = shlex.split(found["command"])
    said = fairq(*arguments, "--json")
    assert (program, said.status, said.err) == ("fairq", 0, "")
    named = [spec for spec in found["available"] if spec.partition(":")[0] in POLICIES]
    assert len(json.loads(said.out)["runs"]) == len(named) > 0


def test_the_questions_are_asked_one_by_one() -> None:
    replies = iter(["router", "sha", "api", "", "", "", "yes", ""])
    offers = []

    def prompt(text: str, default: str | None = None, err: bool = False) -> str:
        offers.append(default)
        return next(replies) or default or ""

    found = ask(prompt)
    assert found == {
        "layer": "router",
        "objective": "share",
        "subject": "api-key",
        "sizes": "estimated",
        "preemption": OF_LAYER["router"]["preemption"],
        "resources": "one",
        "locality": "yes",
        "deadlines": "none",
    }
    assert offers == [None, None, "user", "estimated", "no", "one", "no", "none"]
    assert next(replies, None) is None


def test_a_reply_that_means_nothing_is_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    replies = iter(["moon", "c", "cpu", "response", *[""] * 6])
    found = ask(lambda text, default=None, err=False: next(replies) or default or "")
    assert found["layer"] == "cpu"  # "c" could be the cluster
    assert capsys.readouterr().err.count("one of cpu, link, cluster, router, engine") == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("", "--layer: missing; one of cpu, link, cluster, router, engine"),
        ("--layer cpu", "--objective: missing; one of completion, response, deadlines, share, slo"),
        ("--layer rooter --objective share", "--layer = 'rooter': unknown; did you mean router?"),
        ("--layer cpu --objective share --sizes guessed", "--sizes = 'guessed': unknown"),
    ],
)
def test_wrong_answers_are_one_line(arguments: str, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    said = fairq("choose", *arguments.split())
    assert (said.status, said.out) == (2, "")
    (line,) = said.err.splitlines()
    assert line.startswith("fairq choose: ")
    assert complaint in line


def test_the_answer_for_people() -> None:
    said = fairq("choose", "--layer", "engine", "--objective", "slo")
    assert said.status == 0
    assert "equinox" in said.out
    assert "Before it goes into use" in said.out


# fairq policies
def test_every_policy_is_listed() -> None:
    said = fairq("policies", "--json").json["policies"]
    assert [one["name"] for one in said] == list(POLICIES)
    shown = fairq("policies").out
    assert all(name[:6] in shown for name in POLICIES)


@pytest.mark.parametrize("name", POLICIES)
def test_what_a_policy_says_of_itself(name: str) -> None:
    one = fairq("policies", name, "--json").json
    policy = POLICIES[name]
    assert one["unit"] == policy.unit.value
    assert {param["name"] for param in one["params"]} == set(policy().parameters())
    assert set(one["needs"]) == {need.value for need in policy.needs}
    assert one["title"].endswith(".")
    assert len(one["guarantees"]) > 30
    assert one["citation"] or name == "shortest"
    shown = fairq("policies", name).out
    assert "Unit of fairness" in shown
    assert all(param.name in shown for param in policy.params)


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_runs_on_each_layer_that_it_names_and_on_no_other(name: str) -> None:
    layers = entry(name).layers
    for layer in TRIES:
        if (name, layer) == ("priority", "engine"):
            continue  # it can there preempt by priority, and nothing else
        said = fairq(*shlex.split(TRIES[layer].format(policy=name))[1:], "--json")
        assert said.status == (0 if layer in layers else 2), layer
        if layer not in layers:
            assert "needs" in said.err
    assert ("gateway" in layers) is (POLICIES[name].needs <= {Need.SIZE})


@pytest.mark.parametrize("one", entries(), ids=lambda one: one.name)
def test_the_example_of_a_policy_runs(one: Entry) -> None:
    assert fairq(*shlex.split(one.example)[1:], "--json").status == 0


def test_policies_of_one_layer_and_other_names() -> None:
    assert TRIES.keys() == provided().keys() <= LAYERS.keys()
    gateway = {one["name"] for one in fairq("policies", "--layer", "gateway", "--json").json["policies"]}
    assert {"sfq", "drr", "fcfs"} <= gateway
    assert not {"wfq", "rr", "drf"} & gateway
    assert fairq("policies", "fifo", "--json").json["name"] == ALIASES["fifo"] == "fcfs"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["wfqq"], "fairq policies: policy = 'wfqq': unknown; did you mean wfq"),
        (["--layer", "moon"], "fairq policies: --layer = 'moon': unknown"),
    ],
)
def test_unknown_names_are_one_line(arguments: list[str], complaint: str) -> None:
    said = fairq("policies", *arguments)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(complaint)
    assert len(said.err.splitlines()) == 1
