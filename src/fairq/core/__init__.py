"""The core: jobs, events, commands, policy contract, scheduler. No clock, no I/O, no randomness of its own."""
