"""Texts full of secrets: they are cut out many at once, and every answer is the one that a plain search gives."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chimera.secrets import DEFAULT_RULES, REDACTED, SecretDetector, SecretRule
from chimera.secrets.compiled import Compiled, compile_rules
from chimera.secrets.prefilter import BLOCK
from chimera.secrets.rules import LOOK_AHEAD, LOOK_BACK, _but
from chimera.secrets.walk import Walk

STARTS = sorted({start for rule in DEFAULT_RULES for start in rule.starts})
SHORT = [
    "://:a@", "://a:b@", r":\/\/:a@", "pwd=abc;", "PWD=abc ", "password=abc\n", "sk-abcdefgh ", "Bearer abcdefgh1 ",
    "://pwd=abc:x@", "://sk-abcdefgh1:x@", "&sig=" + "a" * 30 + " ", "secret-access-key=" + "A" * 40 + " ",
    "Authorization: Basic abcd ", "-----BEGIN PRIVATE KEY-----" + "a" * 30, "://\u00e9:a@", "://****@",
]  # fmt: skip
NOISE = ["a", " ", ":", "@", "=", "abcdefgh1", "\\n", "é", "😀", "\0", "\0" * LOOK_BACK]
PIECES = st.sampled_from([*SHORT, *SHORT, *STARTS, *NOISE])
STRETCHES = st.lists(
    st.tuples(st.lists(PIECES, min_size=1, max_size=4).map("".join), st.integers(1, 4000)), min_size=1, max_size=4
)
TEXTS = STRETCHES.map(lambda runs: "".join((piece * count)[: 2 * BLOCK] for piece, count in runs))


def plain(text: str, rules: Compiled) -> str:
    """Return the clean text as one search after another finds it: all rules in one expression, and nothing else."""
    pieces, position = [], 0
    while (match := rules.pattern.search(text, position)) is not None:
        first, last = rules.secret(match)
        lead = plain(text[match.start() : first], rules)
        pieces += [text[position : match.start()], lead, REDACTED, text[last : match.end()]]
        position = match.end()
    return "".join([*pieces, text[position:]])


@settings(max_examples=60, deadline=None)
@given(TEXTS)
def test_however_dense_a_text_is_the_answer_is_that_of_a_plain_search(text: str) -> None:
    detector = SecretDetector()
    clean = detector.scrub(text)
    assert clean == plain(text, compile_rules(DEFAULT_RULES))
    assert clean == _cut(text, detector)


def _cut(text: str, detector: SecretDetector) -> str:
    pieces, position = [], 0
    for match in detector.find(text):
        pieces += [text[position : match.start], REDACTED]
        position = match.end
    return "".join([*pieces, text[position:]])


@pytest.mark.parametrize("secret", SHORT)
@pytest.mark.parametrize("other", ["", "task-", "eyJ", "key-a ", "apikey=", "sk-ant-abcdefgh "])
def test_secrets_alone_and_with_something_between(secret: str, other: str) -> None:
    unit = secret + other
    text = unit * (3 * BLOCK // len(unit))
    assert SecretDetector().scrub(text) == plain(text, compile_rules(DEFAULT_RULES))


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many secrets were cut out at once, each time."""
    counts: list[int] = []
    whole = Walk.divide

    def watched(self: Walk, apart: float) -> tuple[list[str | None], Compiled] | None:
        found = whole(self, apart)
        if found is not None:
            counts.append(len(found[0]) // (len(found[1].leads) + 1))
        return found

    monkeypatch.setattr(Walk, "divide", watched)
    return counts


def test_most_of_a_dense_text_is_cut_out_many_at_once(divided: list[int]) -> None:
    text = "://:a@" * 100_000
    assert SecretDetector().scrub(text) == f"://:{REDACTED}@" * 100_000
    assert sum(divided) > 99_000


def test_a_secret_of_another_kind_does_not_hide_among_them(divided: list[int]) -> None:
    text = "://:a@" * 20_000 + "AKIA" + "A" * 16 + " " + "://:a@" * 20_000
    assert SecretDetector().scrub(text) == f"://:{REDACTED}@" * 20_000 + f"{REDACTED} " + f"://:{REDACTED}@" * 20_000
    assert sum(divided) > 35_000


LONG = {
    "private key": "-----BEGIN PRIVATE KEY-----" + "(a)" * 9_000 + "A" * 24 + "-----END PRIVATE KEY-----",
    "jwt": "eyJ" + "a" * 20_000 + ".aaaa.a",
    "token": "sk-ant-" + "a" * 20_000,
    "header": "Authorization: Digest " + "a=(b) " * 600,
}


@pytest.mark.parametrize("secret", LONG.values(), ids=LONG)
@pytest.mark.parametrize("before", ["", "".join(f"{start}://:a@" for start in STARTS) * 40], ids=["few", "all"])
def test_what_is_long_is_found_among_them(secret: str, before: str) -> None:
    dense = "://:a@" * 30_000
    for offset in (0, 1_000, 5_000):
        text = f"{before}{dense[offset:]} {secret}\n{dense}"
        assert SecretDetector().scrub(text) == plain(text, compile_rules(DEFAULT_RULES))


@pytest.mark.parametrize("count", [1_500, 700])
def test_where_they_stand_in_clusters_not_much_is_looked_at_in_vain(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = 0
    divide = Compiled.divide

    def watched(self: Compiled, text: str, position: int, most: int, size: int) -> Any:
        nonlocal looked_at
        looked_at += min(size, len(text) - position)
        return divide(self, text, position, most, size)

    monkeypatch.setattr(Compiled, "divide", watched)
    text = ("://:a@" * count + "x y z " * 1_600) * 55
    assert SecretDetector().scrub(text) == (f"://:{REDACTED}@" * count + "x y z " * 1_600) * 55
    assert looked_at < 6 * len(text)


def test_each_lead_that_holds_a_secret_is_cleaned_though_no_two_are_the_same() -> None:
    users = [f"{'sk-' if number % 3 else ''}abcdefgh{number}" for number in range(20_000)]
    text = "".join(f"://{user}:a@" for user in users)
    clean = "".join(f"://{user if user.startswith('a') else REDACTED}:{REDACTED}@" for user in users)
    assert SecretDetector().scrub(text) == clean


def test_own_rules_with_groups_are_looked_at_one_by_one(divided: list[int]) -> None:
    rules = [SecretRule("pin", ("pin:",), r"(?P<secret>\d)(?P<tail>;)"), SecretRule("id", ("id:",), r"\d", lead="x?")]
    text = "pin:1;id:x2 " * 20_000
    assert SecretDetector(rules).scrub(text) == f"pin:{REDACTED};id:x{REDACTED} " * 20_000
    assert not divided


def test_own_rules_may_look_back_as_far_as_they_like(divided: list[int]) -> None:
    far = "x" * (3 * LOOK_BACK)
    rules = [*DEFAULT_RULES, SecretRule("pin", ("pin:",), rf"(?<={far}pin:)[0-9]+")]
    text = "://:a@" * 20_000 + f"{far}pin:123;" * 5_000 + f"{far[1:]}pin:123;" * 100
    clean = f"://:{REDACTED}@" * 20_000 + f"{far}{REDACTED};" * 5_000 + f"{far[1:]}pin:123;" * 100
    assert SecretDetector(rules).scrub(text) == clean
    assert not divided


def test_the_context_of_a_part_is_seen_and_gives_no_match() -> None:
    rules = compile_rules([SecretRule("id", ("id:",), r"\d", "token")])
    text = "id:1 " * 10 + "xid:2 id:3 "
    assert rules.divide(text, 50, 9, 99) == (["xid:2 ", " "], len(text))
    assert rules.divide(text, 51, 9, 99) == (["id:2 ", " "], len(text))
    assert rules.divide(text, 40, 1, 99) == (["", ""], 44)


def test_too_small_a_part_of_a_text_tells_nothing() -> None:
    rules = compile_rules([SecretRule("id", ("id:",), r"\d", "token")])
    text = "id:1 " * 10_000
    found = rules.divide(text, 50, 2, 10 + LOOK_AHEAD)
    assert found == (["", " ", ""], 59)
    assert rules.divide(text, 50, 2, 8 + LOOK_AHEAD) is None, "what decides on the last one may stand further on"
    assert rules.divide(text, 50, 9_000, 20_000) is None


def test_rules_without_an_end_are_not_judged_by_a_part_of_a_text() -> None:
    [jwt] = [rule for rule in DEFAULT_RULES if rule.name == "jwt"]
    text = " " * LOOK_BACK + "eyJaaaaaaaaa.aaaa.a " * 2_000
    rules = compile_rules([jwt])
    assert rules.divide(text, LOOK_BACK, 2, 2 * LOOK_AHEAD) is None
    assert rules.divide(text, LOOK_BACK, 2, len(text)) is not None


def test_white_space_in_the_rules_is_what_it_is_to_the_library() -> None:
    every = "".join(map(chr, range(0x110000)))
    assert re.findall(_but("/:"), every) == re.findall(r"[^\s/:]", every)
