from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from chimera.providers.local_probe import FoundServer, find_servers, get_json
from tests.providers.wire_server import Reply, WireServer, json_reply

OLLAMA = {"object": "list", "data": [{"id": "llama3.2:3b"}, {"id": "qwen3"}, {"no": "id"}, 7]}


def port(server: WireServer) -> int:
    number = urlsplit(server.url).port
    assert number is not None
    return number


@pytest.fixture
def closed_port() -> int:
    with WireServer() as server:
        return port(server)


def test_servers_that_answer_are_found(closed_port: int) -> None:
    with WireServer(json_reply(OLLAMA)) as one, WireServer(json_reply({"data": []})) as other:
        found = find_servers([(port(one), "Ollama"), (closed_port, "vLLM"), (port(other), "llama.cpp")])
        assert found == [
            FoundServer(f"{one.url}/v1", "Ollama", ("llama3.2:3b", "qwen3")),
            FoundServer(f"{other.url}/v1", "llama.cpp", ()),
        ]
        assert one.requests[0].path == "/v1/models"


@pytest.mark.parametrize(
    "reply",
    [
        json_reply(OLLAMA, 404),
        json_reply([]),
        json_reply({"data": "none"}),
        Reply((b"<html>",)),
        Reply((b"[" * 100_000,)),
        Reply(ending="hang_up"),
        Reply(ending="silent"),
    ],
    ids=["not found", "a list", "no list", "a page", "deep", "hangs up", "silent"],
)
def test_others_are_not(reply: Reply) -> None:
    with WireServer(reply) as server:
        assert find_servers([(port(server), "some")], timeout=0.1) == []


def test_no_port_is_no_server() -> None:
    assert find_servers([]) == []


def test_proxies_have_no_part_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with WireServer(json_reply({"data": []})) as proxy, WireServer(json_reply([1])) as server:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert get_json(f"{server.url}/some") == [1]
        assert not proxy.requests
