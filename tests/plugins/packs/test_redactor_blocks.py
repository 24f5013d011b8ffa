"""Blocks of a message: texts are scrubbed, images pass, and a thought whose signature would break is left out."""

from __future__ import annotations

from typing import Any

from chimera.core.decisions import InterceptDecision, ProviderRequest
from chimera.plugins.packs import RedactorPlugin
from chimera.types import Message

SECRET = "sk-" + "a1b2c3d4" * 3


def sent(*blocks: dict[str, Any]) -> tuple[Any, ...]:
    message = Message("assistant", "x", content_blocks=blocks)
    [redact] = RedactorPlugin(headers=()).interceptors().provider_request
    decision = redact(ProviderRequest("m", [message]))
    request = decision.value if isinstance(decision, InterceptDecision) else ProviderRequest("m", [message])
    found: tuple[Any, ...] = request.messages[0].content_blocks
    return found


def test_a_signed_thought_that_holds_a_secret_is_left_out_and_others_stay() -> None:
    good = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    bad = {"type": "thinking", "thinking": f"use {SECRET}", "signature": "sig"}
    assert sent(good, bad) == (good,)


def test_texts_are_scrubbed_and_images_pass() -> None:
    image = {"type": "image", "source": {"data": SECRET}}
    found = sent({"type": "text", "text": SECRET}, image)
    assert found == ({"type": "text", "text": "[redacted]"}, image)


def test_what_only_sounds_like_an_image_is_scrubbed() -> None:
    assert SECRET not in str(sent({"type": "image_caption", "text": SECRET}))
