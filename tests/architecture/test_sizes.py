"""Small rooms: files and functions have a size limit, with few exceptions that say why."""

from __future__ import annotations

from statistics import median

from tests.architecture.source import ROOT, functions, python_files

MAX_FILE = 400
MAX_FUNCTION = 60
MEDIAN_FUNCTION = 15

# What may be longer, and why. An entry that is no longer needed fails the tests.
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[tuple[str, str], str] = {}


def test_files_are_short() -> None:
    lengths = {file: len((ROOT / file).read_text(encoding="utf-8").splitlines()) for file in python_files()}
    long = {file: length for file, length in lengths.items() if length > MAX_FILE}
    assert long.keys() == LONG_FILES.keys(), f"over {MAX_FILE} lines, or a stale exception: {long}"


def test_functions_are_short() -> None:
    found = (function for file in python_files() for function in functions(file))
    long = {(item.file, item.name): item.lines for item in found if item.lines > MAX_FUNCTION}
    assert long.keys() == LONG_FUNCTIONS.keys(), f"over {MAX_FUNCTION} lines, or a stale exception: {long}"


def test_most_functions_are_much_shorter() -> None:
    lengths = [function.lines for file in python_files("chimera") for function in functions(file)]
    assert len(lengths) > 50
    assert median(lengths) <= MEDIAN_FUNCTION
