from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.providers.sse import Event, EventDecoder

LINE = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12)
NEWLINE = st.sampled_from(["\n", "\r", "\r\n"])


def decode(data: bytes, cuts: list[int]) -> list[Event]:
    """Decode `data`, handed over in pieces that end at the cuts."""
    decoder, start = EventDecoder(), 0
    found: list[Event] = []
    for cut in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        found.extend(decoder.feed(data[start:cut]))
        start = cut
    return [*found, *decoder.finish()]


@given(st.lists(st.lists(LINE, min_size=1, max_size=3), max_size=4), NEWLINE, st.lists(st.integers(0, 10_000)))
def test_events_survive_any_cut_and_line_ending(texts: list[list[str]], newline: str, cuts: list[int]) -> None:
    """A cut may fall into a character, or between carriage return and line feed."""
    data = "".join("".join(f"data: {line}{newline}" for line in text) + newline for text in texts)
    assert decode(data.encode(), cuts) == [Event("", "\n".join(text)) for text in texts]


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5))
def test_no_bytes_make_it_raise_and_cuts_do_not_matter(data: bytes, cuts: list[int]) -> None:
    assert decode(data, cuts) == decode(data, [])


@pytest.mark.parametrize(
    ("text", "events"),
    [
        (": keep-alive\n\ndata: a\n\n", [Event("", "a")]),
        ("\ufeffdata: a\n\n", [Event("", "a")]),
        ("data:a\ndata\ndata:  b\n\n", [Event("", "a\n\n b")]),
        ("id: 1\nretry: 5\nfoo: bar\ndata: a\n\n", [Event("", "a")]),
        ("event: ping\ndata: {}\n\ndata: a\n\n", [Event("ping", "{}"), Event("", "a")]),
        ("event: ping\n\ndata: a\n\n", [Event("", "a")]),
        ('error: {"message": "no"}\n\n', [Event("error", '{"message": "no"}')]),
        ("data: a", [Event("", "a")]),
        ("data: a\n", [Event("", "a")]),
        ("\n\n\n", []),
        ("", []),
    ],
)
def test_shapes(text: str, events: list[Event]) -> None:
    assert decode(text.encode(), []) == events
    assert decode(text.encode(), list(range(len(text.encode())))) == events


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert decode(b"data: a\xffb\n\n", []) == [Event("", "a\ufffdb")]
