"""`chimera code --models`: a race of several agents at one task, line by line, and who won it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chimera.assembly.scrubbing import scrubbed, scrubbed_text
from chimera.assembly.settings import RuleLists, Settings
from chimera.cli.event_json import event_json
from chimera.cli.exits import FAILED, OK
from chimera.cli.holding import Ask
from chimera.cli.interrupts import Interrupts
from chimera.cli.options import BEST, CodeOptions, Mode, Output
from chimera.cli.recording import begin_journal
from chimera.cli.screen import make_console
from chimera.cli.setup import Bench, open_bench
from chimera.errors import ConfigError, OutsideError
from chimera.events import EventBus
from chimera.text import clean, one_line

if TYPE_CHECKING:
    from rich.table import Table

    from chimera.assembly.lanes import Lane, LaneEvent, LaneScore, LaneSpec, Race

__all__ = ["lane_maker", "lanes_of", "race_on_screen", "run_race", "score_table"]

_MOOD = {"finished": "green", "failed": "bold red", "cancelled": "yellow"}


def run_race(options: CodeOptions, task: str) -> int:
    """Race the lanes of the options at `task`, print who did how, apply what shall be applied, and return the code.

    It is 0 when a lane succeeded and what was to be applied is applied.
    """
    from chimera.assembly.lanes import Race

    _require_alone(options)
    with ExitStack() as stack:
        bench = stack.enter_context(open_bench(options, default_mode=Mode.ACCEPT_EDITS))
        make = lane_maker(bench)
        race = Race(task, lanes_of(options), bench.project, make_agent=make, check=options.check)
        interrupts = Interrupts(race.cancel)
        stack.enter_context(race)
        chosen = _chosen(race, options.apply)  # a name that is none is told before anything is paid for
        teller = _Teller(race, options.output)
        try:
            with interrupts.held():
                asyncio.run(_watch(race, teller, interrupts))
        except asyncio.CancelledError:
            teller.note("interrupted")
        if interrupts.exit_code is not None:
            return interrupts.exit_code
        return _finish(race, teller, chosen)


def race_on_screen(options: CodeOptions) -> int:
    """Open the full-screen app with the lanes of the options, and return the exit code."""
    from chimera.tui.racing import Course
    from chimera.tui.start import run_race as run

    _require_alone(options)
    if options.apply is not None:
        raise ConfigError("--apply needs a task: -p TASK; on the screen, /apply does it")
    with open_bench(options, default_mode=Mode.ASK) as bench:
        return run(bench, Course(lanes_of(options), lane_maker(bench, streams=True), options.check))


def lanes_of(options: CodeOptions) -> list[LaneSpec]:
    """Return the lanes that the options name."""
    from chimera.assembly.lanes import parse_lanes

    return parse_lanes(str(options.lanes))


def lane_maker(bench: Bench, *, streams: bool = False) -> Any:
    """Return a function that makes the agent of a lane: held to the same plugins, rules and mode as any other, in a
    project folder of its own, and recorded as one lane of a session.

    The agent publishes on the bus, and asks the person, that the function is handed besides the lane, if any."""

    def make(lane: Lane, bus: EventBus | None = None, ask: Ask | None = None) -> Any:
        options = replace(bench.options, model=lane.spec.model, loop=lane.spec.loop)
        settings = _moved(bench.settings, bench.project, lane.root)
        own = replace(bench, options=options, settings=settings, project=lane.root)
        journal = begin_journal(options, bench.project, lane.spec.model, lane.name)
        try:
            return own.assemble(bus or EventBus(), ask, interactive=streams, lane=lane.name, journal=journal)
        except BaseException:
            if journal is not None:
                journal.close()
            raise

    return make


def _moved(settings: Settings, project: Path, root: Path) -> Settings:
    """Return settings whose rules hold in a copy of the project too where they name the project by its whole path."""

    def both(rules: tuple[str, ...]) -> tuple[str, ...]:
        moved = (rule.replace(str(project), str(root)) for rule in rules if str(project) in rule)
        return (*rules, *moved)

    written = settings.permissions
    return replace(settings, permissions=RuleLists(both(written.deny), both(written.ask), both(written.allow)))


def _require_alone(options: CodeOptions) -> None:
    for name, value in (("--model", options.model), ("--loop", options.loop), ("--resume", options.resume)):
        if value is not None:
            raise ConfigError(f"{name} is for one agent: in a race, --models says what runs, as MODEL or MODEL:LOOP")


def _chosen(race: Race, wanted: str | None) -> str | None:
    """Return the name of the lane that is to be applied; lanes may be named by their number too."""
    if wanted is None or wanted == BEST or wanted in race.lanes:
        return wanted
    names = list(race.lanes)
    if wanted.isascii() and wanted.isdigit() and 0 < int(wanted) <= len(names):
        return names[int(wanted) - 1]
    raise ConfigError(f"there is no lane {wanted!r} to apply; say {BEST}, a number, or one of {', '.join(names)}")


async def _watch(race: Race, teller: _Teller, interrupts: Interrupts) -> None:
    from chimera.assembly.lanes import make_room

    make_room(len(race.lanes))
    with interrupts.watching():
        events = race.events()
        try:
            async for event in events:
                teller.see(event)
        finally:
            await events.aclose()


def _finish(race: Race, teller: _Teller, chosen: str | None) -> int:
    lane = race.best if chosen == BEST else chosen
    applied, problem = None, None
    if lane is not None and chosen is not None:
        try:
            race.apply(lane)
            applied = lane
        except OutsideError as refused:
            problem = str(refused)
    elif chosen is not None:
        problem = "no lane succeeded, so none was applied"
    teller.end(applied, problem)
    return OK if problem is None and (applied is not None or race.best is not None) else FAILED


class _Teller:
    """Tells of a race: in text, events go to standard error and the scores to standard output; else all is JSON."""

    def __init__(self, race: Race, output: Output) -> None:
        self._race = race
        self._output = output
        self._console = make_console(stderr=True)
        self._numbers = {name: number for number, name in enumerate(race.lanes, 1)}
        for name, number in self._numbers.items():
            self.note(f"lane {number}: {clean(name)}")

    def note(self, text: str) -> None:
        if self._output is Output.TEXT:
            self._console.print(f"~ {text}", style="dim", soft_wrap=True)

    def see(self, item: LaneEvent) -> None:
        from chimera.assembly.driver import render_event

        event = scrubbed(item.event)
        if self._output is Output.STREAM_JSON:
            _write({"lane": item.lane, **event_json(event, ())})
        elif self._output is Output.TEXT:
            text = render_event(event)
            for line in clean(text or "").strip().splitlines():
                self._console.print(f"[{self._numbers[item.lane]}] {line}", soft_wrap=True)

    def end(self, applied: str | None, problem: str | None) -> None:
        if self._output is Output.TEXT:
            self._end_text(applied, problem)
            return
        race, best = self._race, self._race.best
        lanes = [{**_score_json(score), "diff": race.diff(score.name)} for score in race.scoreboard]
        kind = {"type": "race"} if self._output is Output.STREAM_JSON else {}
        _write({**kind, "lanes": lanes, "best": best, "applied": applied, "problem": problem})

    def _end_text(self, applied: str | None, problem: str | None) -> None:
        race, best = self._race, self._race.best
        make_console().print(score_table(race.scoreboard, self._numbers))
        if problem is not None:
            self._console.print(clean(problem), style="bold red", soft_wrap=True)
        elif applied is not None:
            self.note(f"lane {self._numbers[applied]} was applied: {_files(race, applied)}")
        elif best is not None:
            sys.stdout.write(f"\n{clean(race.diff(best))}")
            self.note(f"nothing was applied; this is what lane {self._numbers[best]} did. --apply best applies it")


def score_table(scores: Iterable[LaneScore], numbers: dict[str, int]) -> Table:
    """Return the scores as a table that fits on 80 columns. `numbers` are those of the lanes, by their names."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("lane", overflow="fold", min_width=10)
    for heading in ("ended", "check"):
        table.add_column(heading, overflow="fold")
    for heading in ("time", "tokens", "cost", "blocks", "files"):
        table.add_column(heading, justify="right", no_wrap=True)
    for score in scores:
        check = "" if score.check is None else "passed" if score.check.passed else "failed"
        table.add_row(
            str(numbers[score.name]),
            Text(one_line(score.name, 200)),
            Text(
                score.state if score.state != "failed" else one_line(scrubbed_text(score.reason), 40),
                _MOOD.get(score.state, ""),
            ),
            Text(check, {"passed": "green", "failed": "red"}.get(check, "")),
            f"{score.seconds:.1f}s",
            f"{score.input_tokens + score.output_tokens:,}",
            f"${score.cost_usd:.4f}",
            str(score.blocks),
            str(score.files),
        )
    return table


def _score_json(score: LaneScore) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(score).items() if not name.startswith("_")}
    if score.state != "finished":  # what such a run puts out repeats its reason
        fields["output"] = "" if score.state == "cancelled" else scrubbed_text(score.output)
    return {**fields, "reason": scrubbed_text(score.reason), "seconds": round(score.seconds, 3), "won": score.won}


def _files(race: Race, lane: str) -> str:
    count = race.lanes[lane].score.files
    return f"{count} {'file' if count == 1 else 'files'}"


def _write(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value, default=str) + "\n")
    sys.stdout.flush()
