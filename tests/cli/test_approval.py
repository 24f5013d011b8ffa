from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from chimera.cli.approval import Approver
from chimera.cli.screen import Screen
from chimera.types import PendingApproval, ToolCall
from tests.cli.consoles import recorded


class Person:
    """Answers from a list; an exception in it is raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.cancelled = 0
        self.console, self.out = recorded(width=60)

    def read(self, prompt: str) -> str:
        self.console.print(prompt)
        answer = self.answers.pop(0)
        if isinstance(answer, str):
            return answer
        if isinstance(answer, BaseException):
            raise answer
        answer()
        raise AssertionError("the key was not noticed")

    def cancel(self) -> None:
        self.cancelled += 1

    def asked(self, name: str, arguments: dict[str, Any]) -> PendingApproval:
        call = ToolCall("1", name, arguments).sealed()
        approval = PendingApproval(call, call.name, call.arguments, f"{name} needs approval")
        Approver(Screen(self.console), self.read, self.cancel)(approval)
        return approval


@pytest.mark.parametrize("answer", ["y", "Y", "yes", " yes "])
def test_only_a_clear_yes_runs_it(answer: str) -> None:
    assert Person(answer).asked("bash", {"command": "ls"}).approved


@pytest.mark.parametrize("answer", ["n", "no", "yep", "yes please", "ok", "1", "да"])
def test_everything_else_that_is_said_denies(answer: str) -> None:
    approval = Person(answer).asked("bash", {"command": "ls"})
    assert approval.decided
    assert not approval.approved


def test_what_was_said_is_the_reason() -> None:
    assert Person("use make").asked("bash", {}).message == "use make"
    assert Person("no").asked("bash", {}).message == ""


def test_silence_is_no_answer() -> None:
    person = Person("", "  ", "y")
    assert person.asked("bash", {}).approved
    assert not person.answers


def test_the_end_of_input_denies() -> None:
    person = Person(EOFError())
    assert not person.asked("bash", {}).approved
    assert person.cancelled == 0


@pytest.mark.parametrize("key", [KeyboardInterrupt(), lambda: os.kill(os.getpid(), signal.SIGINT)])
def test_ctrl_c_denies_and_cancels_the_turn(key: BaseException | Callable[[], None]) -> None:
    before = signal.getsignal(signal.SIGINT)
    person = Person(key)
    approval = person.asked("bash", {})
    assert approval.decided
    assert not approval.approved
    assert person.cancelled == 1
    assert signal.getsignal(signal.SIGINT) is before


def test_every_argument_is_shown() -> None:
    person = Person("n")
    person.asked("odd", {"path": "a.py", "list": [1, {"x": "y"}], "text": "one\ntwo\n"})
    assert person.out.getvalue() == (
        '? odd  (odd needs approval)\n  path: a.py\n  list: [1, {"x": "y"}]\n  text:\n    one\n    two\n'
        "Run it? [y]es, [n]o, [v]iew all, or say why not: \n"
    )


def test_changes_are_marked() -> None:
    person = Person("n")
    person.asked("edit_file", {"path": "a", "old_string": "x = 1", "new_string": "x = 2\ny = 3"})
    assert "  old_string:\n    - x = 1\n  new_string:\n    + x = 2\n    + y = 3\n" in person.out.getvalue()


def test_long_values_are_cut_with_a_note_and_shown_whole_on_demand() -> None:
    content = "\n".join(f"line {number}" for number in range(100))
    person = Person("v", "y")
    assert person.asked("write_file", {"path": "a", "content": content}).approved
    first, second = person.out.getvalue().split("? write_file")[1:]
    assert "line 29\n    (70 more lines; v shows them)" in first
    assert "line 30" not in first
    assert "line 99" in second


def test_a_long_command_is_shown_to_its_end() -> None:
    person = Person("n")
    person.asked("bash", {"command": "echo " + "a " * 500 + "; rm -rf /"})
    assert "; rm -rf /" in person.out.getvalue()


def test_what_is_asked_about_cannot_change_the_screen() -> None:
    person = Person("n")
    person.asked("bash\x1b[1A", {"command": "rm -rf /\r\x1b[2Kls", "x\x1b]0;t\x07": "\u202etxt"})
    shown = person.out.getvalue()
    assert not set(shown) & set("\x1b\r\x07\u202e")
    assert "rm -rf /␍␛[2Kls" in shown
