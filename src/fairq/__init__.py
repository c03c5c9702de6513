"""fairq decides whose work runs next: a fair gateway for shared LLM servers, and the schedulers behind it."""

__version__ = "0.1.0"
