"""Latency and fairness of a run, exact; used by simulators, ledger, console and load tool alike."""
