"""Runs the demo on a console, and says at the end whether everything was as claimed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from chimera.cli.decisions import DecisionLog, decision_table
from chimera.cli.demo.claims import Claim, Evidence, claims_about
from chimera.cli.demo.repository import TESTS, Repository, SuiteRun
from chimera.cli.demo.script import TASKS, answer
from chimera.cli.exits import FAILED, OK
from chimera.cli.screen import Screen, print_beside
from chimera.cli.setup import unload_plugins
from chimera.core.loop_events import LoopEvent, LoopEventType
from chimera.events import EventBus
from chimera.plugins import PluginManager
from chimera.providers.faux import FauxProvider
from chimera.session import AgentSession
from chimera.tools.delegate import DelegateTool

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Demo"]

PACKS = ("plan-gate", "redactor", "delegate-spawner")
_PACE_SECONDS = 0.15
_TITLES = {
    True: ("A plan before an edit", "A credential in the output of a command", "A credential in your prompt, a helper"),
    False: ("No gate", "No redactor", "No redactor, no spawner"),
}


class Demo:
    """One run of the demo. `with_policy` False is the control: the same agent and the same model without packs."""

    def __init__(self, console: Console, *, with_policy: bool) -> None:
        self.console = console
        self.with_policy = with_policy
        self.screen = Screen(console)
        self.failed: list[Claim] = []
        self.checked = 0

    def run(self) -> int:
        """Show everything in a temporary folder, which is removed, and return the exit code."""
        with tempfile.TemporaryDirectory(prefix="chimera-demo-") as folder, _loaded(PACKS if self.with_policy else ()):
            repository = Repository(Path(folder).resolve() / "shop")
            repository.create()
            self._introduce(repository)
            self._work(repository)
            self._finish(repository)
        return self._conclude()

    def _work(self, repository: Repository) -> None:
        provider = FauxProvider(answer, on_exhausted="repeat", delay=_PACE_SECONDS * self.console.is_terminal)
        bus = EventBus()
        log = DecisionLog(bus)
        evidence = Evidence(repository, provider.requests, log.entries)

        def on_event(event: LoopEvent) -> None:
            self.screen.show(event)
            if not evidence.tests_after_first_edit and event.type is LoopEventType.TOOL_RESULT:
                evidence.tests_after_first_edit = repository.read(TESTS)

        self.screen.follow_sub_agents(bus)
        with AgentSession(
            project_dir=repository.root,
            provider=provider,
            event_bus=bus,
            on_event=on_event,
            extra_tools=[DelegateTool()],
        ) as session:
            for turn, task in enumerate(TASKS):
                self._heading(f"{turn + 1}. {_TITLES[self.with_policy][turn]}")
                prompt = task.format(credential=repository.credential)
                self._say(prompt)
                session.run(prompt)
                evidence.history = session.history
                self._compare(evidence)
                self._check(claims_about(turn, evidence, with_policy=self.with_policy))
        self._heading("What was decided")
        self._decisions(log)

    def _introduce(self, repository: Repository) -> None:
        packs = f"under three policy packs: {', '.join(PACKS)}" if self.with_policy else "without any policy"
        self.console.print("Chimera demo", style="bold")
        self.console.print(
            f"A coding agent works on a small repository {packs}. Agent, tools, files and commands are real. Only the "
            "model is scripted, so it costs nothing and needs no key."
        )
        self.console.print()
        self._fact("repository", f"{repository.root}, a temporary copy")
        self._fact("model", "scripted, in chimera/cli/demo/script.py")
        before = repository.run_tests()
        self._tests("tests", before)
        self._check([Claim("a test fails at the start", not before.passed)], quiet=True)

    def _finish(self, repository: Repository) -> None:
        after = repository.run_tests()
        self._heading("The tests, run once more, past the agent")
        self._tests("on disk", after)
        self._check([Claim("the tests pass at the end", after.passed)], quiet=True)
        if not self.with_policy:
            honest = _with_original_tests(repository)
            self._tests("as they were", honest)
            self._check([Claim("the original test still fails", not honest.passed)], quiet=True)

    def _say(self, prompt: str) -> None:
        from rich.text import Text

        print_beside(self.console, Text("> "), Text(prompt, "bold"))

    def _compare(self, evidence: Evidence) -> None:
        """Show the credential's way: what the conversation holds of a prompt with it, and what was sent of that."""
        kept = [message.content for message in evidence.history if message.role == "user"][-1]
        if evidence.credential not in kept:
            return
        sent = [message.content for message in evidence.requests[-1].messages if message.role == "user"][-1]
        self.console.print()
        self._fact("kept", kept)
        self._fact("sent", sent)

    def _tests(self, label: str, run: SuiteRun) -> None:
        self._fact(label, run.summary, "green" if run.passed else "red")

    def _fact(self, label: str, text: str, style: str = "") -> None:
        from rich.text import Text

        print_beside(self.console, Text(f"{label:<13}", "dim"), Text(text, style))

    def _heading(self, text: str) -> None:
        from rich.text import Text

        self.console.print()
        self.console.rule(Text(text, "bold"), align="left", style="dim")

    def _check(self, claims: Sequence[Claim], *, quiet: bool = False) -> None:
        """Count claims and show them; with `quiet` only those that do not hold."""
        shown = [claim for claim in claims if not (quiet and claim.holds)]
        if shown:
            self.console.print()
        for claim in shown:
            self.screen.verdict(claim.text, good=claim.holds)
        self.checked += len(claims)
        self.failed.extend(claim for claim in claims if not claim.holds)

    def _decisions(self, log: DecisionLog) -> None:
        if log.entries:
            self.console.print(decision_table(log.entries))
        else:
            self.screen.note("nothing: no plugin is loaded")

    def _conclude(self) -> int:
        self.console.print()
        if self.failed:
            self.console.print(f"{len(self.failed)} of {self.checked} claims do not hold.", style="bold red")
            return FAILED
        self.console.print(
            f"All {self.checked} claims were checked against what the model was sent and the files on disk.",
            style="bold green",
        )
        again = "chimera demo --no-policy" if self.with_policy else "chimera demo"
        other = "The same without policy" if self.with_policy else "The same under policy"
        self.console.print(f"{other}: {again}. Your own code: chimera code, and chimera doctor says what it needs.")
        return OK


@contextmanager
def _loaded(names: Sequence[str]) -> Iterator[None]:
    manager = PluginManager()
    try:
        for name in names:
            manager.load(name)
        yield
    finally:
        unload_plugins(manager)


def _with_original_tests(repository: Repository) -> SuiteRun:
    copy = Repository(repository.root.with_name("shop-with-original-tests"), repository.credential)
    shutil.copytree(repository.root, copy.root)
    (copy.root / TESTS).write_text(repository.original(TESTS), encoding="utf-8")
    return copy.run_tests()
