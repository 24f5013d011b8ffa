"""Reading words the way bash does: quotes, escapes, expansions.

Wherever bash has a rule that is not followed here, reading stops with `Unreadable`. A text is never understood less
strictly than bash understands it: what looks like data here must not be a command there.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from chimera.permissions.shell.findings import Findings, Piece, Unreadable, Word

__all__ = ["WordReader"]

_PLAIN = re.compile(r"[^ \t\n;&|()<>'\"\\$`]+")
_PLAIN_QUOTED = re.compile(r"[^\"\\$`]+")
_EXPANDING = re.compile(r"[*?\[{]")
_UNCLOSED_SUBSCRIPT = re.compile(r"(?a)[A-Za-z_]\w*\[[^\]]*\Z")
_ARRAY = re.compile(r"(?a)[A-Za-z_]\w*\+?=\Z")
_NAME = re.compile(r"(?a)\$([A-Za-z_]\w*|\d|[@*#?$!-])")
_ANSI_C = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ANSI_ESCAPE = re.compile(
    r"\\(?:(?P<sign>[abeEfnrtv\\'\"?])|(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9A-Fa-f]{1,2})|(?P<other>.))", re.DOTALL
)
_ANSI_SIGNS = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))
_SUM = r"(?:[\w\s+\-*/%<>=!&|^~?:,.]++|\$\w++|\$\{\w++\})"
_ARITHMETIC = re.compile(rf"(?:{_SUM}|\({_SUM}*+\))*+\)\)")
_PARAMETER = re.compile(r"(?a)\$\{#?(?:[A-Za-z_]\w*|\d+|[@*#?$!-])(?:\[[@*\d]+\])?(?=[}:+?#%/^,=@\[-])")
_HARMLESS_OPERATION = re.compile(r":?[-+?]|##?|%%?|//?|\^\^?|,,?")
_LITERAL = frozenset({"[", "[[", "{", "{}"})
_CODE = re.compile(r"[$`]")
_BACKTICKS = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_COMMENT = re.compile(r"(?:\A|\s)#")
_LETTERS = re.compile(r"[A-Za-z_]")
_GAP = re.compile(r"[ \t\n]*")


class _Draft:
    """A word while it is being read."""

    __slots__ = ("exact", "home", "named_home", "pieces", "plain", "splits")

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.named_home = False
        self.exact, self.home, self.splits, self.plain = True, False, False, -1

    @property
    def text(self) -> str:
        return "".join(piece.written for piece in self.pieces)

    def bare(self, text: str) -> None:
        other_home = not self.pieces and text[0] == "~" and text[1:2] not in ("", "/")
        expands = other_home or bool(_EXPANDING.search(text))
        self.exact = self.exact and not expands
        self.home = self.home or (not self.pieces and text[0] == "~")
        self.pieces.append(Piece("glob" if expands else "text", text))

    def quoted(self, text: str) -> None:
        self._end_plain()
        self.pieces.append(Piece("text", text))

    def inexact(self, piece: Piece) -> None:
        """Add a piece whose value the text does not tell."""
        self._end_plain()
        self.pieces.append(piece)
        self.exact, self.splits = False, self.splits or piece.splits

    def unknown(self, text: str, *, splits: bool) -> None:
        self.inexact(Piece("unknown", text, splits=splits))

    def variable(self, text: str, name: str, *, splits: bool) -> None:
        if name == "HOME" and not self.text:
            self.quoted("~")
            self.home = self.named_home = True
        else:
            self.inexact(Piece("variable", text, name, splits or name == "@"))

    def _end_plain(self) -> None:
        if self.plain < 0:
            self.plain = len(self.text)

    def finish(self) -> Word:
        self._end_plain()
        if self.named_home and self.text[1:2] not in ("", "/"):  # a tilde would be the home of another user here
            self.pieces[self.pieces.index(Piece("text", "~"))] = Piece("variable", "$HOME", "HOME")
            self.exact = False
        text = self.text
        first = len(self.pieces[0].written) if self.pieces and not self.named_home else len(text)
        if "/" not in text[:first] and text[first : first + 1] not in ("", "/"):
            self.home = False  # what is quoted or replaced next to a tilde leaves it as it is
        if text.startswith("~") and not self.home:
            return Word("./" + text, self.exact, 0, self.splits, (Piece("text", "./"), *self.pieces))
        if text in _LITERAL and self.plain == len(text):
            return Word(text, True, self.plain)
        return Word(text, self.exact, self.plain, self.splits, () if self.exact else tuple(self.pieces))


class WordReader(ABC):
    """Reads words from `text`. The subclass says how a command substitution is read."""

    def __init__(self, text: str, found: Findings, depth: int) -> None:
        self.text, self.found, self.depth = text, found, depth
        self.pos = 0

    @abstractmethod
    def substitution(self) -> None:
        """Read commands up to the parenthesis that closes them; `pos` stands behind the opening one."""

    @abstractmethod
    def nested(self, text: str) -> None:
        """Read the commands of a text inside this one."""

    def peek(self, ahead: int = 0) -> str:
        return self.text[self.pos + ahead : self.pos + ahead + 1]

    def skip(self, pattern: re.Pattern[str]) -> bool:
        """Pass over what `pattern` matches here; False when it does not match."""
        match = pattern.match(self.text, self.pos)
        if match is not None:
            self.pos = match.end()
        return match is not None

    def word(self) -> Word:
        """Read one word. `pos` must stand on its first character."""
        draft = _Draft()
        while self._piece(draft):
            pass
        word = draft.finish()
        if _UNCLOSED_SUBSCRIPT.match(word.text[: word.plain]):
            raise Unreadable("an array subscript")
        return word

    def _piece(self, draft: _Draft) -> bool:
        char = self.peek()
        if char == "'":
            draft.quoted(self._until("'"))
        elif char == '"':
            self._double_quoted(draft)
        elif char == "\\":
            self._escape(draft)
        elif char == "$":
            self._dollar(draft, quoted=False)
        elif char == "`":
            self._backticks(draft, quoted=False)
        elif char in ("<", ">") and self.peek(1) == "(":
            draft.unknown(f"{char}(...)", splits=False)
            self.pos += 2
            self.substitution()
        elif char == "(" and _ARRAY.match(draft.text):
            self._array(draft)
        else:
            return self._run(draft)
        return True

    def _run(self, draft: _Draft) -> bool:
        match = _PLAIN.match(self.text, self.pos)
        if match is None:
            return False
        draft.bare(match[0]) if draft.plain < 0 else self._bare_after_quote(draft, match[0])
        self.pos = match.end()
        return True

    @staticmethod
    def _bare_after_quote(draft: _Draft, text: str) -> None:
        draft.inexact(Piece("glob", text)) if _EXPANDING.search(text) else draft.quoted(text)

    def _until(self, quote: str) -> str:
        end = self.text.find(quote, self.pos + 1)
        if end < 0:
            raise Unreadable("a quote that is never closed")
        start, self.pos = self.pos + 1, end + 1
        literal = self.text[start:end]
        self._note_code(literal)
        return literal

    def _note_code(self, literal: str) -> None:
        if _CODE.search(literal):
            self.found.quoted_code = True

    def _escape(self, draft: _Draft) -> None:
        following = self.peek(1)
        if not following:
            raise Unreadable("a backslash at the very end")
        if following != "\n":
            draft.quoted(following)
            self._note_code(following)
        self.pos += 2

    def _double_quoted(self, draft: _Draft) -> None:
        self.pos += 1
        draft.quoted("")
        while self.peek() != '"':
            if not self.peek():
                raise Unreadable("a quote that is never closed")
            self._quoted_piece(draft, escapable='$`"\\\n')
        self.pos += 1

    def _quoted_piece(self, draft: _Draft, escapable: str) -> None:
        char = self.peek()
        if char == "$":
            self._dollar(draft, quoted=True)
        elif char == "`":
            self._backticks(draft, quoted=True)
        elif char == "\\":
            escaped = self.peek(1) in escapable
            draft.quoted(self.peek(1).replace("\n", "") if escaped else "\\" + self.peek(1))
            self._note_code(self.peek(1))
            self.pos += 2
        else:
            match = _PLAIN_QUOTED.match(self.text, self.pos)
            end = match.end() if match else self.pos + 1
            draft.quoted(self.text[self.pos : end])
            self.pos = end

    def expansions(self) -> bool:
        """Read the rest of the text as an unquoted here-document; True when nothing in it is replaced."""
        draft = _Draft()
        while self.pos < len(self.text):
            self._quoted_piece(draft, escapable="$`\\\n")
        return draft.exact

    def _dollar(self, draft: _Draft, *, quoted: bool) -> None:
        following = self.peek(1)
        if following == "[" or self.text.startswith("\\\n", self.pos + 1):  # an older $((, or hidden in a joined line
            raise Unreadable("an unusual use of $")
        if following == "(":
            self._command_or_sum(draft, quoted=quoted)
        elif following == "{":
            self._parameter(draft, quoted=quoted)
        elif following == "'" and not quoted:
            self._ansi_c(draft)
        elif following == '"' and not quoted:
            self.pos += 1
            self._double_quoted(draft)
        else:
            match = _NAME.match(self.text, self.pos)
            if match is None:
                draft.quoted("$")
            else:
                draft.variable(match[0], match[1], splits=not quoted)
            self.pos = match.end() if match else self.pos + 1

    def _command_or_sum(self, draft: _Draft, *, quoted: bool) -> None:
        start = self.pos
        draft.unknown("$(...)", splits=not quoted)
        if self.peek(2) == "(" and self.read_sum(self.pos + 3):
            return
        self.pos += 2
        self.substitution()
        draft.pieces[-1] = Piece("output", "$(...)", self.text[start + 2 : self.pos - 1], not quoted)

    def read_sum(self, start: int) -> bool:
        """Pass over a sum that starts at `start`; False where none is read, though bash may still find one."""
        found = self._sum(start)
        self.found.computes = self.found.computes or not found
        return found

    def _sum(self, start: int) -> bool:
        """Pass over an arithmetic expression that starts at `start`, up to its two parentheses, if there is one."""
        match = _ARITHMETIC.match(self.text, start)
        if match is None:
            return False
        if _LETTERS.search(match[0]):
            self.found.computes = True
        self.pos = match.end()
        return True

    def _ansi_c(self, draft: _Draft) -> None:
        match = _ANSI_C.match(self.text, self.pos)
        if match is None:
            raise Unreadable("a quote that is never closed")
        decoded, known = _decode(match[1])
        draft.quoted(decoded) if known else draft.unknown(match[0], splits=False)
        self._note_code(decoded)
        self.pos = match.end()

    def _parameter(self, draft: _Draft, *, quoted: bool) -> None:
        match = _PARAMETER.match(self.text, self.pos)
        if match is None:
            raise Unreadable("an unusual ${...}")
        self.pos = match.end()
        if self.peek() == "}":
            self.pos += 1
            draft.variable(match[0] + "}", match[0][2:], splits=not quoted)
            return
        draft.unknown(match[0] + "...}", splits=not quoted or "@" in match[0])
        if self.peek() in ("@", "["):
            raise Unreadable("an unusual ${...}")
        if not _HARMLESS_OPERATION.match(self.text, self.pos):
            self.found.assign(match[0][2:].partition("[")[0].lstrip("#"), None)
            self.found.taints.append("a ${...} that computes or assigns")
            self.found.computes = True
        self._operand(quoted=quoted)

    def _operand(self, *, quoted: bool) -> None:
        """Pass over what stands behind the operator of a `${...}`, up to the brace that closes it."""
        inside = _Draft()
        while (char := self.peek()) != "}":
            if not char or (quoted and char in "'\""):  # quotes within quoted braces follow rules of their own
                raise Unreadable("an unusual ${...}")
            if char in "'\"\\$`" or (not quoted and char in "<>" and self.peek(1) == "("):
                self._quoted_piece(inside, '$`"\\\n}') if quoted else self._piece(inside)
            else:
                self.pos += 1
        self.pos += 1

    def _backticks(self, draft: _Draft, *, quoted: bool) -> None:
        match = _BACKTICKS.match(self.text, self.pos)
        if match is None:
            raise Unreadable("a back-tick that is never closed")
        if _COMMENT.search(match[1]):  # a comment in back-ticks may or may not hold the closing one
            raise Unreadable("a comment in back-ticks")
        draft.unknown("`...`", splits=not quoted)
        self.nested(re.sub(r'\\([$`\\"])' if quoted else r"\\([$`\\])", r"\1", match[1]))
        self.pos = match.end()

    def _array(self, draft: _Draft) -> None:
        draft.unknown("(...)", splits=True)
        self.pos += 1
        while True:
            self.skip(_GAP)
            if self.peek() == ")":
                self.pos += 1
                return
            before = self.pos
            if self.peek() in ("#", "") or (self.word() and self.pos == before):
                raise Unreadable("an unusual array")


def _decode(text: str) -> tuple[str, bool]:
    """Decode the escapes of `$'...'`; False when there is one whose value is not certain here."""
    uncertain = False

    def value(match: re.Match[str]) -> str:
        nonlocal uncertain
        if match["sign"]:
            return _ANSI_SIGNS[match["sign"]]
        digits = int(match["octal"], 8) if match["octal"] else int(match["hex"] or "0", 16)
        uncertain = uncertain or bool(match["other"]) or not 0 < digits < 128
        return match[0] if match["other"] else chr(digits % 128)

    return _ANSI_ESCAPE.sub(value, text), not uncertain
