from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.fences import fences
from tests.docs.test_pages import RUNNER, anchors, without_code

PAGE = """# Title

```python
a = 1
```
text `x`
  ```console
  $ ls
  ```
````text plain
```python
no = "code"
```
````
"""


def test_fences_are_found_with_their_lines() -> None:
    found = [(fence.line, fence.info, fence.code) for fence in fences(PAGE)]
    assert found == [
        (4, ("python",), "a = 1\n"),
        (8, ("console",), "$ ls\n"),
        (11, ("text", "plain"), '```python\nno = "code"\n```\n'),
    ]


def test_an_open_fence_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"page\.md:2"):
        list(fences("text\n```python\nx = 1\n", "page.md"))


def test_prose_is_told_from_code() -> None:
    assert "a = 1" not in without_code(PAGE)
    assert "Title" in without_code(PAGE)


def test_anchors_are_made_as_renderers_make_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# The four seams\n\n## `tool_call`: a gate, closed\n", encoding="utf-8")
    assert anchors(page) == {"the-four-seams", "tool_call-a-gate-closed"}


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("1 / 0", 'page.md", line 7'),
        ("import warnings; warnings.warn('old')", "UserWarning"),
        ("import socket; socket.create_connection(('192.0.2.1', 9))", "connects to 192.0.2.1"),
    ],
)
def test_a_fence_that_fails_fails_the_page(tmp_path: Path, code: str, words: str) -> None:
    listing = tmp_path / "fences.json"
    listing.write_text(f'[[3, "a = 1\\n"], [7, "assert a == 1; {code}\\n"]]', encoding="utf-8")
    command = [sys.executable, "-W", "error", str(RUNNER), "page.md", str(listing)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert words in done.stderr
