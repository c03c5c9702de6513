"""Open-loop replay of recorded traffic against an OpenAI-compatible server."""
