from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from chimera.errors import ProviderConnectionError, ProviderProtocolError
from chimera.providers.answers import BodyReader, EventReader, Reader
from chimera.providers.base import StreamChunk
from chimera.providers.chat_protocol import ChatAssembler, read_completion
from chimera.providers.failures import WireError

WHOLE = {"choices": [{"message": {"content": "hé"}, "finish_reason": "stop"}]}
DELTA = {"choices": [{"delta": {"content": "hé"}}]}
END = {"choices": [{"delta": {}, "finish_reason": "stop"}]}


def body_reader() -> Reader:
    return BodyReader(read_completion)


def event_reader() -> Reader:
    return EventReader(ChatAssembler(), read_completion)


def read(reader: Reader, data: bytes, size: int = 7) -> list[StreamChunk]:
    chunks: list[StreamChunk] = []
    for start in range(0, len(data), size):
        chunks.extend(reader.feed(data[start : start + size]))
        if reader.done:
            break
    return [*chunks, *reader.finish()]


def content(chunks: list[StreamChunk]) -> str:
    assert chunks[-1].response is not None
    return chunks[-1].response.content


def data(*payloads: object) -> bytes:
    texts = (item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in payloads)
    return "".join(f"data: {text}\n\n" for text in texts).encode()


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_whole_answer_with_or_without_a_byte_order_mark(size: int, mark: str) -> None:
    text = mark + json.dumps(WHOLE, ensure_ascii=False)
    for reader in (body_reader(), event_reader()):
        assert content(read(reader, text.encode(), size)) == "hé"


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_stream(size: int) -> None:
    chunks = read(event_reader(), data(DELTA, DELTA, END, "[DONE]"), size)
    assert [chunk.text for chunk in chunks] == ["hé", "hé", ""]
    assert content(chunks) == "héhé"


@pytest.mark.parametrize("ending", [(END,), ("[DONE]",), (END, "[DONE]")])
def test_a_stream_is_complete_by_its_reason_or_its_end_mark(ending: tuple[object, ...]) -> None:
    assert content(read(event_reader(), data(DELTA, *ending))) == "hé"


def test_nothing_after_the_end_mark_is_read() -> None:
    reader = event_reader()
    chunks = list(reader.feed(data(DELTA, "[DONE]", "not json", DELTA)))
    assert reader.done
    assert [chunk.text for chunk in [*chunks, *reader.finish()]] == ["hé", ""]


def test_a_stream_that_breaks_off_is_a_lost_connection() -> None:
    with pytest.raises(WireError) as caught:
        read(event_reader(), data(DELTA))
    assert caught.value.kind is ProviderConnectionError


@pytest.mark.parametrize("reader", [body_reader, event_reader])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"<html>welcome</html>", "HTML"),
        (b"[1, 2]", "no JSON object"),
        (b"\xff\xfe\xfa", "no JSON"),
        (b'{"a":' * 100_000, "no JSON"),
        (b'{"choices": []}', "no choices"),
        (b'{"choices": "x"}', "no choices"),
    ],
)
def test_what_is_no_answer(reader: Callable[[], Reader], text: bytes, said: str) -> None:
    with pytest.raises(WireError, match=said) as caught:
        read(reader(), text, 100_000)
    assert caught.value.kind is ProviderProtocolError


@pytest.mark.parametrize("event", ["{", "7", "<html>"])
def test_an_event_that_is_no_object(event: str) -> None:
    with pytest.raises(WireError) as caught:
        read(event_reader(), data(DELTA, event))
    assert caught.value.kind is ProviderProtocolError


@pytest.mark.parametrize(
    "text",
    [
        data({"error": {"message": "no", "code": 429}}),
        data(DELTA, {"error": {"message": "no", "code": "429"}, "choices": []}),
        b'event: error\ndata: {"message": "no", "code": 429}\n\n',
        b'error: {"code": 429, "message": "no"}\n\n',
        b'{"error": {"message": "no", "code": 429}}',
    ],
)
def test_an_error_inside_of_a_good_answer(text: bytes) -> None:
    with pytest.raises(WireError) as caught:
        read(event_reader(), text)
    assert (caught.value.text, caught.value.status) == ("no", 429)
