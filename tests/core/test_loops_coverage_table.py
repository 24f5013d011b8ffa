"""What the loops' page says of coverage is what was recorded, and what was recorded is what is promised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from chimera.core.loop_config import LoopConfig
from tests.architecture.source import ROOT, python_files
from tests.core.loops.coverage import LOOPS, SITUATIONS, Record, Seen, Subject, cell, measured
from tests.core.loops.coverage_table import PAGE, rendered, tables, updated
from tests.core.loops.scenes import SCENES

ALL = frozenset({"context", "provider_request", "tool_call", "tool_result"})
BEFORE_THE_MODEL = frozenset({"context", "provider_request"})
AROUND_TOOLS = frozenset({"tool_call", "tool_result"})
PROMISED = {
    **dict.fromkeys(SITUATIONS, ALL),
    "approved call": frozenset({"tool_call"}),
    "call after it": AROUND_TOOLS,
    "nested call": AROUND_TOOLS,
    "summary": BEFORE_THE_MODEL,
    "internal": frozenset(),
}
WITH_INTERNAL_CALLS = {"TreeOfThought", "AutonomousLoop"}
NOT_OF_THE_AGENT_LOOP = {"`iter_steps`", "`async_iter_steps`", "approved call", "call after it"}
CELLS = [pytest.param(subject, name, id=f"{subject.name}-{name}") for subject in LOOPS for name in SITUATIONS]


@pytest.mark.parametrize(("subject", "situation"), CELLS)
def test_every_cell_is_as_promised(subject: Subject, situation: str) -> None:
    record = SITUATIONS[situation](subject)
    absent = (situation == "internal" and subject.name not in WITH_INTERNAL_CALLS) or (
        subject.name == "AgentLoop" and situation in NOT_OF_THE_AGENT_LOOP
    )
    assert (record is None) == absent
    if record is not None:
        assert cell(record) == PROMISED[situation]
        wire, bodies = PROMISED[situation] & BEFORE_THE_MODEL, PROMISED[situation] & AROUND_TOOLS
        assert bool(record.envelopes) == bool(wire or situation == "internal")
        assert bool(record.bodies) == bool(bodies)


def test_the_page_shows_what_was_recorded() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == updated(page, tables(measured())), "run `python -m tests.core.loops.coverage_table`"


def test_every_loop_is_recorded() -> None:
    """A loop that is added to the package has to be added here."""
    files = {file for file in python_files("chimera") if file.startswith("chimera/core/loops/") and "/_" not in file}
    assert len(files) == 7
    loops = {type(scene.make(None)).__module__.replace(".", "/") + ".py" for scene in SCENES.values()}
    assert files <= loops
    assert len(LOOPS) == len(SCENES) + 1


def test_internal_calls_are_asked_for_at_two_places_which_say_why() -> None:
    sites = []
    for file in python_files("chimera"):
        lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
        found = [number for number, line in enumerate(lines) if "CompleteInternally(" in line and "class" not in line]
        for number in found:
            assert "Not intercepted: " in "".join(lines[number - 3 : number]), f"{file} does not say why"
        sites += [file] * len(found)
    assert sites == ["chimera/core/loops/autonomous.py", "chimera/core/loops/tree_of_thought.py"]


@pytest.mark.parametrize("seam", sorted(ALL))
def test_a_seam_that_is_missed_is_noticed(seam: str) -> None:
    """The recorder is no good if it finds marks where there are none."""
    plain = LOOPS[0].drives["run"]

    def blind(scene: Any, config: LoopConfig, *rest: Any) -> Sequence[Any]:
        assert config.interceptors is not None
        config = replace(config, interceptors=replace(config.interceptors, **{seam: []}))
        return plain(scene, config, *rest)

    record = SITUATIONS["`run`"](Subject("blind", SCENES["react"], {"run": blind}))
    assert record is not None
    assert cell(record) == ALL - {seam}


def test_calls_that_are_not_seen_alike_are_noticed() -> None:
    with pytest.raises(AssertionError, match="some were seen by"):
        cell(Record(envelopes=[ALL, BEFORE_THE_MODEL]))
    with pytest.raises(AssertionError, match="nothing happened"):
        cell(Record())


def test_a_gap_is_shown_in_both_tables() -> None:
    row: dict[str, Seen | None] = {name: PROMISED[name] for name in SITUATIONS}
    shown = tables({"whole": row, "leaky": {**row, "lane": ALL - {"context"}}, "odd": {**row, "internal": None}})
    assert "| `context` | conversation calls only | no | yes |" in shown["seams"]
    assert "| `tool_call` | yes | yes | yes |" in shown["seams"]
    assert "| PTR |" in shown["situations"]


def test_cells_are_short() -> None:
    assert [rendered(seen) for seen in (ALL, AROUND_TOOLS, frozenset(), None)] == ["CPTR", "TR", "none", ""]


def test_a_page_without_places_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for the table 'seams'"):
        updated("# Loops", {"seams": "| |"})
