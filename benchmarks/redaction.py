"""How fast the default rules go through text, in MB/s of processor time, against one compiled pattern.

Hostile texts repeat what a rule begins with, or nearly matches, over and over. The last ones are made of secrets alone,
each of which has to be cut out and replaced, or of secrets and something that looks like one, by turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks._kit import Row, report, seconds
from chimera.secrets import DEFAULT_RULES, SecretDetector

_MB = 1_000_000
_KEY = "sk-ant-api03-AbCdEf0123456789AbCdEf0123456789"
_FLOOR = re.compile(r"sk-[A-Za-z0-9_-]{8,}")
HOSTILE = (
    *("://", "eyJ", "password=", "SG.", "task-", "api_key", "apikey=", "AKIA", "sig=", "aaa0Q~", "Bearer "),
    *("Authorization: ", "-----BEGIN ", "key-a ", "token-", "://a:", "://@", "eyJaaaaaaaaa.", "a", "xoxb-", "://a "),
    *("-----BEGIN PRIVATE KEY-----", "password=a", "\\n", "sk-", "[;", "A:a@"),
)
_STARTS = sorted({start for rule in DEFAULT_RULES for start in rule.starts})
SECRETS = (
    *("://a:a@", f"{_KEY} ", "password=abc;", "://:a@", "pwd=abc;", "://:a@ pwd=abc;", "é://:a@"),
    *("://:a@task-", "://:a@password=", "apikey=://:a@", "://pwd=abc:x@"),
)


def repeated(text: str, size: int) -> str:
    return (text * (size // len(text) + 1))[:size]


def source(size: int) -> str:
    files = sorted((Path(__file__).parent.parent / "chimera" / "core").glob("*.py"))
    return repeated("".join(file.read_text("utf-8") for file in files), size)


def sparse(size: int) -> str:
    clean = source(size)
    return "".join(f"{clean[at : at + 4096 - len(_KEY)]}{_KEY}\n" for at in range(0, size, 4096))


def log(size: int) -> str:
    line = "2026-01-01T12:00:{0:02d}Z INFO request id={0} path=/api/v1/items/{0} status=200 took={0}ms\n"
    return repeated("".join(line.format(number % 60) for number in range(6000)), size)


def users(name: str, size: int) -> str:
    """Return addresses with a password, no two with the same user."""
    return "".join(f"://{name}{number}:a@" for number in range(100_000, 100_000 + size // (len(name) + 12)))


def crowds(size: int) -> str:
    """Return a text that is full of something else every 16 kB."""
    return repeated("".join(repeated(f"{start} ", 1 << 14) for start in _STARTS[::3]), size)


def speed(text: str, rounds: int = 5) -> float:
    detector = SecretDetector()
    detector.scrub(text[:100_000])
    return len(text) / median(seconds(lambda: detector.scrub(text)) for _ in range(rounds)) / _MB


def plain() -> Iterator[Row]:
    clean = source(8 * _MB)
    floor = len(clean) / median(seconds(lambda: _FLOOR.sub("", clean)) for _ in range(5)) / _MB
    found = speed(clean)
    yield Row("one compiled pattern, clean source text (floor)", f"{floor:.0f} MB/s")
    yield Row("clean source text", f"{found:.0f} MB/s", "150 MB/s", found >= 150)
    for what, text in (("one secret in 4 kB", sparse(4 * _MB)), ("a log of 10 MB", log(10 * _MB))):
        found = speed(text)
        yield Row(what, f"{found:.0f} MB/s", "20 MB/s", found >= 20)


def hostile() -> Iterator[Row]:
    for text in HOSTILE:
        found = speed(repeated(text, _MB), 3)
        yield Row(f"`{text!r}` over and over".replace("|", "\\|"), f"{found:.0f} MB/s", "20 MB/s", found >= 20)
    found = speed(repeated(" ".join(_STARTS), _MB), 3)
    yield Row("all that a secret can begin with, over and over", f"{found:.0f} MB/s", "20 MB/s", found >= 20)
    for text in SECRETS:
        found = speed(repeated(text, _MB), 3)
        yield Row(f"secrets: `{text!r}`", f"{found:.0f} MB/s", "20 MB/s", found >= 20)
    for what, text in (
        ("passwords of users, each another one", users("", _MB)),
        ("the same, and their names look like secrets", users("sk-", _MB)),
        ("the same, and their names are secrets", users("sk-aaaa", _MB)),
        ("a few crowds, then `password=` over and over", crowds(_MB // 4) + repeated("password=", 4 * _MB)),
        ("another start crowds each 16 kB", crowds(_MB)),
        ("clusters of secrets, 3 kB in 6", repeated(repeated("://a:a@", 3000) + repeated("x y z ", 3000), _MB)),
    ):
        found = speed(text, 3)
        yield Row(what, f"{found:.0f} MB/s", "20 MB/s", found >= 20)


def short() -> Iterator[Row]:
    detector = SecretDetector()
    for size in (60, 300, 4000):
        texts = [repeated("://:a@", size)] * (_MB // size)
        spent = median(seconds(partial(list, map(detector.scrub, texts))) for _ in range(3))
        found = size * len(texts) / spent / _MB
        yield Row(f"many texts of {size} characters: `'://:a@'`", f"{found:.0f} MB/s")


def growth() -> Iterator[Row]:
    detector = SecretDetector()

    def spent(text: str) -> float:
        return seconds(lambda: detector.scrub(text))

    worst, of = 0.0, ""
    for start in (*HOSTILE, *SECRETS):
        small, large = repeated(start, _MB), repeated(start, 8 * _MB)
        detector.scrub(small)
        ratio = median(spent(large) for _ in range(5)) / median(spent(small) for _ in range(5))
        worst, of = max((worst, of), (ratio, start))
    yield Row(f"time for 8 MB over 1 MB, worst: `{of!r}`", f"{worst:.1f}", "9", worst <= 9)


def main() -> None:
    report("Redaction", [*plain(), *hostile(), *short(), *growth()])


if __name__ == "__main__":
    main()
