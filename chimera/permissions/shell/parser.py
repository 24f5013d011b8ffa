"""Finding every simple command of a bash text, wherever it hides.

The reader is flat: it follows command positions and keeps count of parentheses and `case`, and does not check that the
rest of the grammar is in order. A text that bash would refuse may be read here; nothing that bash would run is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from chimera.permissions.shell.findings import Findings, Heredoc, Simple, Unreadable, Word
from chimera.permissions.shell.words import WordReader

__all__ = ["read_commands"]

MAX_DEPTH = 12
MAX_LENGTH = 200_000  # characters; the system takes no longer argument anyway
_BLANKS = re.compile(r"(?:[ \t]|\\\n)*")
_COMMENT = re.compile(r"#[^\n]*")
_OPERATOR = re.compile(r";;&|;;|;&|&&|\|\||\|&|&(?!>)|[;|()\n]")
_REDIRECT = re.compile(r"(?a)(\d+|\{[A-Za-z_]\w*\})?(<<<|<<-|<<|<>|<&|<(?!\()|>>|>&|>\||>(?!\())|(&>>|&>)")
_ASSIGNMENT = re.compile(r"(?a)[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_DUPLICATE = re.compile(r"(?a)(?:\d+-?|-)\Z")
_TIME_OPTIONS = re.compile(r"(?:[ \t]+(?:-p|--)(?=[ \t]))*")
_IN = re.compile(r"in(?=[ \t\n;]|\Z)")
_LOOP_SUM = re.compile(r"\(\((?:[\w\s+\-*/%<>=!&|^~?:,.;()]|\$(?!\())*?\)\)")
_PARENTHESES = re.compile(r"\([ \t]*\)")
_DELIMITER = re.compile(r"[\w.!@%+:,/-]+|'[^'\n]*'|\"[^\"\\$`\n]*\"|\\\w+")
_CODE = re.compile(r"[$`]")
_TRANSPARENT = frozenset({"if", "then", "elif", "else", "fi", "do", "done", "while", "until", "{", "}", "!"})
_COMPARISONS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"})
_CASE_ENDS = frozenset({";;", ";&", ";;&"})


def read_commands(text: str, found: Findings, depth: int = 0) -> None:
    """Add to `found` what `text` runs. What cannot be read becomes a doubt, after the commands before it."""
    try:
        if depth > MAX_DEPTH or len(text) > MAX_LENGTH or "\0" in text:
            raise Unreadable("it is too long or nested too deeply, or holds a NUL character")
        _Parser(text, found, depth).parse(closed=False)
    except (Unreadable, RecursionError) as why:
        found.doubts.append(f"the command text cannot be read for certain ({why})")


class _Parser(WordReader):
    def __init__(self, text: str, found: Findings, depth: int) -> None:
        super().__init__(text, found, depth)
        self._pending: list[Heredoc] = []
        self._open: list[str] = []  # parentheses and `case`, innermost last
        self._inside = 0  # command substitutions being read

    def nested(self, text: str) -> None:
        read_commands(text, self.found, self.depth + 1)

    def substitution(self) -> None:
        if self._inside + self.depth > MAX_DEPTH:
            raise Unreadable("commands nested too deeply")
        start, pending, open_ = self.pos, self._pending, self._open
        self._pending, self._open = [], []
        self._inside += 1
        self.parse(closed=True)
        self._inside -= 1
        if self._pending or (pending and "\n" in self.text[start : self.pos]):
            raise Unreadable("a here-document around or across a substitution")
        self._pending, self._open = pending, open_

    def parse(self, *, closed: bool) -> None:
        """Read commands to the end of the text, or up to the parenthesis that closes them."""
        while True:
            self._blanks()
            operator = self._operator()
            if operator == ")" and closed and not self._open:
                return
            if operator is not None:
                self._punctuation(operator)
            elif self.peek():
                self._command()
            elif self._open or closed:
                raise Unreadable("it ends too early")
            else:
                return

    def _punctuation(self, operator: str) -> None:
        if operator == "(":
            if self.peek() != "(" or not self.read_sum(self.pos + 1):
                self._open.append("(")
        elif operator == ")":
            self._close("(", "a parenthesis too many")
        elif operator in _CASE_ENDS:
            self._close("case", f"{operator} outside of case")
            self._open.append("case")
            self._pattern()

    def _close(self, kind: str, problem: str) -> None:
        if not self._open or self._open.pop() != kind:
            raise Unreadable(problem)

    def _blanks(self) -> None:
        self.skip(_BLANKS)
        self.skip(_COMMENT)

    def _gap(self) -> None:
        """Pass over blanks, comments and newlines."""
        self._blanks()
        while self.peek() == "\n":
            self._operator()
            self._blanks()

    def _operator(self) -> str | None:
        match = _OPERATOR.match(self.text, self.pos)
        if match is None:
            return None
        self.pos = match.end()
        if match[0] == "\n":
            self._bodies()
        return match[0]

    def _command(self) -> None:
        simple, first = Simple(), True
        while True:
            self._blanks()
            redirect = _REDIRECT.match(self.text, self.pos)
            if redirect is not None:
                self.pos = redirect.end()
                self._redirect(redirect[1], redirect[2] or redirect[3], simple)
            elif not self._starts_word():
                break
            else:
                word = self.word()
                if first and word.bare and self._reserved(word.text):
                    return
                is_assignment = not simple.words and _ASSIGNMENT.match(word.text[: word.plain])
                (simple.assignments if is_assignment else simple.words).append(word)
            first = False
        if self.peek() == "(":
            self._function(simple)
        elif simple.words or simple.assignments:
            self.found.commands.append(simple)

    def _starts_word(self) -> bool:
        char = self.peek()
        return bool(char) and (char not in " \t\n;&|()<>" or (char in "<>" and self.peek(1) == "("))

    def _reserved(self, name: str) -> bool:
        """Act on a reserved word; False when it is none."""
        handler = _RESERVED.get(name)
        if handler is not None:
            handler(self)
        return handler is not None or name in _TRANSPARENT

    def _time(self) -> None:
        self.skip(_TIME_OPTIONS)

    def _coproc(self) -> None:
        self.found.doubts.append("coproc is not followed")

    def _named_function(self) -> None:
        self.found.functions.append(self._need_word().text)
        self._blanks()
        self.skip(_PARENTHESES)

    def _esac(self) -> None:
        self._close("case", "esac outside of case")

    def _case(self) -> None:
        self._need_word()
        self._gap()
        if self._need_word().text != "in":
            raise Unreadable("an unusual case")
        self._open.append("case")
        self._pattern()

    def _pattern(self) -> None:
        """Read the patterns of one branch, or the `esac` that stands in their place."""
        self._gap()
        if self.peek() == "(":
            self.pos += 1
        while True:
            word = self._need_word()
            if word.bare and word.text == "esac":
                self._esac()
                return
            self._blanks()
            separator = self._operator()
            if separator == ")":
                return
            if separator != "|":
                raise Unreadable("an unusual case pattern")

    def _for(self) -> None:
        self._blanks()
        if self.text.startswith("((", self.pos):
            if not self.skip(_LOOP_SUM):
                raise Unreadable("an unusual for")
            self.found.computes = True
            return
        name = self._need_word()
        self.found.commands.append(Simple(assignments=[Word(f"{name.text}=")]))
        self._gap()
        if not self.skip(_IN):
            self.found.assign(name.text, None)
            return
        self._blanks()
        while self._starts_word():
            self.found.assign(name.text, self.word())
            self._blanks()

    def _test(self) -> None:
        """Read `[[ ... ]]`: nothing in it is run, but for what is substituted."""
        while True:
            self.skip(_BLANKS)
            char = self.peek()
            if char in ("", "#", ";") or (char == "\n" and self._pending):
                raise Unreadable("an unusual [[ ]]")
            if not self._starts_word():
                self.pos += 1
                continue
            word = self.word()
            if word.bare and word.text == "]]":
                return
            if word.text in _COMPARISONS:
                self.found.computes = True

    def _function(self, simple: Simple) -> None:
        if len(simple.words) != 1 or simple.assignments or not self.skip(_PARENTHESES):
            raise Unreadable("an unexpected parenthesis")
        self.found.functions.append(simple.words[0].text)

    def _need_word(self) -> Word:
        self._blanks()
        if not self._starts_word():
            raise Unreadable("a word is missing")
        return self.word()

    def _redirect(self, descriptor: str | None, operator: str, simple: Simple) -> None:
        if operator in ("<<", "<<-"):
            document = self._heredoc(operator)
            if descriptor in (None, "0"):
                simple.stdin = document
            return
        target = self._need_word()
        if operator == "<<<":
            if descriptor in (None, "0"):
                simple.stdin = target
        elif operator in ("<", "<&"):
            self._input(operator, target, simple)
        elif operator != ">&" or not (target.exact and _DUPLICATE.match(target.text)):
            self.found.writes.append(target)
            if operator == "<>":
                self.found.reads.append(target)

    def _input(self, operator: str, target: Word, simple: Simple) -> None:
        if target.text.startswith(("/dev/tcp/", "/dev/udp/")):
            self.found.taints.append("it opens a network connection")
        if operator == "<" or not target.exact:
            self.found.reads.append(target)
            simple.source = target

    def _heredoc(self, operator: str) -> Heredoc:
        self.skip(_BLANKS)
        before = self.pos
        delimiter = self._need_word()
        raw = self.text[before : self.pos]
        if not _DELIMITER.fullmatch(raw) or "\\\n" in self.text[before - 2 : before]:
            raise Unreadable("an unusual here-document")
        document = Heredoc(delimiter.text, raw[0] in "'\"\\", operator == "<<-")
        self._pending.append(document)
        return document

    def _bodies(self) -> None:
        """Read the here-documents that were announced on the line that has just ended."""
        pending, self._pending = self._pending, []
        for document in pending:
            self._body(document)

    def _body(self, document: Heredoc) -> None:
        lines: list[str] = []
        while self.pos < len(self.text):
            line = self._line()
            bare = line.lstrip("\t") if document.strip_tabs else line
            if bare == document.delimiter:
                break
            self._check_line(bare, document)
            lines.append(bare)
        document.body = "\n".join(lines)
        if not document.literal:
            document.exact = _Parser(document.body, self.found, self.depth + self._inside + 1).expansions()
        elif _CODE.search(document.body):
            self.found.quoted_code = True

    def _line(self) -> str:
        end = self.text.find("\n", self.pos)
        line = self.text[self.pos :] if end < 0 else self.text[self.pos : end]
        self.pos = len(self.text) if end < 0 else end + 1
        return line

    def _check_line(self, line: str, document: Heredoc) -> None:
        """Refuse the lines of which bash may make a delimiter that is none by its looks."""
        if self._inside and line.startswith(document.delimiter):
            raise Unreadable("an unusual end of a here-document")
        if document.literal or not line.endswith("\\"):
            return
        here = self.pos
        following = self._line().lstrip("\t")
        self.pos = here
        if document.delimiter.startswith(line[:-1]) or following == document.delimiter:
            raise Unreadable("an unusual end of a here-document")


_RESERVED: dict[str, Callable[[_Parser], None]] = {
    "time": _Parser._time,
    "coproc": _Parser._coproc,
    "function": _Parser._named_function,
    "case": _Parser._case,
    "esac": _Parser._esac,
    "for": _Parser._for,
    "select": _Parser._for,
    "[[": _Parser._test,
}
