"""Simulators: one event loop per layer, all driving the same policies, all leaving a `Trace`."""
