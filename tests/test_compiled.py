"""The compiled form: what is in it, and whether it is the one that runs."""

import ast
import os
import subprocess
import sys
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from inspect import cleandoc
from pathlib import Path

import pytest
from compile_build import COMPILED, INTERPRETED, modules

from fairq.form import docstring, form
from fairq.policies import POLICIES

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"


def test_what_the_lists_name_is_there() -> None:
    missing = [name for name in (*COMPILED, *INTERPRETED) if not (SOURCE / "fairq" / name).exists()]
    assert not missing


@pytest.mark.parametrize("name", modules(SOURCE))
def test_no_class_whose_keywords_would_be_lost_is_compiled(name: str) -> None:
    tree = ast.parse((SOURCE / name).read_text())
    lost = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.keywords]
    assert not lost, "belongs into a file of INTERPRETED"


def test_the_version_says_which_form_runs() -> None:
    command = [sys.executable, "-c", "from fairq.cli import main; main()", "--version"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["fairq", "0.1.0,", form()]


@pytest.mark.skipif(os.environ.get("FAIRQ_FORM") != "compiled", reason="the sources are tested, not a wheel")
def test_every_module_that_is_to_be_compiled_is() -> None:
    names = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in modules(SOURCE)]
    slow = [name for name in names if not (import_module(name).__file__ or "").endswith(tuple(EXTENSION_SUFFIXES))]
    assert not slow


def test_what_a_module_says_of_itself_is_read_from_its_source() -> None:
    """A library has no docstring. `fairq policies`, the docs and the lab go by the file beside it."""
    for policy in POLICIES.values():
        own = import_module(policy.__module__).__doc__
        assert docstring(policy.__module__)
        assert own is None or docstring(policy.__module__) == cleandoc(own)
