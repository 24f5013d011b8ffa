"""Checking the effective arguments of a call against the schema of its tool."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NoReturn

from chimera.errors import MisuseError

__all__ = ["Validator", "argument_problem", "validator_for"]

Validator = Callable[[Any], Any]


def validator_for(name: str, parameters: Mapping[str, Any]) -> Validator:
    """Return a compiled check of `parameters`, a JSON Schema (drafts 4, 6 and 7). It changes nothing it is given.

    Raises `MisuseError` when the schema itself is wrong.
    """
    try:
        return _compiled(json.dumps(parameters, sort_keys=True))
    except Exception as exc:  # whatever a broken schema provokes in the compiler
        raise MisuseError(f"the parameters of the tool {name!r} are no usable JSON Schema: {exc}") from exc


def argument_problem(validate: Validator, arguments: Mapping[str, Any]) -> str | None:
    """Return what is wrong with `arguments`, in words that hold no value of theirs; None when nothing is.

    Arguments that the check itself fails on are not fit to run either.
    """
    try:
        validate(arguments)
    except Exception as exc:
        return _words(exc)
    return None


def _words(exc: Exception) -> str:
    from fastjsonschema import JsonSchemaValueException

    if isinstance(exc, JsonSchemaValueException):
        return str(exc.message).replace("data must", "the arguments must").removeprefix("data.")
    # a pattern that is no regular expression, a schema that refers to itself for ever
    return f"they could not be checked ({type(exc).__name__})"


@lru_cache(maxsize=1024)
def _compiled(text: str) -> Validator:
    import fastjsonschema

    handlers = {scheme: _refuse_remote for scheme in ("http", "https", "ftp", "file")}
    validate: Validator = fastjsonschema.compile(
        json.loads(text), handlers=handlers, use_default=False, use_formats=False
    )
    return validate


def _refuse_remote(uri: str) -> NoReturn:
    raise ValueError(f"a tool's schema cannot refer to {uri}")
