from __future__ import annotations

import re
from pathlib import Path

from chimera.cli.demo.repository import CODE, SECRETS, TESTS, Repository


def test_a_copy_holds_every_file_and_a_credential_of_its_own(tmp_path: Path) -> None:
    one, other = Repository(tmp_path / "one"), Repository(tmp_path / "other")
    for repository in (one, other):
        repository.create()
    files = {path.relative_to(one.root).as_posix() for path in one.root.rglob("*") if path.is_file()}
    assert files >= {CODE, TESTS, SECRETS, "README.md", "run_tests.sh", "shop/__init__.py", "tests/__init__.py"}
    assert not any(name.endswith(".txt") for name in files)
    assert one.credential in one.read(SECRETS)
    assert one.credential != other.credential
    assert re.fullmatch(r"sk-[0-9a-f]{32}", one.credential)


def test_no_placeholder_is_left(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "r")
    repository.create()
    assert not [path for path in repository.root.rglob("*") if path.is_file() and "{{" in path.read_text()]


def test_the_tests_fail_until_the_code_is_mended(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "r")
    repository.create()
    before = repository.run_tests()
    assert (before.passed, before.summary) == (False, "Ran 3 tests: FAILED (failures=1)")
    code = repository.read(CODE)
    (repository.root / CODE).write_text(
        code.replace("* percent // 100", "* percent + 50) // 100").replace(
            "return subtotal(items) * percent", "return (subtotal(items) * percent"
        )
    )
    after = repository.run_tests()
    assert (after.passed, after.summary) == (True, "Ran 3 tests: OK")
    assert repository.original(CODE) == code


def test_code_that_cannot_run_is_a_failure_with_words(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "r")
    repository.create()
    (repository.root / CODE).write_text("1 / 0\n")
    run = repository.run_tests()
    assert not run.passed
    assert "FAILED" in run.summary
