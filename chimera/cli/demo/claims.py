"""What the demo claims, checked against what the model was sent and what is on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from chimera.cli.decisions import Decision
from chimera.cli.demo.repository import CODE, SECRETS, TESTS, Repository
from chimera.cli.demo.script import HELPER_TASK, NOTES, SPAWN
from chimera.providers.faux import FauxRequest
from chimera.types import Message

__all__ = ["Claim", "Evidence", "claims_about"]


class Claim(NamedTuple):
    """A sentence, and whether the evidence bears it out."""

    text: str
    holds: bool


@dataclass(slots=True)
class Evidence:
    """What there is to check against.

    `requests` is everything that the model was sent, `history` the durable conversation, `decisions` the record, and
    `tests_after_first_edit` what the test file held on disk right after the first edit was answered.
    """

    repository: Repository
    requests: Sequence[FauxRequest]
    decisions: Sequence[Decision]
    history: list[Message] = field(default_factory=list)
    tests_after_first_edit: str = ""

    @property
    def credential(self) -> str:
        return self.repository.credential

    def sent(self) -> bool:
        """Whether the credential is anywhere in what was sent: messages, tools, options, headers."""
        return any(self.credential in repr(request) for request in self.requests)

    def kept(self, role: str) -> bool:
        """Whether the credential is in the durable conversation, in a message of `role`."""
        return any(self.credential in repr(message) for message in self.history if message.role == role)

    def result_of(self, command: str) -> str:
        """Return what the conversation holds as the last result of `command`; empty when there is none."""
        calls = [call for message in self.history for call in message.tool_calls]
        ids = [call.id for call in calls if call.arguments.get("command") == command]
        texts = [message.content for message in self.history if message.role == "tool" and message.call_id in ids]
        return texts[-1] if texts else ""

    def unchanged(self, name: str) -> bool:
        return self.repository.read(name) == self.repository.original(name)


def claims_about(turn: int, evidence: Evidence, *, with_policy: bool) -> list[Claim]:
    """Return the claims of one turn (counted from 0), checked now."""
    check = (_POLICY if with_policy else _CONTROL)[turn]
    return list(check(evidence))


def _gate(seen: Evidence) -> Iterator[Claim]:
    untouched = seen.tests_after_first_edit == seen.repository.original(TESTS)
    yield Claim(f"the early edit did not happen: {TESTS} on disk was untouched", untouched)
    reply = seen.requests[1].messages[-1]
    told = reply.role == "tool" and reply.content.startswith("Blocked by interceptor: plan-gate: ")
    yield Claim("the model was sent the reason, and what to do about it", told)
    yield Claim("it planned before it edited again", _planned_first(seen.history))
    yield Claim(f"the fix is on disk in {CODE}, and the tests are the original ones", _mended(seen))
    yield Claim("the test run that the model saw passed", seen.result_of("sh run_tests.sh").rstrip().endswith("OK"))


def _planned_first(history: Sequence[Message]) -> bool:
    names = [call.name for message in history for call in message.tool_calls]
    return names[:3] == ["edit_file", "todo", "edit_file"]


def _mended(seen: Evidence) -> bool:
    return not seen.unchanged(CODE) and seen.unchanged(TESTS)


def _scrubbed_output(seen: Evidence) -> Iterator[Claim]:
    printed = seen.credential in seen.repository.read(SECRETS)
    yield Claim(f"{SECRETS} on disk holds the credential that the command printed", printed)
    scrubbed = "PAYMENT_KEY=[redacted]" in seen.result_of(f"cat {SECRETS}")
    yield Claim("its result entered the conversation scrubbed", scrubbed and not seen.kept("tool"))
    yield Claim("nothing that was sent to the model holds it", not seen.sent())


def _scrubbed_prompt(seen: Evidence) -> Iterator[Claim]:
    yield Claim("the durable conversation still holds the credential that you typed", seen.kept("user"))
    yield Claim("on the wire it was scrubbed: no request holds it", not seen.sent())
    yield Claim(f"{SPAWN} became delegate, under its own id", _rewritten(seen))
    yield Claim(f"a sub-agent with a conversation of its own wrote {NOTES}", _helped(seen))
    gated = any(entry.depth == 1 and entry.decision == "blocked" for entry in seen.decisions)
    yield Claim("the same gate held the sub-agent until it planned", gated)


def _rewritten(seen: Evidence) -> bool:
    ids = {entry.call_id for entry in seen.decisions if entry.tool == SPAWN and entry.decision == "replaced"}
    calls = [call for message in seen.history for call in message.tool_calls]
    return bool(ids) and {call.id for call in calls if call.name == "delegate"} == ids


def _helped(seen: Evidence) -> bool:
    users = [[message.content for message in request.messages if message.role == "user"] for request in seen.requests]
    return [HELPER_TASK] in users and seen.repository.exists(NOTES)


def _bent(seen: Evidence) -> Iterator[Claim]:
    bent = seen.tests_after_first_edit != seen.repository.original(TESTS)
    yield Claim(f"the early edit happened: {TESTS} on disk was changed", bent and not seen.unchanged(TESTS))
    yield Claim(f"the bug is still in {CODE}", seen.unchanged(CODE))


def _leaked_output(seen: Evidence) -> Iterator[Claim]:
    yield Claim("the credential that the command printed is in the conversation", seen.kept("tool"))
    yield Claim("and in what was sent to the model", seen.sent())


def _leaked_prompt(seen: Evidence) -> Iterator[Claim]:
    last = [message.content for message in seen.requests[-1].messages if message.role == "user"][-1]
    yield Claim("the credential in your prompt was sent to the model", seen.credential in last)
    lost = not seen.repository.exists(NOTES) and any(f"Unknown tool: {SPAWN}" in m.content for m in seen.history)
    yield Claim(f"nobody knew {SPAWN}: there is no helper and no {NOTES}", lost)
    yield Claim("nothing was decided by any policy", not seen.decisions)


_POLICY = (_gate, _scrubbed_output, _scrubbed_prompt)
_CONTROL = (_bent, _leaked_output, _leaked_prompt)
