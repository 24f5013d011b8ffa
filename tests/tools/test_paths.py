"""No path leads out of the project folder, whatever it is made of."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.core.tool import BaseTool
from chimera.errors import ToolError
from chimera.tools import (
    ApplyPatchTool,
    EditFileTool,
    ListFilesTool,
    ReadFileTool,
    ReplaceInFileTool,
    SearchTool,
    WriteFileTool,
)
from chimera.tools._paths import MAX_DEPTH, Place, Project, explained, keeping_folders
from tests.tools.support import Env, failure, output, tree

SECRET = "the secret\n"


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A project beside a folder that holds a secret, with symlinks of every kind into it."""
    outside, project = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    (project / "sub").mkdir(parents=True)
    (project / "sub" / "inner.txt").write_text("inner\n")
    (project / "out").symlink_to(outside)
    (project / "relative-out").symlink_to("../outside")
    (project / "file-out").symlink_to(outside / "secret.txt")
    (project / "dangling").symlink_to(outside / "new.txt")
    (project / "twice").symlink_to("out")
    (project / "in").symlink_to("sub")
    return tmp_path


ESCAPES = [
    "../outside/secret.txt",
    "sub/../../outside/secret.txt",
    "./sub/./../../outside/secret.txt",
    "out/secret.txt",
    "relative-out/secret.txt",
    "twice/secret.txt",
    "file-out",
    "in/../out/secret.txt",
    "out/../outside/secret.txt",
    "{outside}/secret.txt",
    "{project}/../outside/secret.txt",
    "{project}/out/secret.txt",
    "..",
    "/",
    "/etc/passwd",
    "~/secret.txt",
    "~",
]
PATCH = "*** Begin Patch\n*** Update File: {path}\n-the secret\n+gone\n*** End Patch"


