"""Carrying changes over: all files, or every file as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chimera.assembly.edits import Edit, carry_over
from chimera.errors import OutsideError
from tests.assembly.disks import files_at_most
from tests.assembly.repositories import contents


def two(folder: Path) -> tuple[Path, Path]:
    for name in ("source", "target"):
        (folder / name).mkdir()
    return folder / "source", folder / "target"


def put(folder: Path, path: str, text: str = "x") -> None:
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


PATHS = st.sampled_from(["a", "b", "c/a", "c/b", "d", "d/e/f", "d/e/g", "d/h"])
TREES = st.dictionaries(PATHS, st.text("xyz", min_size=1, max_size=2), max_size=6).filter(
    lambda tree: not any(f"{other}/".startswith(f"{path}/") for path in tree for other in tree if other != path)
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(before=TREES, after=TREES)
def test_any_tree_becomes_any_other(
    tmp_path_factory: pytest.TempPathFactory, before: dict[str, str], after: dict[str, str]
) -> None:
    source, target = two(tmp_path_factory.mktemp("trees"))
    for folder, tree in ((source, after), (target, before)):
        for path, text in tree.items():
            put(folder, path, text)
    edits = [Edit(path, "deleted") for path in before.keys() - after.keys()]
    edits += [Edit(path, "added") for path in after.keys() - before.keys()]
    edits += [Edit(path, "modified") for path in before.keys() & after.keys()]
    carry_over(edits, source, target)
    assert contents(target) == contents(source)
    assert {path for path in target.rglob("*") if path.is_dir()} == {
        target / path.relative_to(source) for path in source.rglob("*") if path.is_dir()
    }


def test_a_folder_with_more_in_it_is_no_file_s_place(tmp_path: Path) -> None:
    """The last of several steps fails: the ones before are taken back, emptied and new folders too."""
    source, target = two(tmp_path)
    for path in ("a", "new/deep/b", "full"):
        put(source, path, "new")
    for path in ("a", "gone/c", "full/ignored"):
        put(target, path, "old")
    before = contents(target)
    edits = [Edit("a", "modified"), Edit("gone/c", "deleted"), Edit("new/deep/b", "added"), Edit("full", "added")]
    with pytest.raises(OutsideError, match=r"full: Directory not empty; nothing was changed"):
        carry_over(edits, source, target)
    assert contents(target) == before
    assert sorted(path.name for path in target.iterdir()) == ["a", "full", "gone"]


def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    source, target = two(tmp_path)
    put(source, "a", "new")
    put(source, "b", "new" * 5000)
    put(target, "a", "old")
    with files_at_most(4096), pytest.raises(OutsideError, match="File too large; nothing was changed"):
        carry_over([Edit("a", "modified"), Edit("b", "added")], source, target)
    assert contents(target) == {"a": "- old"}


def test_a_source_that_is_gone_changes_nothing(tmp_path: Path) -> None:
    source, target = two(tmp_path)
    put(target, "a", "old")
    with pytest.raises(OutsideError, match="No such file or directory; nothing was changed"):
        carry_over([Edit("a", "modified"), Edit("b", "added")], source, target)
    assert contents(target) == {"a": "- old"}
    with pytest.raises(OutsideError, match="nothing was changed"):
        carry_over([], source, tmp_path / "nowhere")


@pytest.mark.parametrize("path", ["", "../a", "a/../b", "/etc/x", "a//b", ".", "a/./b"])
def test_paths_that_lead_out_are_refused(tmp_path: Path, path: str) -> None:
    source, target = two(tmp_path)
    with pytest.raises(OutsideError, match="is no path inside the project"):
        carry_over([Edit(path, "added")], source, target)


def test_links_on_the_way_are_not_followed(tmp_path: Path) -> None:
    source, target = two(tmp_path)
    (tmp_path / "outside").mkdir()
    (target / "way").symlink_to(tmp_path / "outside")
    put(source, "way/a")
    with pytest.raises(OutsideError, match="'way/a' leads through the symlink 'way'"):
        carry_over([Edit("way/a", "added")], source, target)
    assert list((tmp_path / "outside").iterdir()) == []


def test_what_is_there_or_missing_unexpectedly_is_refused(tmp_path: Path) -> None:
    source, target = two(tmp_path)
    put(source, "a")
    put(target, "a", "old")
    with pytest.raises(OutsideError, match="'a' is there already"):
        carry_over([Edit("a", "added")], source, target)
    with pytest.raises(OutsideError, match="'b' is not there any more"):
        carry_over([Edit("b", "deleted")], source, target)
    assert contents(target) == {"a": "- old"}


def test_links_are_carried_over_as_links(tmp_path: Path) -> None:
    source, target = two(tmp_path)
    put(source, "real", "x")
    (source / "link").symlink_to("nowhere")
    put(target, "real", "x")
    put(target, "link", "a file")
    carry_over([Edit("link", "modified")], source, target)
    assert contents(target) == {"real": "- x", "link": "-> nowhere"}
