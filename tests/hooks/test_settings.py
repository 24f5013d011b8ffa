"""Reading hooks from settings: every mistake is an error that names its place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.errors import ConfigError
from chimera.hooks.settings import DEFAULT_TIMEOUT, EVENTS, Hook, read_settings


def one(matcher: str, event: str = "PreToolUse") -> Hook:
    hooks = read_settings({"hooks": {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": "x"}]}]}})
    return hooks[event][0]


def test_the_shared_format_is_read() -> None:
    hooks = read_settings(
        {
            "permissions": {"deny": []},
            "hooks": {
                "PreToolUse": [
                    {
                        "matcher": "Bash|write_file",
                        "hooks": [
                            {"type": "command", "command": "check one", "timeout": 5},
                            {"type": "command", "command": "check two"},
                        ],
                    },
                    {"hooks": [{"type": "command", "command": "check all"}]},
                ],
                "Stop": [{"hooks": [{"type": "command", "command": "done?"}]}],
            },
        }
    )
    first, second, third = hooks["PreToolUse"]
    assert (first.command, first.timeout, first.place) == ("check one", 5.0, "hooks.PreToolUse[0].hooks[0]")
    assert (second.command, second.timeout) == ("check two", DEFAULT_TIMEOUT)
    assert third.matcher is None
    assert hooks["Stop"][0].command == "done?"
    assert str(first) == "hooks.PreToolUse[0].hooks[0] (check one)"


def test_what_stands_under_hooks_may_come_alone() -> None:
    hooks = read_settings({"Stop": [{"hooks": [{"type": "command", "command": "x" * 99}]}]})
    assert str(hooks["Stop"][0]) == f"Stop[0].hooks[0] ({'x' * 57}...)"
    assert read_settings({}) == {}
    assert read_settings({"hooks": {}}) == {}
    assert read_settings({"hooks": {event: [] for event in EVENTS}}) == dict.fromkeys(EVENTS, ())


@pytest.mark.parametrize(
    ("matcher", "hits", "misses"),
    [
        ("", ["bash", "anything"], []),
        ("*", ["bash", "anything"], []),
        ("Bash", ["bash"], ["bash2", "write_file"]),
        ("bash", ["bash"], ["bash_x", "x_bash"]),
        ("Edit|Write", ["write_file", "edit_file", "apply_patch"], ["read_file"]),
        ("Edit.*", ["edit_file", "write_file"], ["bash"]),
        ("Read", ["read_file", "search"], ["write_file"]),
        ("write_file", ["write_file"], ["edit_file"]),
        ("mcp__git__.*", ["mcp__git__log"], ["mcp__github__log"]),
        ("(?i)BASH", ["bash"], ["bashful"]),
    ],
)
def test_a_matcher_meets_the_whole_name_or_the_family(matcher: str, hits: list[str], misses: list[str]) -> None:
    hook = one(matcher)
    assert [name for name in hits if not hook.matches(name)] == []
    assert [name for name in misses if hook.matches(name)] == []


GOOD: dict[str, Any] = {"type": "command", "command": "x"}


@pytest.mark.parametrize(
    ("settings", "place", "words"),
    [
        (3, "the settings", "a table is needed"),
        ({"hooks": []}, "hooks", "a table is needed"),
        ({"hooks": {"PreTooluse": []}}, "hooks.PreTooluse", "did you mean 'PreToolUse'"),
        ({"hooks": {"Xyz": []}}, "hooks.Xyz", "known are PreToolUse"),
        ({"PreToolUse": {}}, "PreToolUse", "a list is needed"),
        ({"PreToolUse": "x"}, "PreToolUse", "a list is needed"),
        ({"PreToolUse": ["x"]}, "PreToolUse[0]", "a table is needed"),
        ({"PreToolUse": [{}]}, "PreToolUse[0].hooks", "needs a list of hooks"),
        ({"PreToolUse": [{"hooks": []}]}, "PreToolUse[0].hooks", "needs a list of hooks"),
        ({"PreToolUse": [{"hooks": GOOD}]}, "PreToolUse[0].hooks", "a list is needed"),
        ({"PreToolUse": [{"hooks": ["x"]}]}, "PreToolUse[0].hooks[0]", "a table is needed"),
        ({"PreToolUse": [{"mather": "x", "hooks": [GOOD]}]}, "PreToolUse[0].mather", "did you mean 'matcher'"),
        ({"PreToolUse": [{"matcher": 3, "hooks": [GOOD]}]}, "PreToolUse[0].matcher", "regular expression"),
        *(
            ({"PreToolUse": [{"matcher": text, "hooks": [GOOD]}]}, "PreToolUse[0].matcher", "write 'Bash")
            for text in (
                "Bash,Edit",
                "Bash, Edit",
                "Bash ",
                " Bash",
                "Bash;Edit",
                "Bash/Edit",
                "Bash & Edit",
                "Bash(rm:*)",
            )
        ),
        ({"PreToolUse": [{"matcher": "(", "hooks": [GOOD]}]}, "PreToolUse[0].matcher", "no regular expression"),
        ({"PreToolUse": [{"matcher": "Bsh", "hooks": [GOOD]}]}, "PreToolUse[0].matcher", "did you mean 'Bash'"),
        ({"PreToolUse": [{"matcher": "bash|writefile", "hooks": [GOOD]}]}, "PreToolUse[0].matcher", "'write_file'"),
        ({"Stop": [{"matcher": "Bash", "hooks": [GOOD]}]}, "Stop[0].matcher", "never match"),
        ({"UserPromptSubmit": [{"matcher": "x", "hooks": [GOOD]}]}, "UserPromptSubmit[0].matcher", "never match"),
        ({"Stop": [{"hooks": [{"command": "x"}]}]}, "Stop[0].hooks[0].type", "only 'command'"),
        ({"Stop": [{"hooks": [{"type": "prompt", "command": "x"}]}]}, "Stop[0].hooks[0].type", "only 'command'"),
        ({"Stop": [{"hooks": [{"type": "command"}]}]}, "Stop[0].hooks[0].command", "shell command is needed"),
        ({"Stop": [{"hooks": [GOOD | {"command": " "}]}]}, "Stop[0].hooks[0].command", "shell command is needed"),
        ({"Stop": [{"hooks": [GOOD | {"command": "a\0"}]}]}, "Stop[0].hooks[0].command", "shell command is needed"),
        ({"Stop": [{"hooks": [GOOD, GOOD | {"timout": 1}]}]}, "Stop[0].hooks[1].timout", "did you mean 'timeout'"),
        *(
            ({"Stop": [{"hooks": [GOOD | {"timeout": bad}]}]}, "Stop[0].hooks[0].timeout", "number of seconds")
            for bad in (0, -1, "5", True, None, float("inf"), float("nan"))
        ),
    ],
)
def test_a_mistake_is_an_error_that_names_its_place(settings: Any, place: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_settings(settings)
    assert str(caught.value).startswith(f"{place}: ")
    assert words in str(caught.value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from([*EVENTS, "command", "Bash", "("]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*EVENTS, "hooks", "matcher", "type", "command", "timeout", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_settings_are_read_or_refused(settings: Any) -> None:
    try:
        hooks = read_settings(settings)
    except ConfigError as error:
        text = str(error)
        assert text
    else:
        assert set(hooks) <= set(EVENTS)
