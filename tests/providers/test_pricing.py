from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from chimera.providers.pricing import context_window_of, cost_usd

USAGE = {"input_tokens": 1_000_000, "output_tokens": 1_000_000}


def test_known_models_have_a_price() -> None:
    from genai_prices import Usage, calc_price

    expected = float(calc_price(Usage(**USAGE), "gpt-4.1").total_price)
    assert expected > 0
    assert cost_usd("gpt-4.1", USAGE) == expected
    assert cost_usd("gpt-4.1", USAGE, "openai") == expected
    assert cost_usd("gpt-4.1", USAGE, "https://api.openai.com/v1") == expected


def test_what_was_read_from_a_cache_is_cheaper() -> None:
    cached = {**USAGE, "cache_read_tokens": 900_000}
    assert 0 < cost_usd("claude-sonnet-4-5", cached) < cost_usd("claude-sonnet-4-5", USAGE)


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("no-such-model", None),
        ("", None),
        ("gpt-4.1", "no-such-vendor"),
        ("gpt-4.1", "http://localhost:8080/v1"),
        ("no-such-model", "openai"),
    ],
)
def test_unknown_things_cost_nothing(model: str, hint: str | None) -> None:
    assert cost_usd(model, USAGE, hint) == 0.0


@pytest.mark.parametrize(
    "usage",
    [
        {},
        {"input_tokens": 0, "output_tokens": 0},
        {"input_tokens": -5},
        {"input_tokens": "many"},
        {"input_tokens": 1, "cache_read_tokens": 5},
        {"foo": 7},
    ],
)
def test_odd_usage_never_raises(usage: Any) -> None:
    assert cost_usd("gpt-4.1", usage) >= 0.0


def test_a_missing_price_list_never_raises() -> None:
    code = """
import sys
sys.modules["genai_prices"] = None
from chimera.providers.pricing import context_window_of, cost_usd
print(cost_usd("gpt-4.1", {"input_tokens": 5}), context_window_of("gpt-4.1"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["0.0", "None"]


def test_windows() -> None:
    assert context_window_of("claude-sonnet-4-5") == 200_000
    assert context_window_of("claude-sonnet-4-5", "http://proxy.example/v1") == 200_000
    assert context_window_of("no-such-model", "openai") is None
