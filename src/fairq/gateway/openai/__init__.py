"""OpenAI's dialect: bodies and event streams as values. Bytes in, values or bytes out; no I/O, no clock."""
