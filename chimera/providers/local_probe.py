"""Looking for model servers on this machine: who answers on the ports where they usually listen."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from chimera.providers.reading import as_items, as_mapping, as_text

__all__ = ["USUAL_PORTS", "FoundServer", "find_servers", "get_json"]

USUAL_PORTS = ((8080, "llama.cpp"), (11434, "Ollama"), (8000, "vLLM"), (1234, "LM Studio"))
_LARGEST_ANSWER = 1 << 20


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server that answers. `usual` is what mostly listens on its port; `models` are the names that it lists."""

    base_url: str
    usual: str
    models: tuple[str, ...]


def get_json(url: str, timeout: float = 5.0) -> Any:
    """Get a JSON value from a server on this machine, past all proxies.

    Raises `OSError`, `HTTPException` or `ValueError` when it does not answer with one in `timeout` seconds a read.
    """
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)
    try:
        connection.request("GET", parts.path, headers={"Connection": "close"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise ValueError(f"HTTP {answer.status}")
        return json.loads(answer.read(_LARGEST_ANSWER))
    finally:
        connection.close()


def find_servers(ports: Iterable[tuple[int, str]] = USUAL_PORTS, timeout: float = 1.0) -> list[FoundServer]:
    """Ask every port at once for its list of models, and return those that answer in OpenAI's protocol."""
    asked = list(ports)
    with ThreadPoolExecutor(len(asked) or 1) as pool:
        found: Sequence[FoundServer | None] = list(pool.map(partial(_ask, timeout), asked))
    return [server for server in found if server is not None]


def _ask(timeout: float, place: tuple[int, str]) -> FoundServer | None:
    port, usual = place
    base_url = f"http://127.0.0.1:{port}/v1"
    try:
        answer = as_mapping(get_json(f"{base_url}/models", timeout))
    except (OSError, HTTPException, ValueError, RecursionError):
        return None
    if not isinstance(answer.get("data"), list):
        return None
    names = tuple(name for item in as_items(answer["data"]) if (name := as_text(item.get("id"))))
    return FoundServer(base_url, usual, names)
