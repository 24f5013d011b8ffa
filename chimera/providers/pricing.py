"""What a call costs, and how much a model takes in, from the price list that ships with `genai-prices`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

__all__ = ["context_window_of", "cost_usd"]

_log = logging.getLogger("chimera.providers")
_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


def cost_usd(model: str, usage: Mapping[str, int], provider_hint: str | None = None) -> float:
    """Return what a call with this usage costs in US dollars.

    `provider_hint` is the base URL of the service or the name of a vendor; without one, the vendor is guessed from the
    model's name. Works offline. Returns 0.0 when no price is known and never raises: a run must not fail over its bill.
    """
    counts = {name: usage[name] for name in _COUNTS if usage.get(name)}
    if not counts:
        return 0.0
    try:
        from genai_prices import Usage, calc_price

        return float(calc_price(Usage(**counts), model, **_hint(provider_hint)).total_price)
    except Exception as unknown:
        _log.debug("no price for %s: %s", model, unknown)
        return 0.0


def context_window_of(model: str, provider_hint: str | None = None) -> int | None:
    """Return how many tokens the model takes in, or None when that is not known. Arguments as in `cost_usd`.

    A model that the service at hand is not listed with, behind a proxy say, is looked up by its name alone.
    """
    for hint in (_hint(provider_hint), {}):
        try:
            from genai_prices import Usage, calc_price

            window = calc_price(Usage(input_tokens=1), model, **hint).model.context_window
        except Exception as unknown:
            _log.debug("no context window for %s: %s", model, unknown)
            continue
        if window:
            return int(window)
    return None


def _hint(provider_hint: str | None) -> dict[str, Any]:
    if not provider_hint:
        return {}
    return {"provider_api_url" if "://" in provider_hint else "provider_id": provider_hint}
