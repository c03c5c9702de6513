"""The CPU layer: 1..n processors, preemption, sleeps, locks, periodic tasks; event-driven, in whole ticks."""
