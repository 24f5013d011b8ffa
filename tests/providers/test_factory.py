from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chimera.errors import ConfigError
from chimera.providers.anthropic import AnthropicProvider
from chimera.providers.base import Provider
from chimera.providers.compatible import OpenAICompatibleProvider
from chimera.providers.factory import create_provider
from chimera.providers.faux import FauxProvider
from chimera.types import Message
from tests.providers.vendors import OPENAI
from tests.providers.wire_server import WireServer

KEYS = {"OPENAI_API_KEY": "openai-key", "ANTHROPIC_API_KEY": "anthropic-key"}
OPENAI_URL, ANTHROPIC_URL = "https://api.openai.com/v1", "https://api.anthropic.com"


def make(model: str | None, environ: dict[str, str] | None = None, **options: Any) -> Any:
    return create_provider(model, environ=environ or {}, **options)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize(
    ("model", "kind", "name"),
    [
        ("claude-opus-5-5", AnthropicProvider, "claude-opus-5-5"),
        ("Claude-x", AnthropicProvider, "Claude-x"),
        ("anthropic:my-own", AnthropicProvider, "my-own"),
        ("gpt-5.5", OpenAICompatibleProvider, "gpt-5.5"),
        ("o3", OpenAICompatibleProvider, "o3"),
        ("glm-5.2", OpenAICompatibleProvider, "glm-5.2"),
        ("llama3.2:3b", OpenAICompatibleProvider, "llama3.2:3b"),
        ("anthropic/claude-x", OpenAICompatibleProvider, "anthropic/claude-x"),
        ("openai:claude-behind-a-proxy", OpenAICompatibleProvider, "claude-behind-a-proxy"),
        ("openai", OpenAICompatibleProvider, "openai"),
        ("faux", FauxProvider, "faux"),
    ],
)
def test_the_name_picks_the_provider(model: str, kind: type[Provider], name: str) -> None:
    provider: Provider = make(model, KEYS)
    assert type(provider) is kind
    assert provider.model_name == name


@pytest.mark.parametrize(
    ("environ", "model"),
    [
        ({"CHIMERA_MODEL": "o3", **KEYS}, "o3"),
        ({"OPENAI_API_KEY": "key"}, "gpt-5.5"),
        ({"ANTHROPIC_API_KEY": "key"}, "claude-opus-5-5"),
        (KEYS, "claude-opus-5-5"),
    ],
)
def test_without_a_name_the_environment_picks(environ: dict[str, str], model: str) -> None:
    assert make(None, environ).model_name == model
    assert make("", environ).model_name == model


@pytest.mark.parametrize(
    ("model", "environ", "options"),
    [
        (None, {}, {}),
        (None, {"OPENAI_API_KEY": ""}, {}),
        (None, {"OPENAI_BASE_URL": "http://localhost:8080/v1"}, {}),
        ("gpt-5.5", {}, {}),
        ("gpt-5.5", {"ANTHROPIC_API_KEY": "key"}, {}),
        ("gpt-5.5", {"OPENAI_ORG_ID": "org"}, {"base_url": "https://api.openai.com/v1/"}),
        ("claude-opus-5-5", {"OPENAI_API_KEY": "key"}, {}),
    ],
)
def test_what_is_missing_is_told_with_the_three_ways(model: str | None, environ: Any, options: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        make(model, environ, **options)
    for way in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "--base-url", "--model faux"):
        assert way in str(caught.value)


