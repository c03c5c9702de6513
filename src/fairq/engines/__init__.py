"""Simulated LLM servers: OpenAI's interface, the timing of a stated model, text that is a function of the prompt.

`model` (step times and limits), `batching` (the engine, without clock or I/O), `text` and `generation` (what it says),
`clockwork` (steps in real time), `openai`, `metrics` and `server` (the interface), `process` (a child process of its
own). What is simulated is timing and capacity: no weights, no quality, no preemption, prompts counted at four bytes a
token, and a prefix cache that does not compete for the pool.
"""
