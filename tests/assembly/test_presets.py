from __future__ import annotations

import os
from pathlib import Path

import pytest

from chimera.assembly.presets import PRESETS, system_prompt

PRESET = PRESETS["explore"]


def test_the_prompt_holds_the_beginning_of_the_instructions(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes(b"Use tabs.\r\n" + "\U0001f600".encode() * 30_000)
    prompt = system_prompt(PRESET, tmp_path)
    assert str(tmp_path) in prompt
    assert prompt.rpartition("(AGENTS.md):\n")[2] == "Use tabs.\n" + "\U0001f600" * 19_990


@pytest.mark.parametrize("kind", ["nothing", "pipe", "device", "folder", "circle"])
def test_what_is_no_file_gives_no_instructions(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "AGENTS.md"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind != "nothing":
        path.symlink_to("/dev/zero" if kind == "device" else path)
    assert system_prompt(PRESET, tmp_path) == f"{PRESET.prompt}\n\nProject folder: {tmp_path}"
