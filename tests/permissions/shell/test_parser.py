"""Finding every simple command of a text, and stopping where the text is not understood."""

from __future__ import annotations

import pytest

from chimera.permissions.shell.findings import Findings, Heredoc
from chimera.permissions.shell.parser import MAX_DEPTH, MAX_LENGTH, read_commands


def read(text: str) -> Findings:
    found = Findings()
    read_commands(text, found)
    return found


def commands(text: str) -> list[str]:
    found = read(text)
    assert found.doubts == []
    return sorted(" ".join(word.text for word in simple.words) for simple in found.commands if simple.words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a 1 && b || c; d & e | f |& g\nh", ["a 1", "b", "c", "d", "e", "f", "g", "h"]),
        ("a\\\n b", ["a b"]),
        ("a \\\n&& b", ["a", "b"]),
        ("a # b; c\nd #e", ["a", "d"]),
        ("a#b", ["a#b"]),
        ("# a\n", []),
        ("", []),
        (" \t\n", []),
        ("(a; (b)); { c; }", ["a", "b", "c"]),
        ("((1 + 2)); a", ["a"]),
        ("((a); b)", ["a", "b"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("while a; do b; done; until c; do d; done", ["a", "b", "c", "d"]),
        ("for x in 1 2; do a $x; done", ["a $x"]),
        ("for x\nin 1 2\ndo a; done", ["a"]),
        ("for x do a; done", ["a"]),
        ("for x in $(a); do b; done", ["a", "b"]),
        ("for ((i = 0; i < 3; i++)); do a; done", ["a"]),
        ("select x in 1; do a; done", ["a"]),
        ("case x in a) b;; (c | d) e ;& *) f ;;& esac; g", ["b", "e", "f", "g"]),
        ("case $(a) in\n# note\nx) b\n;;\nesac", ["a", "b"]),
        ("case x in esac; a", ["a"]),
        ("f() { a; }; function g { b; }; function h() ( c )", ["a", "b", "c"]),
        ("! a; time b; time -p c; time -- d", ["a", "b", "c", "d"]),
        ("[[ -f x && y == z* || ( a < b ) ]] && a", ["a"]),
        ("[[ $(a) == \n`b` ]]", ["a", "b"]),
        ("[ -f x ] && a", ["[ -f x ]", "a"]),
        ("X=1 a; Y=2 Z=3 b", ["a", "b"]),
        ("x=(1 $(a) '2'\n3) b", ["a", "b"]),
        ('$(a) b; echo `c` "$(d)" "`e`"', ["$(...) b", "a", "c", "d", "e", "echo `...` $(...) `...`"]),
        ("echo `a \\`b\\``", ["a `...`", "b", "echo `...`"]),
        ('echo "`a \\"b c\\"`"', ["a b c", "echo `...`"]),
        ("echo $(case x in y) a;; esac)", ["a", "echo $(...)"]),
        ("echo ${x:-$(a)} ${y#`b`} ${#z} ${w//a/$(c)}", ["a", "b", "c", "echo ${x...} ${y...} ${#z} ${w...}"]),
        ('echo "${x:-$(a)}"', ["a", "echo ${x...}"]),
        ("echo $((1 + x)) $((a); b)", ["a", "b", "echo $(...) $(...)"]),
        ("diff <(a) >(b)", ["a", "b", "diff <(...) >(...)"]),
        ("a >f 2>&1 <g b", ["a b"]),
        ("a > >(b)", ["a", "b"]),
        ("a <<< $(b)", ["a", "b"]),
        ("a {x}>f 2>&- b", ["a b"]),
        ("'a b' c", ["a b c"]),
        ("é=1 a", ["é=1 a"]),
    ],
)
def test_commands_are_found_wherever_they_stand(text: str, expected: list[str]) -> None:
    assert commands(text) == expected


@pytest.mark.parametrize(
    ("text", "expected", "body"),
    [
        ("a <<E | b\n$(c)\nE\nd", ["a", "b", "c", "d"], "$(c)"),
        ("a <<'E'\n$(c)\nE\nd", ["a", "d"], "$(c)"),
        ('a <<"E"\n`c`\nE\nd', ["a", "d"], "`c`"),
        ("a <<\\E\n`c`\nE\nd", ["a", "d"], "`c`"),
        ("a <<-E\n\tx\n\tE\nd", ["a", "d"], "x"),
        ("a <<E\nx\n E\nE \nE", ["a"], "x\n E\nE "),
        ("a <<E\nb", ["a"], "b"),
        ("a <<E", ["a"], ""),
        ("a <<E\nx \\\ny\nE\nd", ["a", "d"], "x \\\ny"),
        ("a <<E\n\\$(c) \\`d\\`\nE", ["a"], "\\$(c) \\`d\\`"),
    ],
)
def test_here_documents_hold_text_and_what_is_substituted(text: str, expected: list[str], body: str) -> None:
    assert commands(text) == expected
    stdin = next(simple.stdin for simple in read(text).commands if simple.stdin)
    assert isinstance(stdin, Heredoc)
    assert stdin.body == body


def test_two_here_documents_follow_in_order() -> None:
    found = read("a <<A; b <<B\n1\nA\n2\nB\nc")
    bodies = [simple.stdin.body for simple in found.commands if isinstance(simple.stdin, Heredoc)]
    assert bodies == ["1", "2"]
    assert commands("a <<A; b <<B\n1\nA\n2\nB\nc") == ["a", "b", "c"]


def test_only_standard_input_is_standard_input() -> None:
    assert read("a 3<<E\nx\nE").commands[0].stdin is None
    assert read("a 3<<<x").commands[0].stdin is None
    assert read("a 0<<<x").commands[0].stdin is not None


@pytest.mark.parametrize(
    ("text", "writes", "reads"),
    [
        ("a > f >> g 2> h &> i &>> j >| k", ["f", "g", "h", "i", "j", "k"], []),
        ("a < f <> g", ["g"], ["f", "g"]),
        ("a >& f 2>&1 >&- 3>&2-", ["f"], []),
        ("{ a; } > f; (b) > g; if c; then d; fi > h", ["f", "g", "h"], []),
        ("> f", ["f"], []),
        ("a <&3", [], []),
        ("a <&$x", [], ["$x"]),
        ("$(a > f)", ["f"], []),
    ],
)
def test_redirections_name_files(text: str, writes: list[str], reads: list[str]) -> None:
    found = read(text)
    assert [word.text for word in found.writes] == writes
    assert [word.text for word in found.reads] == reads


@pytest.mark.parametrize(
    "text",
    [
        "a 'b",
        'a "b',
        "a `b",
        "a $'b",
        "a \\",
        "a $(b",
        "a ${b",
        "a ${b-c",
        "(a",
        "a )",
        "a b(c)",
        "X=1 a()",
        "a <",
        "a > |",
        "esac",
        "case x",
        "case x of y) a;; esac",
        "case x in a",
        "case x in a;; esac",
        "a ;; b",
        "for",
        "for ((a b",
        "[[ a",
        "[[ a; b ]]",
        "[[ # ]] \n a ]]",
        "a[ # ]=1; b",
        "x=(1 # )\n)",
        "x=(1 ; 2)",
        "echo ${ a; }",
        "echo ${x@P}",
        "echo ${!x}",
        "echo ${a[$i]}",
        "echo $[1+1]",
        'echo "$\\\n(a)"',
        'echo "${x:-\'}"',
        'echo "${x:-"y"}"',
        "echo `# ` a`",
        "a <<$x\n$x",
        "a <<E'O'F\nEOF",
        "a <<\\\n-E\nE",
        "echo $(a <<E)\nE",
        "echo $(a <<E\nE)\n)",
        "a <<E $(b\n)\nE",
        "a <<E\nx\\\nE\nb\nE",
        "a <<EOF\nEO\\\nF\nb",
        "a <<E; [[ x\nE\n]]",
        "coproc a",
        "a\0b",
        "x" * (MAX_LENGTH + 1),
        "$(" * (MAX_DEPTH + 3) + "a" + ")" * (MAX_DEPTH + 3),
        "${x:-" * 3000,
    ],
)
def test_what_is_not_understood_is_a_doubt(text: str) -> None:
    assert read(text).doubts


def test_commands_before_the_doubt_are_found() -> None:
    found = read("rm x\necho 'open")
    assert [simple.words[0].text for simple in found.commands] == ["rm"]
    assert found.doubts


@pytest.mark.parametrize("text", ["((i++))", "[[ x -eq y ]]", "for ((;;)); do a; done", "echo $((x))", "echo ${x:1}"])
def test_sums_over_variables_are_noted(text: str) -> None:
    assert read(text).computes


@pytest.mark.parametrize("text", ["a '$(b)'", 'a "\\$(b)"', "a \\`", "a $'\\x24(b)'", "a <<'E'\n$(b)\nE"])
def test_quoted_code_is_noted(text: str) -> None:
    assert read(text).quoted_code


def test_a_network_redirection_is_noted() -> None:
    assert read("cat < /dev/tcp/host/80").taints


def test_a_long_text_is_read_quickly_enough_to_be_read_at_all() -> None:
    hostile = [
        "$((" + "$a+" * 20_000,
        "((" * 20_000,
        "a <<E\n" + "x\\\n" * 20_000,
        "`" + "\\\\" * 20_000,
        "${a" * 20_000,
    ]
    for text in hostile:
        assert read(text).doubts or read(text).commands
