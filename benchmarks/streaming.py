"""What streaming costs per delta: the same stream of a server on loopback, read with the bare SDK and through Chimera.

The server is a process of its own and sends 20,000 deltas as fast as they are taken. Wall time, medians over rounds
that are interleaved, so that a busy moment hits all alike. Reading through Chimera may take 1.1 times as long as with
the bare SDK.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from chimera.core import AgentLoop
from chimera.core.loop_events import LoopEventType
from chimera.providers.compatible import OpenAICompatibleProvider
from chimera.types import Message

DELTAS = 20_000
ROUNDS = 3
BUDGET = 1.1
QUESTION = "go"
SERVER = r"""
import socket, sys

pieces = sys.stdin.buffer.read().split(b"\0")
head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
print(listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        received = b""
        while b"\r\n\r\n" not in received:
            received += connection.recv(65536)
        before, _, body = received.partition(b"\r\n\r\n")
        length = next(int(line[15:]) for line in before.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        while len(body) < length:
            body += connection.recv(65536)
        connection.sendall(head)
        for piece in pieces:
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
        connection.sendall(b"0\r\n\r\n")
"""

Read = Callable[[str], Coroutine[Any, Any, int]]


def event(delta: dict[str, Any], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


@contextmanager
def serving(deltas: int) -> Iterator[str]:
    """Serve a stream of `deltas` words, one write each, and yield the base URL."""
    words = [event({"content": f"word{number} "}) for number in range(deltas)]
    body = b"\0".join([event({"role": "assistant"}), *words, event({}, "stop"), b"data: [DONE]\n\n"])
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    with server:
        server.stdin.write(body)
        server.stdin.close()
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        server.kill()


async def bare(url: str) -> int:
    """Read the stream with the SDK alone."""
    from openai import AsyncOpenAI

    count = 0
    async with AsyncOpenAI(api_key="none", base_url=url) as client:
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": QUESTION}], stream=True
        )
        async for chunk in stream:
            count += bool(chunk.choices and chunk.choices[0].delta.content)
    return count


async def by_provider(url: str) -> int:
    """Read it through the provider."""
    provider = OpenAICompatibleProvider("m", base_url=url)
    count = 0
    async for chunk in provider.async_stream([Message.user(QUESTION)]):
        count += bool(chunk.text)
    await provider.aclose()
    return count


async def by_agent_loop(url: str) -> int:
    """Read it as whoever watches an agent does: through provider, seams, engine and events."""
    provider = OpenAICompatibleProvider("m", base_url=url)
    options: dict[str, Any] = {"tools": [], "provider": provider, "system_prompt": "", "stream": True}
    count = 0
    async for item in AgentLoop().run([Message.user(QUESTION)], **options):
        count += item.type is LoopEventType.ASSISTANT_CHUNK
    await provider.aclose()
    return count


WAYS: dict[str, Read] = {"bare SDK": bare, "provider": by_provider, "AgentLoop": by_agent_loop}


def medians(url: str, deltas: int, rounds: int) -> dict[str, float]:
    """Return the seconds that each way takes. A first round, in which everything is imported, does not count."""
    times: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(rounds + 1):
        for name, read in WAYS.items():
            start = time.perf_counter()
            count = asyncio.run(read(url))
            times[name].append(time.perf_counter() - start)
            assert count == deltas, f"{name} saw {count} deltas of {deltas}"
    return {name: median(values[1:]) for name, values in times.items()}


def main() -> None:
    with serving(DELTAS) as url:
        found = medians(url, DELTAS, ROUNDS)
    for name, seconds in found.items():
        ratio = seconds / found["bare SDK"]
        budget = "" if name == "bare SDK" else f"  ratio {ratio:.2f} (budget {BUDGET})"
        print(f"{name:<10} {seconds * 1000:8.0f} ms  {seconds / DELTAS * 1e6:6.1f} us a delta{budget}")


if __name__ == "__main__":
    main()