def calls(path: str) -> list[tuple[type[BaseTool], dict[str, Any]]]:
    """Every tool that takes a path, with arguments that would do something there."""
    block = "<<<<<<< SEARCH\nthe secret\n=======\ngone\n>>>>>>> REPLACE"
    return [
        (ReadFileTool, {"path": path}),
        (WriteFileTool, {"path": path, "content": "gone\n"}),
        (EditFileTool, {"path": path, "old_string": "secret", "new_string": "gone"}),
        (ReplaceInFileTool, {"path": path, "diff": block}),
        (ApplyPatchTool, {"patch": PATCH.format(path=path)}),
        (ApplyPatchTool, {"patch": f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch"}),
        (ApplyPatchTool, {"patch": f"*** Begin Patch\n*** Add File: {path}\n+gone\n*** End Patch"}),
        (ApplyPatchTool, {"patch": f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-the secret\n+gone\n"}),
        (
            ApplyPatchTool,
            {
                "patch": f"*** Begin Patch\n*** Update File: sub/inner.txt\n*** Move to: {path}\n-inner\n+gone\n"
                "*** End Patch"
            },
        ),
        (ListFilesTool, {"path": path}),
        (SearchTool, {"path": path, "pattern": "."}),
    ]


@pytest.mark.parametrize("escape", ESCAPES)
def test_no_tool_follows_a_path_out(world: Path, escape: str) -> None:
    path = escape.format(outside=world / "outside", project=world / "project")
    before = tree(world)
    for kind, args in calls(path):
        error = failure(kind(world / "project"), **args)  # type: ignore[call-arg]
        assert "project folder" in error
        assert "Only paths inside it are allowed" in error
        assert "the secret" not in error
    assert tree(world) == before


@pytest.mark.parametrize("path", ["dangling", "out/new.txt", "out/new/new.txt", "../new.txt"])
def test_nothing_new_is_made_outside(world: Path, path: str) -> None:
    before = tree(world)
    error = failure(WriteFileTool(world / "project"), path=path, content="x")
    assert "Only paths inside it are allowed" in error
    assert tree(world) == before


def test_the_error_tells_a_symlink_from_a_path_outside(world: Path) -> None:
    tool = ReadFileTool(world / "project")
    assert "leads through a symlink out of" in failure(tool, path="out/secret.txt")
    assert "is outside" in failure(tool, path="../outside/secret.txt")


@pytest.mark.parametrize(
    "path",
    [
        "sub/inner.txt",
        "./sub/inner.txt",
        "sub/../sub/inner.txt",
        "in/inner.txt",
        "{project}/sub/inner.txt",
        "../project/in/inner.txt",
    ],
)
def test_every_way_that_stays_inside_is_open(world: Path, path: str) -> None:
    project = world / "project"
    assert output(ReadFileTool(project), path=path.format(project=project)) == "inner\n"


def test_writing_through_a_symlink_inside_changes_its_target_and_keeps_the_link(world: Path) -> None:
    project = world / "project"
    (project / "link.txt").symlink_to("sub/inner.txt")
    output(WriteFileTool(project), path="link.txt", content="new\n")
    assert (project / "link.txt").is_symlink()
    assert (project / "sub" / "inner.txt").read_text() == "new\n"


def test_a_root_that_is_itself_reached_through_a_symlink(world: Path) -> None:
    (world / "alias").symlink_to("project")
    tool = ReadFileTool(world / "alias")
    assert output(tool, path=str(world / "alias" / "sub" / "inner.txt")) == "inner\n"
    assert output(tool, path=str(world / "project" / "sub" / "inner.txt")) == "inner\n"


def test_a_neighbour_whose_name_begins_like_the_root_is_outside(world: Path) -> None:
    (world / "project-2").mkdir()
    (world / "project-2" / "x.txt").write_text("x")
    failure(ReadFileTool(world / "project"), path="../project-2/x.txt")


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_malformed_paths(tmp_path: Path, path: str) -> None:
    assert "NUL" in failure(ReadFileTool(tmp_path), path=path)


def test_a_circle_of_symlinks(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert failure(ReadFileTool(tmp_path), path="a")
    assert failure(WriteFileTool(tmp_path), path="a", content="x")
    assert (tmp_path / "a").is_symlink()


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    assert "too long" in failure(WriteFileTool(tmp_path), path="x" * 300, content="")


# What changes between the check and the act.


def test_a_folder_that_becomes_a_symlink_after_the_check(world: Path) -> None:
    project = Project(world / "project")
    place = project.locate("sub/secret.txt")
    (world / "project" / "sub").rename(world / "project" / "moved")
    (world / "project" / "sub").symlink_to(world / "outside")
    with pytest.raises(ToolError, match="symlink"), explained("read", place), place.parent():
        raise AssertionError("it was opened")
    with pytest.raises(ToolError, match="symlink"), explained("write", place), place.parent([]):
        raise AssertionError("it was opened")


def test_a_file_that_becomes_a_symlink_after_the_check(world: Path) -> None:
    from chimera.tools._atomic import Change, commit
    from chimera.tools._files import look, read_bytes

    place = Project(world / "project").locate("sub/inner.txt")
    mark = look(place)
    inner = world / "project" / "sub" / "inner.txt"
    inner.unlink()
    inner.symlink_to(world / "outside" / "secret.txt")
    with pytest.raises(ToolError, match="symlink"):
        read_bytes(place)
    with pytest.raises(ToolError, match="symlink"):
        look(place)
    with pytest.raises(ToolError):
        commit([Change(place, mark, b"gone")])
    assert (world / "outside" / "secret.txt").read_text() == SECRET


def test_folders_are_not_made_behind_a_new_symlink(world: Path) -> None:
    place = Project(world / "project").locate("fresh/deep/new.txt")
    (world / "project" / "fresh").symlink_to(world / "outside")
    with pytest.raises(ToolError), explained("write", place), place.parent([]):
        raise AssertionError("it was opened")
    assert not (world / "outside" / "deep").exists()


# Which folder it is.


def test_the_root_of_the_run_comes_before_that_of_the_tool(tmp_path: Path) -> None:
    for name in ("run", "tool"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text(name)
    tool = ReadFileTool(tmp_path / "tool")
    assert tool.execute({"path": "x.txt"}, Env(tmp_path / "run")).output == "run"
    assert tool.execute({"path": "x.txt"}, Env(None)).output == "tool"


def test_without_any_root_it_is_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.txt").write_text("here")
    assert output(ReadFileTool(), path="x.txt") == "here"


def test_a_root_that_does_not_exist(tmp_path: Path) -> None:
    assert "does not exist" in failure(ReadFileTool(tmp_path / "none"), path="x")


# What the errors say.


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "server.py").touch()
    tool = ReadFileTool(tmp_path)
    assert "'src' has no 'servers.py'. Did you mean 'server.py'?" in failure(tool, path="src/servers.py")
    assert "the project folder has no 'source'" in failure(tool, path="source/server.py")
    assert "Use list_files" in failure(tool, path="src/zzzzzzzz")


def test_a_folder_that_cannot_be_listed_suggests_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)  # the tests may run as root, whom no mode keeps out
    assert failure(ReadFileTool(tmp_path), path="x").endswith("has no 'x'. Use list_files to see what exists.")


def test_a_file_that_vanishes_in_between(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    place = Project(tmp_path).locate("x")
    with pytest.raises(ToolError, match="vanished while the tool worked; try again"), explained("read", place):
        raise FileNotFoundError


def test_a_file_where_a_folder_is_due(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert "is a file" in failure(WriteFileTool(tmp_path), path="a/b.txt", content="x")
    assert "no folder" in failure(ReadFileTool(tmp_path), path="a/b.txt")


def test_the_project_folder_is_no_file(tmp_path: Path) -> None:
    assert "the project folder itself" in failure(WriteFileTool(tmp_path), path=".", content="x")


def test_names_that_are_no_text_are_shown_as_something_that_is() -> None:
    place = Place(Path("/p"), (os.fsdecode(b"a\xff"), "b\nc"))
    assert str(place) == "a\ufffd/b\\nc"


NAMES = st.sampled_from(["a", "b", "..", ".", "", "out", "in", "link", "~", "a b", "é"])


@given(parts=st.lists(NAMES, min_size=1, max_size=6), absolute=st.booleans())
def test_located_places_are_inside(tmp_path_factory: pytest.TempPathFactory, parts: list[str], absolute: bool) -> None:
    base = tmp_path_factory.getbasetemp() / "located"
    project = base / "project"
    if not project.exists():
        (project / "a" / "b").mkdir(parents=True)
        (base / "elsewhere").mkdir()
        (project / "out").symlink_to("../elsewhere")
        (project / "in").symlink_to("a")
        (project / "a" / "link").symlink_to("../..")
    path = ("/" if absolute else "") + "/".join(parts)
    try:
        place = Project(project).locate(path)
    except ToolError:
        return
    real = (project / path).resolve()
    assert real.is_relative_to(project.resolve())
    assert project.resolve().joinpath(*place.parts) == real
    assert ".." not in place.parts


def comb(root: Path, depth: int) -> list[tuple[str, ...]]:
    """Make folders in folders, each with one more folder and a file in it, and return the parts of all folders."""
    parts: tuple[str, ...] = ()
    found = [parts]
    for _ in range(depth):
        parts = (*parts, "x")
        root.joinpath(*parts).mkdir()
        root.joinpath(*parts, "y").mkdir()
        root.joinpath(*parts, "f").write_text("found\n")
        found += [parts, (*parts, "y")]
    return found


def open_files() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


def test_folders_that_are_kept_open_are_those_that_are_asked_for(tmp_path: Path) -> None:
    folders = comb(tmp_path, 150)
    before = open_files()
    for order in (folders, folders[::-1], random.Random(1).sample(folders, len(folders))):
        with keeping_folders():
            for parts in order:
                with Place(tmp_path, parts).folder() as descriptor:
                    assert os.path.samestat(os.fstat(descriptor), tmp_path.joinpath(*parts).stat())
                with pytest.raises(FileNotFoundError), Place(tmp_path, (*parts, "none")).folder():
                    pass
            assert open_files() < before + 70
    assert open_files() == before


@pytest.mark.parametrize(
    ("tool", "args"), [(ListFilesTool, {"limit": 2000}), (SearchTool, {"pattern": "found", "limit": 1000})]
)
def test_going_through_deep_folders_opens_each_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: type[BaseTool], args: dict[str, Any]
) -> None:
    folders = comb(tmp_path, 150)
    opened: list[object] = []
    real = os.open

    def counting(*words: Any, **more: Any) -> int:
        opened.append(words[0])
        return real(*words, **more)

    monkeypatch.setattr(os, "open", counting)
    result = tool(tmp_path).execute(args)  # type: ignore[call-arg]
    assert result.output.count("/f") == 150
    assert len(opened) < 6 * len(folders)


@pytest.mark.parametrize("name", ["WriteFileTool", "ApplyPatchTool"])
def test_no_folder_is_made_too_deep(tmp_path: Path, name: str) -> None:
    def create(path: str) -> str | None:
        if name == "WriteFileTool":
            return WriteFileTool(tmp_path).execute({"path": path, "content": "x\n"}).error
        patch = f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch"
        return ApplyPatchTool(tmp_path).execute({"patch": patch}).error

    assert "no folder is made more than 100 folders deep" in str(create("x/" * (MAX_DEPTH + 1) + "f"))
    assert tree(tmp_path) == {}
    assert create("x/" * MAX_DEPTH + "f") is None
    (tmp_path.joinpath(*["x"] * MAX_DEPTH) / "there").mkdir()
    assert create("x/" * MAX_DEPTH + "there/f") is None
