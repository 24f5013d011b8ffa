"""Text files as a model sees them, `\\n` at every line end, and the way back that keeps every byte nobody changed."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from chimera.errors import ToolError
from chimera.tools._files import MAX_FILE_BYTES, Mark, read_bytes, size_text
from chimera.tools._paths import Place

__all__ = ["Form", "NotText", "Span", "Text", "decode", "load_text", "utf8"]

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")

Span = tuple[int, int, str]


class NotText(ToolError):
    """The bytes are no text in any encoding that is tried."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a text lies on disk: encoding, byte order mark, and the line end that most of its lines have."""

    encoding: str = "utf-8"
    bom: bytes = b""
    newline: str = "\n"

    def localized(self, text: str) -> str:
        """Return `text` with this form's line ends."""
        plain = text.replace("\r\n", "\n")
        return plain if self.newline == "\n" else plain.replace("\n", self.newline)

    def encode(self, raw: str) -> bytes:
        """Return the bytes of `raw` as they go to disk. Raises `ToolError` for characters the encoding lacks."""
        try:
            return self.bom + raw.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise ToolError(self._unfit(raw[error.start])) from error

    def _unfit(self, character: str) -> str:
        if "\ud800" <= character <= "\udfff":
            return f"the text holds {character!a}, half of a character, which no file can hold; send it whole"
        advice = "keep to its characters, or convert the file first (bash: iconv -t utf-8)"
        return f"the file is {self.encoding}, which cannot hold {character!r}; {advice}"


utf8 = Form()


@dataclass(frozen=True)
class Text:
    """A decoded file. `raw` has its own line ends, `view` has `\\n` for each of them."""

    raw: str
    form: Form = utf8

    @cached_property
    def view(self) -> str:
        if self.form.newline == "\r":
            return self.raw.replace("\r", "\n")
        return self.raw.replace("\r\n", "\n")

    @cached_property
    def _pairs(self) -> list[int]:
        """Where in `view` the line ends stand that have two characters in `raw`."""
        if self.form.newline == "\r":
            return []
        return [found.start() - index for index, found in enumerate(re.finditer("\r\n", self.raw))]

    def spliced(self, spans: Iterable[Span]) -> Text:
        """Return the text with each `(start, end, new)` of `view` replaced; all the rest of `raw` stays as it is.

        Spans are in order and do not overlap.
        """
        pieces, done = [], 0
        for start, end, new in spans:
            pieces += [self.raw[done : self._raw_index(start)], self.form.localized(new)]
            done = self._raw_index(end)
        return Text("".join([*pieces, self.raw[done:]]), self.form)

    def encode(self) -> bytes:
        return self.form.encode(self.raw)

    def _raw_index(self, index: int) -> int:
        return index + bisect_left(self._pairs, index)


def decode(data: bytes, *, cut: bool = False) -> Text:
    """Decode a file: by its byte order mark, else as UTF-8, else as Windows-1252 or Latin-1, which keep every byte.

    `cut` says that `data` is the start of a longer file. Raises `NotText` for binary data.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _as_text(_strictly(data[len(bom) :], encoding, cut), encoding, bom)
    if b"\0" in data:
        raise NotText("it is a binary file")
    try:
        return _as_text(_strictly(data, "utf-8", cut), "utf-8")
    except NotText:
        return _western(data)


def load_text(place: Place, limit: int = MAX_FILE_BYTES) -> tuple[Text, Mark]:
    """Read a text file of at most `limit` bytes. Raises `ToolError` when it is missing, too big or binary."""
    snapshot = read_bytes(place, limit)
    try:
        return decode(snapshot.data), snapshot.mark
    except NotText as error:
        advice = "use bash with `file`, `strings` or `xxd` to look into it"
        size = size_text(len(snapshot.data))
        raise ToolError(f"{str(place)!r}: {error} ({size}), which this tool cannot take; {advice}") from error


def _strictly(data: bytes, encoding: str, cut: bool) -> str:
    try:
        return codecs.getincrementaldecoder(encoding)().decode(data, not cut)
    except UnicodeDecodeError as error:
        raise NotText(f"it is no valid {encoding} text") from error


def _western(data: bytes) -> Text:
    if _CONTROL.search(data):
        raise NotText("it is a binary file")
    try:
        return _as_text(data.decode("cp1252"), "cp1252")
    except UnicodeDecodeError:
        return _as_text(data.decode("latin-1"), "latin-1")


def _as_text(raw: str, encoding: str, bom: bytes = b"") -> Text:
    pairs = raw.count("\r\n")
    feeds = raw.count("\n") - pairs
    if pairs > feeds:
        newline = "\r\n"
    elif not feeds and "\r" in raw and not pairs:
        newline = "\r"
    else:
        newline = "\n"
    return Text(raw, Form(encoding, bom, newline))
