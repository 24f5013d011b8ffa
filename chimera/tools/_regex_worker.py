"""The program that `RegexProcess` runs: it matches lines against one regular expression. Imports nothing of Chimera.

Standard input: a line of JSON with the pattern, then for each text a line `SIZE LIMIT` and SIZE bytes of UTF-8.
Standard output: a line of JSON for the pattern (null, or why it is wrong), and one for each text: up to LIMIT pairs of
line index and start of the match.
"""

import json
import re
import sys


def answer(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def matches(pattern: re.Pattern[str], text: str, limit: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    lines = text.split("\n")
    if not lines[-1]:  # what follows the last line end is no line
        lines.pop()
    for index, line in enumerate(lines):
        match = pattern.search(line)
        if match:
            found.append((index, match.start()))
            if len(found) == limit:
                break
    return found


def main() -> None:
    texts = sys.stdin.buffer
    job = json.loads(texts.readline())
    try:
        pattern = re.compile(job["pattern"], re.IGNORECASE if job["ignore_case"] else 0)
    except Exception as error:  # besides `re.error`, huge patterns overflow, recurse too deep or eat all memory
        answer(f"{type(error).__name__}: {error}")
        return
    answer(None)
    while header := texts.readline():
        size, limit = map(int, header.split())
        answer(matches(pattern, texts.read(size).decode("utf-8", "surrogatepass"), limit))


if __name__ == "__main__":
    main()
