"""Programs with options whose value is a command, and settings of git that are commands.

Options follow the manual pages of GNU tar, coreutils, diffutils, ripgrep, rsync, OpenSSH, man-db, zip, dpkg and git.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from chimera.permissions.shell.findings import Word
from chimera.permissions.shell.wrappers import Wrapper

__all__ = ["GIT", "GIT_OPTIONS", "STARTING", "command_of_setting", "option_values"]

STARTING: dict[str, frozenset[str]] = {
    name: frozenset(options.split())
    for name, options in {
        "tar": "-I --use-compress-program --to-command --checkpoint-action -F --info-script --new-volume-script"
        " --rsh-command --rmt-command",
        "split": "--filter",
        "sort": "--compress-program",
        "diff3": "--diff-program",
        "sdiff": "--diff-program",
        "rg": "--pre --hostname-bin",
        "rsync": "-e --rsh --rsync-path",
        "scp": "-S",
        "sftp": "-S",
        "man": "-P --pager -H --html",
        "zip": "-TT --unzip-command",
        "dpkg": "--pre-invoke --post-invoke --status-logger",
        "start-stop-daemon": "-x --exec -a --startas",
        "nix-shell": "--run --command",
        "wget": "--use-askpass",
        "mapfile": "-C",
        "readarray": "-C",
    }.items()
}
GIT: dict[str, frozenset[str]] = {
    name: frozenset(options.split())
    for name, options in {
        "rebase": "-x --exec",
        "difftool": "-x --extcmd",
        "grep": "-O --open-files-in-pager",
        "filter-branch": "--setup --subdirectory-filter --env-filter --tree-filter --index-filter --parent-filter"
        " --msg-filter --commit-filter --tag-name-filter",
        "clone": "-u --upload-pack",
        "fetch": "--upload-pack",
        "pull": "--upload-pack",
        "push": "--receive-pack --exec",
        "ls-remote": "--upload-pack --exec",
        "archive": "--exec",
        "send-email": "--sendmail-cmd --to-cmd --cc-cmd --header-cmd",
    }.items()
}
GIT_OPTIONS = Wrapper(
    valued=frozenset(
        {
            "-C",
            "-c",
            "--git-dir",
            "--work-tree",
            "--namespace",
            "--exec-path",
            "--config-env",
            "--super-prefix",
            "--attr-source",
        }
    ),
    flags=frozenset(
        {
            "-p",
            "-P",
            "--paginate",
            "--no-pager",
            "--bare",
            "--no-replace-objects",
            "--literal-pathspecs",
            "--no-optional-locks",
            "--version",
            "--help",
            "--html-path",
            "-v",
            "-h",
        }
    ),
)
_RUNNING_SETTING = re.compile(
    r"(?:alias|pager|include|includeif)\..*|.*(?:pager|editor|command|cmd|program|helper|textconv|external|driver|askpass"
    r"|fsmonitor|hookspath|clean|smudge|process|proxy|uploadpack|receivepack|\.path)",
    re.IGNORECASE | re.DOTALL,
)


def option_values(words: tuple[Word, ...], options: frozenset[str]) -> Iterator[Word]:
    """Yield the values of `options`: the next word, or what stands behind `=` or behind the letter."""
    for index, word in enumerate(words):
        name, equals, value = word.text.partition("=")
        if not word.text.startswith("-"):
            continue
        if name.startswith("--"):
            named = [option for option in options if option == name or (len(name) > 3 and option.startswith(name))]
            if named and equals:
                yield replace(word, text=value)
            elif named:
                yield from words[index + 1 : index + 2]
            continue
        for option in options:
            before, found, rest = word.text[1:].partition(option[1:])
            if not option.startswith("--") and found and before.isalpha() | (not before):
                yield from [replace(word, text=rest)] if rest else words[index + 1 : index + 2]


def command_of_setting(setting: str) -> str | None:
    """Return the shell text that `git -c NAME=VALUE` makes git run; None for a setting that is no command."""
    name, _, value = setting.partition("=")
    if not _RUNNING_SETTING.fullmatch(name):
        return None
    if name.lower().startswith("alias."):
        return value[1:] if value.startswith("!") else f"git {value}"
    return value