@pytest.mark.parametrize(
    ("model", "environ", "options", "url", "headers"),
    [
        ("gpt-5.5", KEYS, {}, OPENAI_URL, bearer("openai-key")),
        ("claude-x", KEYS, {}, ANTHROPIC_URL, bearer("anthropic-key")),
        ("gpt-5.5", KEYS, {"api_key": "mine"}, OPENAI_URL, bearer("mine")),
        ("gpt-5.5", {"CHIMERA_API_KEY": "any"}, {}, OPENAI_URL, bearer("any")),
        ("gpt-5.5", {**KEYS, "CHIMERA_API_KEY": "any"}, {}, OPENAI_URL, bearer("openai-key")),
        (
            "m",
            {**KEYS, "OPENAI_BASE_URL": "https://proxy.example/v1"},
            {},
            "https://proxy.example/v1",
            bearer("openai-key"),
        ),
        (
            "claude-x",
            {**KEYS, "ANTHROPIC_BASE_URL": "https://proxy.example"},
            {},
            "https://proxy.example",
            bearer("anthropic-key"),
        ),
        ("m", {}, {"base_url": "http://localhost:8080/v1"}, "http://localhost:8080/v1", {}),
        ("m", KEYS, {"base_url": "http://127.0.0.1:8080/v1"}, "http://127.0.0.1:8080/v1", bearer("openai-key")),
        (
            "m",
            {**KEYS, "CHIMERA_API_KEY": "any"},
            {"base_url": "http://127.0.0.1:8080/v1"},
            "http://127.0.0.1:8080/v1",
            bearer("any"),
        ),
        ("m", {"CHIMERA_BASE_URL": "https://x.example/v1"}, {}, "https://x.example/v1", {}),
        ("m", {"CHIMERA_BASE_URL": "https://x.example/v1"}, {"base_url": "https://y.example"}, "https://y.example", {}),
    ],
)
def test_addresses_and_keys(model: str, environ: Any, options: Any, url: str, headers: Any) -> None:
    provider = make(model, environ, **options)
    assert provider.base_url == url
    assert provider.request_headers == headers


SECRETIVE = {
    **KEYS,
    "OPENAI_BASE_URL": "https://proxy.example/v1",
    "ANTHROPIC_AUTH_TOKEN": "token",
    "OPENAI_ORG_ID": "org",
    "OPENAI_PROJECT_ID": "project",
    "OPENAI_CUSTOM_HEADERS": "X-Token: hush",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Token: hush",
}


@pytest.mark.parametrize("model", ["m", "claude-x"])
@pytest.mark.parametrize(
    "url",
    [
        "https://collector.example/v1",
        "http://api.openai.com/v1",
        "https://api.openai.com.collector.example/v1",
        "https://api.openai.com:444/v1",
        "http://127.0.0.1.collector.example/v1",
    ],
)
def test_a_stray_address_collects_no_keys(model: str, url: str) -> None:
    """A project's configuration may name an address; keys of the environment do not follow it everywhere."""
    assert make(model, SECRETIVE, base_url=url).request_headers == {}


def test_what_else_the_environment_says() -> None:
    account = {"OPENAI_ORG_ID": "org", "OPENAI_PROJECT_ID": "project", "OPENAI_CUSTOM_HEADERS": "X-Team: blue"}
    assert make("o3", {**KEYS, **account}).request_headers == {
        **bearer("openai-key"),
        "OpenAI-Organization": "org",
        "OpenAI-Project": "project",
        "X-Team": "blue",
    }
    assert make("claude-x", {"ANTHROPIC_AUTH_TOKEN": "token"}).request_headers == bearer("token")
    both = {**KEYS, "ANTHROPIC_AUTH_TOKEN": "token"}
    assert make("claude-x", both).request_headers == bearer("anthropic-key")


def test_the_process_s_own_environment_is_the_default(monkeypatch: pytest.MonkeyPatch, server: WireServer) -> None:
    monkeypatch.setenv("CHIMERA_MODEL", "some-model")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-environment")
    server.answer_with(OPENAI.whole("hello"))
    assert create_provider().complete([Message.user("hi")]).content == "hello"
    assert server.requests[0].header("Authorization") == "Bearer key-of-the-environment"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_script_from_a_file(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(mark + json.dumps(["a", {"text": "b"}]), "utf-8")
    provider = make(f"faux:{path}")
    assert [provider.complete([]).content for _ in range(2)] == ["a", "b"]


def test_a_script_below_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "script.json").write_text('"a"')
    assert make("faux:~/script.json").complete([]).content == "a"


@pytest.mark.parametrize(
    ("content", "said"), [(None, "cannot be read"), ("{", "no JSON"), ('{"txt": 1}', "did you mean 'text'")]
)
def test_a_bad_script_file(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "script.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=said) as caught:
        make(f"faux:{path}")
    assert str(path) in str(caught.value)
