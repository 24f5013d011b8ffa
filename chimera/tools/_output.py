"""Keeping the beginning and the end of an output that may be endless."""

from __future__ import annotations

__all__ = ["HeadTail"]


class HeadTail:
    """Collects bytes and keeps at most `limit` of them: half from the start, half from the end."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 4 * self._half:
            del self._tail[: -self._half]

    def text(self) -> str:
        """Return what was kept, as UTF-8, with a note where something is missing.

        The cut is made between lines where they are not too long: half a line can hide what half of it shows.
        """
        tail = bytes(self._tail[-self._half :])
        if self.total <= len(self._head) + len(tail):
            return _decoded(bytes(self._head) + tail)
        head = bytes(self._head)
        head = head[: head.rfind(b"\n", self._half // 2) + 1] or head
        tail = tail[tail.find(b"\n", 0, self._half // 2) + 1 :]
        dropped = self.total - len(head) - len(tail)
        note = f"[... {dropped} bytes left out ...]\n"
        return _decoded(head) + ("" if head.endswith(b"\n") else "\n") + note + _decoded(tail)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")
