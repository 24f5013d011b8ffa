from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.providers.vendors import KEY, VendorCase

ROOT = Path(__file__).parents[2]
MAKE = {
    "openai": "from chimera.providers.compatible import OpenAICompatibleProvider as P",
    "anthropic": "from chimera.providers.anthropic import AnthropicProvider as P",
}


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.parametrize("name", MAKE)
def test_a_missing_sdk_is_named_with_the_command_that_installs_it(name: str) -> None:
    code = f"""
import sys
sys.modules[{name!r}] = None
{MAKE[name]}
from chimera.errors import MissingExtraError
try:
    P("some-model", api_key="key")
except MissingExtraError as missing:
    print(missing.extra, "|", missing)
"""
    extra, _, text = python(code).partition(" | ")
    assert extra == name
    assert f"pip install 'chimera-harness[{name}]'" in text


@pytest.mark.parametrize("name", MAKE)
def test_an_sdk_that_cannot_be_imported_is_a_missing_one(name: str, tmp_path: Path) -> None:
    """Its package is there, so that only the first call can find out."""
    package = tmp_path / name
    package.mkdir()
    (package / "__init__.py").write_text("import a_module_that_is_not_there\n")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
{MAKE[name]}
from chimera.errors import MissingExtraError
from chimera.types import Message
try:
    P("some-model", api_key="key").complete([Message.user("hi")])
except MissingExtraError as missing:
    print(missing.extra, missing.__cause__)
"""
    assert python(code) == f"{name} None"


@pytest.mark.parametrize("name", MAKE)
def test_a_task_loads_the_sdk_in_a_thread(name: str) -> None:
    """Loading takes most of a second, for which an event loop must not stand still."""
    code = f"""
import asyncio, sys, threading
loaded_in = []

class Finder:
    def find_spec(self, module, path=None, target=None):
        if module == {name!r}:
            loaded_in.append(threading.current_thread() is threading.main_thread())

{MAKE[name]}
from chimera.errors import ProviderConnectionError
from chimera.types import Message
provider = P("some-model", api_key="key", base_url="http://127.0.0.1:9/v1", max_retries=0)
sys.meta_path.insert(0, Finder())
try:
    asyncio.run(provider.async_complete([Message.user("hi")]))
except ProviderConnectionError:
    print(loaded_in)
"""
    assert python(code) == "[False]"


@pytest.mark.parametrize("name", MAKE)
def test_a_provider_is_made_without_loading_its_sdk(name: str) -> None:
    code = f"""
import sys
{MAKE[name]}
provider = P("some-model", api_key="key", base_url="http://127.0.0.1:9/v1")
provider.request_headers, provider.model_name
print({name!r} in sys.modules, "genai_prices" in sys.modules, "pydantic" in sys.modules)
"""
    assert python(code) == "False False False"


def test_the_key_travels_as_the_sdk_itself_would_send_it(vendor: VendorCase) -> None:
    """A new version of an SDK that sends the key in another header is to be noticed here."""
    described = vendor.provider_class.vendor
    client = getattr(described.sdk(), described.client)(api_key=KEY)
    assert vendor.make("http://127.0.0.1:9").request_headers == client.auth_headers


def test_the_default_address_is_that_of_the_sdk(vendor: VendorCase) -> None:
    described = vendor.provider_class.vendor
    client = getattr(described.sdk(), described.client)(api_key=KEY)
    assert str(client.base_url).rstrip("/") == described.base_url
    assert vendor.provider_class("some-model").base_url == described.base_url
