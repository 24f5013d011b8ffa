from __future__ import annotations

import pytest

from chimera.tui.commands import COMMANDS, complete, split_command

FILES = ["README.md", "src/cart.py", "src/card_test.py", "docs/a cart.md", "tests/test_cart.py"]


@pytest.mark.parametrize(
    ("before", "texts"),
    [
        ("/c", ["/clear ", "/compact ", "/cost "]),
        ("/dec", ["/decisions "]),
        ("/model x", []),
        (" /c", []),
        ("look at @card_", ["@src/card_test.py "]),
        ("@read", ["@README.md "]),
        ("@src/", ["@src/cart.py ", "@src/card_test.py "]),
        ("me@example", []),
        ("@nothing like it", []),
        ("plain", []),
    ],
)
def test_completions(before: str, texts: list[str]) -> None:
    assert [item.text for item in complete(before, FILES)] == texts


def test_the_best_comes_first_and_names_with_spaces_are_quoted() -> None:
    found = [item.text for item in complete("see @cart", FILES)]
    assert found == ["@src/cart.py ", '@"docs/a cart.md" ', "@tests/test_cart.py ", "@src/card_test.py "]
    assert {item.start for item in complete("see @cart", FILES)} == {4}


def test_letters_in_order_are_enough() -> None:
    assert [item.text for item in complete("@srcd", FILES)] == ["@src/card_test.py "]


def test_every_command_is_offered_with_what_it_does() -> None:
    found = complete("/", [])
    assert {item.text.strip(" /") for item in found} == set(COMMANDS)
    assert all(item.about for item in found)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/help", ("help", "")),
        (" /model  gpt\n", ("model", "gpt")),
        ("/plan-gate reset all\nnow", ("plan-gate", "reset all\nnow")),
        ("/etc/hosts is broken", None),
        ("say /help", None),
        ("/", None),
    ],
)
def test_what_is_a_command(text: str, command: tuple[str, str] | None) -> None:
    assert split_command(text) == command
