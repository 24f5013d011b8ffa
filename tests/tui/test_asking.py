from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Any

from chimera.core.loop_events import LoopEvent, LoopEventType
from chimera.events import InterceptorEvent
from chimera.permissions import RuleSet
from chimera.tui.approvals import Answer, Question, Verdict
from chimera.tui.asking import Asking, Rewrites
from chimera.types import PendingApproval, ToolCall


def call(command: str) -> ToolCall:
    return ToolCall("1", "bash", {"command": command})


def rewrite(before: Any, after: Any) -> LoopEvent:
    event = InterceptorEvent(seam="tool_call", decision="replaced", before=before, after=after)
    return LoopEvent(LoopEventType.INTERCEPTOR, event)


def test_the_original_is_found_through_a_chain_and_by_value_alone() -> None:
    rewrites = Rewrites()
    rewrites.see(rewrite(call("a"), call("b")))
    rewrites.see(rewrite(call("x"), call("y")))
    rewrites.see(rewrite(call("b"), call("c")))
    rewrites.see(rewrite(call("b"), None))
    rewrites.see(LoopEvent(LoopEventType.ERROR, "no"))
    assert rewrites.original_of(call("c")) == call("a")
    assert rewrites.original_of(call("y")) == call("x")
    assert rewrites.original_of(call("z")) is None


def test_few_rewrites_are_remembered() -> None:
    rewrites = Rewrites(at_most=2)
    for letter in "abc":
        rewrites.see(rewrite(call(letter), call(f"{letter}!")))
    assert rewrites.original_of(call("a!")) is None
    assert rewrites.original_of(call("c!")) == call("c")


def asked(asking: Asking, approval: PendingApproval, lane: str = "") -> Thread:
    thread = Thread(target=asking.ask, args=(approval, lane))
    thread.start()
    return thread


def approval(command: str = "ls") -> PendingApproval:
    return PendingApproval(call(command), "bash", {"command": command}, "why")


class Person:
    """Collects the questions that are put before somebody."""

    def __init__(self, *, there: bool = True) -> None:
        self.there = there
        self.questions: list[Question] = []

    def show(self, question: Question) -> bool:
        self.questions.append(question)
        return self.there


def wait_for_question(person: Person, count: int = 1) -> Question:
    while len(person.questions) < count:
        pass
    return person.questions[count - 1]


def test_the_thread_that_asks_waits_for_the_answer(tmp_path: Path) -> None:
    person, waiting = Person(), approval()
    asking = Asking(tmp_path, person.show)
    thread = asked(asking, waiting)
    question = wait_for_question(person)
    assert not waiting.decided
    asking.settle(question, Verdict(Answer.NO, "not today"))
    thread.join(5)
    assert (waiting.approved, waiting.message) == (False, "not today")


def test_nobody_there_is_a_no(tmp_path: Path) -> None:
    waiting = approval()
    Asking(tmp_path, Person(there=False).show).ask(waiting)
    assert (waiting.decided, waiting.approved) == (True, False)


def test_what_was_allowed_for_the_session_is_not_asked(tmp_path: Path) -> None:
    person = Person()
    asking = Asking(tmp_path, person.show)
    thread = asked(asking, approval())
    asking.settle(wait_for_question(person), Verdict(Answer.SESSION))
    thread.join(5)
    again, other = approval(), approval("ls -l")
    asking.ask(again)
    assert again.approved
    assert len(person.questions) == 1
    thread = asked(asking, other)
    asking.settle(wait_for_question(person, 2), Verdict(Answer.ONCE))
    thread.join(5)


def test_one_lane_gives_up_and_the_other_still_waits(tmp_path: Path) -> None:
    person = Person()
    asking = Asking(tmp_path, person.show)
    first, second = approval(), approval()
    threads = [asked(asking, first, "a"), asked(asking, second, "b")]
    wait_for_question(person, 2)
    asking.give_up("a")
    threads[0].join(5)
    assert (first.approved, second.decided) == (False, False)
    asking.give_up()
    threads[1].join(5)
    assert second.decided


def test_a_promise_that_the_settings_would_break_is_not_offered(tmp_path: Path) -> None:
    for policy, lasting in (
        (RuleSet(root=tmp_path), True),
        (RuleSet(ask=["Bash"], root=tmp_path), False),
        (None, False),
    ):
        person = Person()
        asking = Asking(tmp_path, person.show)
        asking.policy = policy
        thread = asked(asking, approval())
        question = wait_for_question(person)
        assert question.lasting is lasting
        asking.settle(question, Verdict(Answer.NO))
        thread.join(5)


def test_a_file_that_cannot_be_shown_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "large").write_text("x" * 300_000)
    for path in ("binary", "large", "missing", "nul\0"):
        person = Person(there=False)
        written = ToolCall("1", "write_file", {"path": path, "content": "y"})
        Asking(tmp_path, person.show).ask(PendingApproval(written, "write_file", written.arguments, "why"))
        assert person.questions[0].was is None


def test_threads_of_all_lanes_may_tell_of_rewrites_at_once() -> None:
    rewrites = Rewrites(at_most=1_000)

    def tell(lane: str) -> None:
        for number in range(100):
            rewrites.see(rewrite(call(f"{lane}{number}"), call(f"{lane}{number}!")))

    threads = [Thread(target=tell, args=(lane,)) for lane in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(rewrites.original_of(call(f"{lane}{number}!")) for lane in "abcd" for number in range(100))
