"""Benchmarks: ratios to peers and limits, each measured in one run.

python -m bench                     all of them
python -m bench dataplane --help    one, with its options
python -m bench sim --interpreted   fairq as its sources are; otherwise compiled, as its wheels are
python -m bench.judge               the recorded clients into llama.cpp; minutes
"""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from fairq.form import form

ROOT = Path(__file__).parents[1]
COMPILED = ROOT / "build" / "compiled"
TIMED = ("scheduler", "memory", "sim", "engine", "dataplane")  # whose figures depend on the form
NAMES = ("scheduler", "memory", "sim", "engine", "reproduce", "dataplane")


def take_form(arguments: list[str]) -> list[str]:
    """Goes on in a process that has the form to be measured, and says which. The arguments without --interpreted.

    The folder that `make compiled` fills goes before all others, also in the processes that a benchmark starts.
    """
    interpreted = "--interpreted" in arguments
    first, *others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if not interpreted and first != str(COMPILED):
        subprocess.run(["make", "--silent", "compiled"], cwd=ROOT, check=True)
        others = [str(COMPILED), *filter(None, [first, *others])]
        environ = os.environ | {"PYTHONPATH": os.pathsep.join(others)}
        os.execve(sys.executable, [sys.executable, "-m", "bench", *arguments], environ)
    print(f"fairq is {form()}", flush=True)
    return [argument for argument in arguments if argument != "--interpreted"]


def main(arguments: list[str]) -> None:
    if not {"-h", "--help"} & set(arguments) and (not arguments[:1] or arguments[0] in (*TIMED, "--interpreted")):
        arguments = take_form(arguments)
    if arguments and arguments[0] in ("-h", "--help"):
        print(__doc__)
    elif arguments and arguments[0] in NAMES:
        import_module(f"bench.{arguments[0]}").main(arguments[1:])
    elif arguments:
        sys.exit(f"bench = {arguments[0]!r}: must be one of {', '.join(NAMES)}")
    else:
        for name in NAMES:
            print(f"== {name}", flush=True)
            import_module(f"bench.{name}").main([])


if __name__ == "__main__":
    main(sys.argv[1:])
