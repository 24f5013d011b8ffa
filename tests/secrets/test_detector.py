"""The detector: one answer however it is found, the same object when there is nothing, own patterns, hostile texts."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.secrets import DEFAULT_RULES, REDACTED, SecretDetector, SecretMatch, SecretRule
from chimera.secrets.prefilter import BLOCK, Prefilter

DETECTOR = SecretDetector()
STARTS = sorted({start for rule in DEFAULT_RULES for start in rule.starts})
PIECES = st.one_of(
    st.sampled_from(STARTS),
    st.sampled_from(
        [" ", "a", "abcdefgh1", "A" * 40, "0" * 40, ":", "@", "=", '"', "\\n", "\n", "é", "😀", "\udc80", "."]
    ),
    st.text(max_size=6),
)
TEXTS = st.lists(PIECES, max_size=40).map("".join)


def whole_pass() -> SecretDetector:
    """Return a detector that goes through the whole text, as it does without the literal search."""
    detector = SecretDetector()
    detector._prefilter = None
    return detector


@given(TEXTS)
def test_the_literal_search_changes_no_answer(text: str) -> None:
    plain = whole_pass()
    assert DETECTOR.scrub(text) == plain.scrub(text)
    assert DETECTOR.find(text) == plain.find(text)


@given(TEXTS)
def test_find_tells_what_scrub_replaces(text: str) -> None:
    pieces, position = [], 0
    for match in DETECTOR.find(text):
        assert position <= match.start < match.end
        pieces += [text[position : match.start], REDACTED]
        position = match.end
    assert DETECTOR.scrub(text) == "".join([*pieces, text[position:]])


@given(TEXTS)
def test_a_text_without_secrets_comes_back_as_the_same_object(text: str) -> None:
    assert (DETECTOR.scrub(text) is text) is (DETECTOR.scrub(text) == text)
    assert DETECTOR.find(text) or DETECTOR.scrub(text) is text


@pytest.mark.parametrize("place", [0, 1, BLOCK - 30, BLOCK - 9, BLOCK - 3, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK - 5])
@pytest.mark.parametrize("filler", [" ", "é", "😀"])
def test_a_secret_is_found_at_any_place_of_a_long_text(place: int, filler: str) -> None:
    text = filler * place + "token-abcdefgh1" + filler * (3 * BLOCK - place)
    assert DETECTOR.find(text) == [SecretMatch("generic-key", place, place + 15)]
    assert DETECTOR.scrub(text) == text.replace("token-abcdefgh1", REDACTED)


def test_a_text_full_of_secrets_is_scrubbed_whole() -> None:
    text = "sk-abcdefgh Bearer abcdefgh1 " * 8000
    assert DETECTOR.scrub(text) == f"{REDACTED} Bearer {REDACTED} " * 8000
    assert len(DETECTOR.find(text)) == 16000


def test_a_text_that_gets_crowded_late_is_scrubbed_whole() -> None:
    text = "sk-abcdefgh " + "." * (2 * BLOCK) + "://" * BLOCK + " sk-abcdefgh"
    assert DETECTOR.scrub(text) == text.replace("sk-abcdefgh", REDACTED)


@pytest.mark.parametrize("form", ["{}", "{} ", "{}=", "{}aaaaaaa.", "-{}", "0m{}"])
def test_texts_made_of_nothing_but_starts_get_the_same_answer_either_way(form: str) -> None:
    plain = whole_pass()
    for start in STARTS:
        unit = form.replace("{}", start)
        text = unit * (20_000 // len(unit))
        assert DETECTOR.scrub(text) == plain.scrub(text)


HOSTILE = [
    "sk-", "task-", "task-a-", "token-", "://", "://a:", "://a:" + "b" * 300, "eyJ", "-eyJ", "eyJaaaaaaaa.",
    "eyJaaaaaaaa.aaaa", "password=", "password=" + "a" * 80, "-----BEGIN ", "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----" + "a " * 150, "-----BEGIN A A A A ", "api_key=" + "a" * 39, "Authorization: ",
    "Authorization: Digest ", "Bearer a", "SG." + "a" * 20 + ".", "a", "-", "\\n", "%20", "\x1b[0m",
]  # fmt: skip


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_text_takes_no_longer_than_other_text(unit: str) -> None:
    """A pattern that looked ahead again and again would need an hour for such a text: it runs into the time limit."""
    text = unit * (1_500_000 // len(unit))
    scrubbed = DETECTOR.scrub(text)
    assert (scrubbed is text) is (not DETECTOR.find(text[:4000]))


@pytest.mark.parametrize("tail", ["-a", "MIIE\n", "\\n", "a ", "AAAA"])
def test_an_unfinished_key_block_takes_no_longer_either(tail: str) -> None:
    text = "-----BEGIN PRIVATE KEY-----" + tail * 200_000
    assert DETECTOR.scrub(text).count("PRIVATE KEY") <= 1


def test_many_threads_share_one_detector() -> None:
    detector = SecretDetector()
    texts = [f"{'x' * n} sk-abcdefgh{n} y" for n in range(200)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(detector.scrub, texts)) == [f"{'x' * n} {REDACTED} y" for n in range(200)]


def test_the_replacement_is_taken_literally() -> None:
    assert DETECTOR.scrub("a sk-abcdefgh b", r"\1 \g<0>") == r"a \1 \g<0> b"
    assert DETECTOR.scrub("Bearer abcdefgh1", "") == "Bearer "


def test_an_own_pattern_takes_the_place_of_the_rules() -> None:
    detector = SecretDetector.of(r"acme-[0-9a-f]{4}")
    assert detector.scrub("sk-abcdefgh acme-00ff") == f"sk-abcdefgh {REDACTED}"
    assert detector.find("x acme-00ff") == [SecretMatch("pattern", 2, 11)]


def test_an_own_pattern_keeps_its_flags_and_groups() -> None:
    compiled = re.compile(r"(a|b)-(\d+)-\1", re.IGNORECASE)
    assert SecretDetector.of(compiled).scrub("A-12-a b-1-b a-1-b") == f"{REDACTED} {REDACTED} a-1-b"


def test_a_group_named_secret_limits_what_goes() -> None:
    detector = SecretDetector.of(r"pin=(?P<secret>\d*);")
    assert detector.scrub("pin=1234; pin=; pin=5;") == f"pin={REDACTED}; pin=; pin={REDACTED};"
    assert detector.find("pin=; pin=5;") == [SecretMatch("pattern", 10, 11)]


@pytest.mark.parametrize("pattern", ["a*", "", "x?", "(?:)"])
def test_a_pattern_that_matches_nothing_at_all_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="empty text"):
        SecretDetector.of(pattern)


def test_a_pattern_that_sometimes_matches_nothing_replaces_only_text() -> None:
    assert SecretDetector.of(r"7+|\b").scrub("a 77 b") == f"a {REDACTED} b"
    assert SecretDetector.of(r"\b").scrub("a 77 b") == "a 77 b"


def test_what_is_no_pattern_is_refused() -> None:
    with pytest.raises(re.error):
        SecretDetector.of("(")
    with pytest.raises(ValueError, match="bytes"):
        SecretDetector.of(re.compile(b"x"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one"):
        SecretDetector([])


def test_own_rules_and_the_order_of_rules() -> None:
    rules = [
        SecretRule("first", ("id:",), "[0-9]+"),
        SecretRule("second", ("id:",), "[0-9a-z]+"),
        SecretRule("long", ("id:x",), "y"),
    ]
    found = [(match.rule, match.start, match.end) for match in SecretDetector(rules).find("id:12 id:ab id:xyz")]
    assert found == [("first", 0, 5), ("second", 6, 11), ("long", 12, 17)]


def test_a_rule_without_a_start_is_tried_everywhere() -> None:
    detector = SecretDetector([SecretRule("digits", ("",), r"[0-9]{4}"), SecretRule("word", ("pin",), "!")])
    assert detector.scrub("a 1234 pin! b") == f"a {REDACTED} {REDACTED} b"


def test_without_the_library_everything_is_found_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ahocorasick_rs", None)
    with pytest.raises(ImportError):
        Prefilter(["a"])
    detector = SecretDetector()
    assert detector.scrub("a sk-abcdefgh") == f"a {REDACTED}"
    assert detector._prefilter is None
