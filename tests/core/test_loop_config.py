"""Everything that a run can be told: safe defaults, and mistakes that are named when they are made."""

from __future__ import annotations

from typing import Any

import pytest

from chimera.core.loop_config import LoopConfig
from chimera.core.middleware import LoopMiddleware
from chimera.errors import MisuseError


def test_the_defaults_are_safe() -> None:
    config = LoopConfig()
    assert (config.yolo_mode, config.resumed_approvals, config.max_blocked_steps) == (False, "detached", 10)
    assert (config.interceptors, config.permissions, config.permission_callback) == (None, None, None)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"interceptors": {"tool_call": []}}, "interceptors must be Interceptors, not dict"),
        ({"resumed_approvals": "sometimes"}, "resumed_approvals is 'detached' or 'enforced', not 'sometimes'"),
        ({"permissions": True}, "permissions must be a PermissionPolicy, not bool"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], text: str) -> None:
    with pytest.raises(MisuseError, match=text):
        LoopConfig(**options)


def test_one_middleware_is_a_list_of_one() -> None:
    middleware = LoopMiddleware()
    assert LoopConfig(middleware=middleware).middleware == [middleware]  # type: ignore[arg-type]
