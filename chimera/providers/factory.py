"""From the name of a model to the provider that reaches it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from chimera.errors import ConfigError
from chimera.providers.base import Provider
from chimera.providers.headers import ambient_headers
from chimera.providers.vendor import Vendor

__all__ = ["DEFAULT_MODELS", "create_provider"]

DEFAULT_MODELS = (("ANTHROPIC_API_KEY", "claude-opus-5-5"), ("OPENAI_API_KEY", "gpt-5.5"))
"""The model that is used when this key is all that is said; the first key that is set decides."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_FOUR_WAYS = (
    "There are four ways to get a model: (1) set ANTHROPIC_API_KEY or OPENAI_API_KEY; "
    "(2) name a model and the address of a server that speaks OpenAI's protocol (CHIMERA_MODEL and OPENAI_BASE_URL, or "
    "--model and --base-url); (3) run a small model on this machine, which needs no key: --model local; (4) use the "
    "scripted model, which needs neither key nor network: --model faux, or --model faux:script.json."
)


def create_provider(
    model: str | None = None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Provider:
    """Return the provider for `model`, or for `CHIMERA_MODEL`, or for whatever vendor there is a key of.

    `claude...` goes to Anthropic, `faux` and `faux:<script.json>` to the scripted model, `local` and
    `local:<model.gguf>` to a server that is started for it, every other name to the OpenAI protocol. The prefixes
    `anthropic:` and `openai:` decide where the name does not. The address is `base_url`, else `CHIMERA_BASE_URL`, else
    `ANTHROPIC_BASE_URL` or `OPENAI_BASE_URL`, else the vendor's. The key is `api_key`, or that of the environment:
    `CHIMERA_API_KEY` for any address, `ANTHROPIC_API_KEY` or `OPENAI_API_KEY` only for the vendor, for the address in
    the vendor's variable, and for this machine, so that a stray address in a project's configuration collects no keys.
    `CHIMERA_TOOL_CALLING` is the `tool_calling` of models behind the OpenAI protocol where it is not to be the usual
    one: `native`, and `schema` for local models. `environ` stands for `os.environ`.

    Raises `ConfigError` when there is no model or no key, `MissingExtraError` when an SDK is not installed, and
    `ProviderError` when a local model cannot be served.
    """
    environment = os.environ if environ is None else environ
    name = model or environment.get("CHIMERA_MODEL") or _default_model(environment)
    kind, separator, rest = name.partition(":")
    if kind == "faux":
        return _faux(rest)
    if kind == "local":
        return _local(rest, environment)
    address = base_url or environment.get("CHIMERA_BASE_URL")
    if kind == "anthropic" and separator:
        return _anthropic(rest, address, api_key, environment)
    if name.lower().startswith("claude"):
        return _anthropic(name, address, api_key, environment)
    return _openai(rest if kind == "openai" and separator else name, address, api_key, environment)


def _default_model(environ: Mapping[str, str]) -> str:
    for variable, model in DEFAULT_MODELS:
        if environ.get(variable):
            return model
    raise ConfigError(f"No model is configured. {_FOUR_WAYS}")


def _anthropic(model: str, base_url: str | None, api_key: str | None, environ: Mapping[str, str]) -> Provider:
    from chimera.providers.anthropic import AnthropicProvider

    access = _access("ANTHROPIC", AnthropicProvider.vendor, base_url, api_key, environ)
    _check_key(model, access, AnthropicProvider.vendor)
    return AnthropicProvider(model, **access)


def _openai(model: str, base_url: str | None, api_key: str | None, environ: Mapping[str, str]) -> Provider:
    from chimera.providers.compatible import OpenAICompatibleProvider

    access = _access("OPENAI", OpenAICompatibleProvider.vendor, base_url, api_key, environ)
    _check_key(model, access, OpenAICompatibleProvider.vendor)
    return OpenAICompatibleProvider(model, **access, tool_calling=_tool_calling(environ) or "native")


def _local(name: str, environ: Mapping[str, str]) -> Provider:
    from chimera.providers.local import create_local_provider

    return create_local_provider(name, environ, _tool_calling(environ))


def _tool_calling(environ: Mapping[str, str]) -> Any:
    return environ.get("CHIMERA_TOOL_CALLING")


def _access(
    prefix: str, vendor: Vendor, base_url: str | None, api_key: str | None, environ: Mapping[str, str]
) -> dict[str, Any]:
    """Return `base_url`, `api_key` and `headers`; what the vendor's variables hold only where it may go."""
    named = environ.get(f"{prefix}_BASE_URL") or vendor.base_url
    address = base_url or named
    headers: dict[str, str] = {}
    keys = [api_key, environ.get("CHIMERA_API_KEY")]
    if _same_host(address, named) or urlsplit(address).hostname in _LOOPBACK:
        keys.insert(1 if _same_host(address, named) else 2, environ.get(f"{prefix}_API_KEY"))
        headers = _token(prefix, keys, environ) | ambient_headers(environ.get(vendor.ambient, ""))
    if _same_host(address, vendor.base_url):
        headers = _account(environ) | headers if prefix == "OPENAI" else headers
    return {"base_url": address, "api_key": next(filter(None, keys), None), "headers": headers}


def _token(prefix: str, keys: Sequence[str | None], environ: Mapping[str, str]) -> dict[str, str]:
    token = environ.get(f"{prefix}_AUTH_TOKEN")
    return {"Authorization": f"Bearer {token}"} if token and not any(keys) else {}


def _account(environ: Mapping[str, str]) -> dict[str, str]:
    names = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
    return {name: environ[variable] for name, variable in names.items() if environ.get(variable)}


def _check_key(model: str, access: Mapping[str, Any], vendor: Vendor) -> None:
    credentials = {"authorization", "x-api-key"} & {name.lower() for name in access["headers"]}
    if not access["api_key"] and not credentials and _same_host(access["base_url"], vendor.base_url):
        raise ConfigError(f"There is no key for {model}. {_FOUR_WAYS}")


def _same_host(one: str, other: str) -> bool:
    first, second = urlsplit(one), urlsplit(other)
    return (first.scheme, first.netloc) == (second.scheme, second.netloc)


def _faux(path: str) -> Provider:
    from chimera.providers.faux import FauxProvider

    if not path:
        return FauxProvider()
    file = Path(path).expanduser()
    script = _read_script(file)
    try:
        return FauxProvider(script)
    except ConfigError as problem:
        raise ConfigError(f"{file}: {problem}") from problem


def _read_script(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8-sig"))
    except OSError as problem:
        raise ConfigError(f"the script {path} of the faux model cannot be read: {problem.strerror}") from problem
    except ValueError as problem:
        raise ConfigError(f"the script {path} of the faux model is no JSON: {problem}") from problem
