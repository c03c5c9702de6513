"""Random numbers by count: the n-th draw of a run is a function of its seed and n, so it can be asked for again."""

from hashlib import blake2b

from fairq.core.policy import Draw


def draws(seed: int) -> Draw:
    """Uniform to within stop / 2**64."""
    key = seed.to_bytes(16, "big")

    def draw(n: int, stop: int) -> int:
        word = blake2b(n.to_bytes(8, "big"), digest_size=8, key=key).digest()
        return int.from_bytes(word, "big") * stop >> 64

    return draw
