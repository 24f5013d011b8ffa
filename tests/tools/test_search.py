"""search finds lines, leaves out what nobody wants, and no pattern can hold it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chimera.tools import SearchTool
from tests.tools.support import Env, failure, output


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("import os\n\ndef main():\n    return os.getpid()\n")
    (tmp_path / "src" / "b.ts").write_bytes(b"const main = 1\r\nMAIN\r\n")
    (tmp_path / "ignored.py").write_text("def main(): ...\n")
    (tmp_path / ".gitignore").write_text("ignored.py\n")
    return tmp_path


MORE = "[more than 1 lines match; narrow it down with path, glob or pattern]"


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        ({"pattern": "main"}, ["src/a.py:3:def main():", "src/b.ts:1:const main = 1"]),
        ({"pattern": r"^def \w+\(\):$"}, ["src/a.py:3:def main():"]),
        ({"pattern": "main", "glob": "*.{js,ts}"}, ["src/b.ts:1:const main = 1"]),
        ({"pattern": "MAIN$", "ignore_case": True}, ["src/b.ts:2:MAIN"]),
        ({"pattern": "main", "path": "src/a.py"}, ["src/a.py:3:def main():"]),
        ({"pattern": "main", "path": "ignored.py"}, ["ignored.py:1:def main(): ..."]),
        ({"pattern": "main", "path": "src", "glob": "/a.py"}, ["src/a.py:3:def main():"]),
        ({"pattern": "nothing like it"}, ["[no line matches]"]),
        ({"pattern": "^$", "glob": "a.py"}, ["src/a.py:2:"]),
        ({"pattern": "i", "limit": 1}, [".gitignore:1:ignored.py", MORE]),
    ],
)  # fmt: skip
def test_matching_lines(project: Path, args: dict[str, object], lines: list[str]) -> None:
    assert output(SearchTool(project), **args).split("\n") == lines


def test_metadata(project: Path) -> None:
    tool = SearchTool(project)
    assert tool.execute({"pattern": "main"}).metadata == {"matches": 2, "complete": True}
    assert tool.execute({"pattern": "main", "limit": 1}).metadata == {"matches": 1, "complete": False}


def test_binary_and_huge_files_are_counted_and_passed_over(project: Path) -> None:
    (project / "x.bin").write_bytes(b"main\0")
    with (project / "huge.txt").open("wb") as huge:
        huge.truncate(1 << 32)
    assert output(SearchTool(project), pattern="main").endswith("[2 files skipped: binary, unreadable or over 4.2 MB]")
    assert "too big" in failure(SearchTool(project), pattern="main", path="huge.txt")
    assert "binary" in failure(SearchTool(project), pattern="main", path="x.bin")


def test_symlinks_are_not_followed(project: Path) -> None:
    (project / "link.py").symlink_to("src/a.py")
    (project / "dir").symlink_to("src")
    assert output(SearchTool(project), pattern="def main").split("\n") == ["src/a.py:3:def main():"]


def test_long_lines_are_shown_around_the_match(project: Path) -> None:
    (project / "min.js").write_text("a" * 5000 + "needle" + "b" * 5000 + "\n" + "needle" + "c" * 5000)
    first, second = output(SearchTool(project), pattern="needle", glob="*.js").split("\n")
    assert re.fullmatch(r"min\.js:1:\.\.\.a{100}needleb{194}\.\.\.", first)
    assert re.fullmatch(r"min\.js:2:needlec{294}\.\.\.", second)


def test_many_matches_are_cut_to_what_a_result_may_hold(project: Path) -> None:
    (project / "many").write_text(("x" * 200 + "\n") * 1000)
    result = SearchTool(project).execute({"pattern": "x", "path": "many", "limit": 1000})
    assert len(result.output) < 28_200
    assert "narrow it down" in result.output
    assert len(output(SearchTool(project), pattern="x", path="many").split("\n")) == 101


@pytest.mark.parametrize("pattern", ["(", "[", "*a", "(?P<n>a)(?P<n>b)", "a{99999999999}", "(" * 5000 + ")" * 5000])
def test_patterns_that_are_wrong(project: Path, pattern: str) -> None:
    assert "is no Python regular expression" in failure(SearchTool(project), pattern=pattern)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "(.*a){30}b", r"^(\w+\s?)*$"])
def test_a_pattern_that_would_run_for_hours_is_stopped(project: Path, pattern: str) -> None:
    (project / "0.txt").write_text("def main\n")
    (project / "evil.txt").write_text("a" * 60 + "!\n")
    result = SearchTool(project, seconds=0.3).execute({"pattern": pattern})
    assert result.error is not None
    assert "matching took longer than 0.3 seconds; simplify the pattern" in result.error
    assert not result.metadata["complete"]


def test_what_was_found_before_the_time_was_up_is_returned(project: Path) -> None:
    (project / "0.txt").write_text("aaa\n")
    (project / "1.txt").write_text("a" * 60 + "!\n")
    result = SearchTool(project, seconds=0.3).execute({"pattern": "(a+)+$"})
    assert result.output == "0.txt:1:aaa"
    assert result.error


def test_a_cancelled_run_stops_it(project: Path) -> None:
    env = Env(project)
    env.cancelled = True
    assert SearchTool().execute({"pattern": "main"}, env).error == "cancelled"


def test_cancelling_while_the_pattern_runs(project: Path) -> None:
    class Later(Env):
        asked = 0

        @property
        def cancelled(self) -> bool:
            self.asked += 1
            return self.asked > 20

        @cancelled.setter
        def cancelled(self, value: bool) -> None: ...

    (project / "evil.txt").write_text("a" * 60 + "!\n")
    assert SearchTool().execute({"pattern": "(a+)+$"}, Later(project)).error == "cancelled"


def test_the_pattern_runs_where_it_cannot_hold_this_process(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setattr(sys, "executable", "/bin/true")
    assert "died; simplify the pattern" in failure(SearchTool(project), pattern="main")
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert "cannot start" in failure(SearchTool(project), pattern="main")


LINES = st.lists(st.text(st.sampled_from("ab1 .é"), max_size=6), min_size=1, max_size=8)
PATTERNS = st.sampled_from(["a", "^a", "b$", r"\d", "a.b", "[^a]", r"\bé", "", " +", "(?i)A"])


@settings(max_examples=30)
@given(lines=LINES, pattern=PATTERNS, crlf=st.booleans())
def test_it_finds_what_python_finds(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], pattern: str, crlf: bool
) -> None:
    root = tmp_path_factory.mktemp("search")
    end = "\r\n" if crlf else "\n"
    (root / "x").write_bytes("".join(line + end for line in lines).encode())
    found = output(SearchTool(root), pattern=pattern)
    wanted = [f"x:{number}:{line}" for number, line in enumerate(lines, 1) if re.search(pattern, line)]
    assert found.split("\n") == (wanted or ["[no line matches]"])
