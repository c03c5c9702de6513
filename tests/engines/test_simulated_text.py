"""What the simulated model says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairq.engines.text import PrefixCache, cut_at_stop, generator, natural_length, token_count, words


def test_a_token_is_four_bytes_rounded_up() -> None:
    assert [token_count(text) for text in ("", "a", "abcd", "abcde", "漢字")] == [0, 1, 1, 2, 2]


def test_natural_lengths_have_the_stated_median() -> None:
    drawn = sorted(natural_length(generator(k), 150) for k in range(2001))
    assert 135 < drawn[1000] < 165
    assert drawn[0] >= 1
    assert drawn[-1] > 1000


tokens = st.lists(st.text("ab ", min_size=1, max_size=3), min_size=1, max_size=12)


@given(tokens, st.lists(st.text("ab ", min_size=1, max_size=4), max_size=3))
def test_cutting_equals_reading_token_by_token(pieces: list[str], stops: list[str]) -> None:
    """An engine appends a token, then looks for a stop string; it ends at the first token after which it finds one."""
    said = ""
    read = 0
    found: list[tuple[int, int]] = []
    for piece in pieces:
        said += piece
        read += 1
        found = [(said.find(stop) + len(stop), said.find(stop)) for stop in stops if stop in said]
        if found:
            break
    cut, stopped = cut_at_stop(pieces, stops)
    assert stopped == bool(found)
    assert len(cut) == read
    assert "".join(cut) == (said[: min(found)[1]] if found else said)


def test_more_words_begin_with_fewer() -> None:
    assert words(generator("x"), 50)[:20] == words(generator("x"), 20)
    assert words(generator("x"), 20) != words(generator("y"), 20)


def test_the_prefix_cache_forgets_what_was_used_longest_ago() -> None:
    cache = PrefixCache(capacity_tokens=32)  # two blocks of 16 tokens, 64 bytes each
    first, second, third = (bytes([k]) * 64 for k in range(3))
    assert [cache.cached(prompt) for prompt in (first, second, first, third, first, second)] == [0, 0, 16, 0, 16, 0]
    assert cache.cached(b"short") == 0
