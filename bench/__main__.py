"""Benchmarks: ratios to peers and limits, each measured in one run.

python -m bench                     all of them
python -m bench dataplane --help    one, with its options
python -m bench.judge               the recorded clients into llama.cpp; minutes
"""

import sys
from importlib import import_module

NAMES = ("scheduler", "memory", "sim", "engine", "reproduce", "dataplane")


def main(arguments: list[str]) -> None:
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
