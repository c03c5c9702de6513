"""The router layer: the article's lab model of section 8, in logical time."""
