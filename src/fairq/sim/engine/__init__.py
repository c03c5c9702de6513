"""The engine layer: continuous batching over a paged cache, iteration by iteration or event by event."""
