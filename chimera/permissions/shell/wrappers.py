"""Programs that run the program that their arguments name: how to find it among them.

Options follow the manual pages of GNU coreutils, findutils, util-linux, sudo and the tools named. An option that is not
known here makes the reading doubtful rather than wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from chimera.permissions.shell.findings import Word

__all__ = ["SHELLS", "WRAPPERS", "Split", "Wrapper", "basename", "option_end"]

SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash"})


def basename(name: str) -> str:
    """Return the name of a program without its folder, in lower case: some file systems do not tell case apart."""
    return name.rsplit("/", 1)[-1].casefold()


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How a wrapper takes its arguments.

    `valued` options take a value, `flags` take none; `operands` stand before the command; `subcommand` must come first
    for it to be a wrapper at all; `assigns` allows NAME=value before the command. With `joined` the words make up a
    shell text. `queries` are flags with which nothing is run. A `transparent` wrapper changes nothing that matters
    about the command: whoever allows the command allows it wrapped.
    """

    valued: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    queries: frozenset[str] = frozenset()
    operands: int = 0
    subcommand: frozenset[str] = frozenset()
    assigns: bool = False
    joined: bool = False
    transparent: bool = False


@dataclass(slots=True)
class Split:
    """Where the options of a command end: the index of its first operand, the options seen with their values, and
    whether that is sure."""

    index: int
    seen: dict[str, str] = field(default_factory=dict)
    sure: bool = True


def _wrapper(
    valued: str = "",
    flags: str = "",
    *,
    queries: str = "",
    operands: int = 0,
    subcommand: str = "",
    assigns: bool = False,
    joined: bool = False,
    transparent: bool = False,
) -> Wrapper:
    words = (frozenset(text.split()) for text in (valued, flags, queries, subcommand))
    valued_set, flag_set, query_set, subcommand_set = words
    return Wrapper(valued_set, flag_set | query_set, query_set, operands, subcommand_set, assigns, joined, transparent)


_SUDO = _wrapper(
    "-u --user -g --group -h --host -p --prompt -C --close-from -D --chdir -R --chroot -T --command-timeout -r --role"
    " -t --type -U --other-user",
    "-A --askpass -b --background -B --bell -E --preserve-env -H --set-home -i --login -k --reset-timestamp -n"
    " --non-interactive -P --preserve-groups -S --stdin -s --shell",
    queries="-l --list -v --validate -V --version -e --edit -K --remove-timestamp",
    assigns=True,
)
_RUN = _wrapper(
    "-p --python --with --extra --group --env-file --package --directory --project -C -e --env -n --name",
    "-q --quiet -v --verbose --frozen --locked --no-sync --isolated --active",
    subcommand="run exec",
)
_NPM = _wrapper("-p --package -w --workspace -C", "-y --yes -q --quiet", subcommand="exec x")

WRAPPERS: dict[str, Wrapper] = {
    "env": _wrapper(
        "-u --unset -C --chdir --block-signal --default-signal --ignore-signal",
        "-i --ignore-environment -0 --null -v --debug -",
        assigns=True,
        transparent=True,
    ),
    "timeout": _wrapper(
        "-k --kill-after -s --signal", "--foreground --preserve-status -v --verbose -p -f", operands=1, transparent=True
    ),
    "nice": _wrapper("-n --adjustment", transparent=True),
    "nohup": _wrapper(transparent=True),
    "time": _wrapper("-f --format -o --output", "-p --portability -v --verbose -a --append -q --quiet"),
    "stdbuf": _wrapper("-i --input -o --output -e --error", transparent=True),
    "setsid": _wrapper("", "-c --ctty -f --fork -w --wait", transparent=True),
    "ionice": _wrapper("-c --class -n --classdata", "-t --ignore", queries="-p --pid -P --pgid -u --uid"),
    "command": _wrapper("", "-p", queries="-v -V", transparent=True),
    "builtin": _wrapper(transparent=True),
    "exec": _wrapper("-a", "-c -l", transparent=True),
    "xargs": _wrapper(
        "-a --arg-file -d --delimiter -E -I -L --max-lines -n --max-args -P --max-procs -s --max-chars"
        " --process-slot-var -J -R -S",
        "-0 --null -o --open-tty -p --interactive -r --no-run-if-empty -t --verbose -x --exit --show-limits -i -e -l"
        " --replace --eof",
        transparent=True,
    ),
    "sudo": _SUDO,
    "doas": _wrapper("-u -C -a", "-n -s -L"),
    "pkexec": _wrapper("--user", "--disable-internal-agent --keep-cwd"),
    "busybox": _wrapper("", "", queries="--list --list-full --help"),
    "toybox": _wrapper(),
    "chroot": _wrapper("--userspec --groups", "--skip-chdir", operands=1),
    "chrt": _wrapper("-T -P -D", "-a -b -f -i -o -r -d -R -v", operands=1),
    "taskset": _wrapper("", "-a -c --cpu-list", operands=1),
    "runuser": _wrapper("-u --user -g --group -G --supp-group", "-l --login -m -p"),
    "flock": _wrapper("-w --timeout -E --conflict-exit-code", "-s -x -e -n -o -u -F --verbose", operands=1),
    "setarch": _wrapper("", "-R -v", operands=1),
    **dict.fromkeys(("linux32", "linux64", "i386", "x86_64"), _wrapper("", "-R -v -B -F -I -L -S -T -X -Z -3")),
    "setpriv": _wrapper(
        "--ambient-caps --inh-caps --bounding-set --ruid --euid --reuid --rgid --egid --regid --groups --securebits"
        " --pdeathsig --selinux-label --apparmor-profile --landlock-access --landlock-rule --seccomp-filter",
        "--nnp --no-new-privs --clear-groups --keep-groups --init-groups --reset-env",
        queries="-d --dump --list-caps",
    ),
    "prlimit": _wrapper("-o --output", "--noheadings --raw --verbose", queries="-p --pid"),
    "choom": _wrapper("-n --adjust", "", queries="-p --pid"),
    "uclampset": _wrapper("-m -M", "-a -s -R -v"),
    "numactl": _wrapper("-i -N -C -m -p -w", "-l -a -b", queries="-s -H --show --hardware"),
    "fakeroot": _wrapper("-l -f -i -s -b", "-u -h -v --"),
    "dbus-run-session": _wrapper("--config-file --dbus-daemon"),
    "unbuffer": _wrapper("", "-p"),
    "chronic": _wrapper("", "-v -e"),
    "gosu": _wrapper(operands=1),
    "su-exec": _wrapper(operands=1),
    "dumb-init": _wrapper("-r --rewrite", "-c --single-child -v --verbose"),
    "tini": _wrapper("-p -e", "-s -v -w -g"),
    "strace": _wrapper("-e -o -p -s -a -E -u -P -S -b -O -X -I", "-f -c -C -d -i -k -q -r -t -T -v -x -y -D"),
    "ltrace": _wrapper("-e -o -p -s -a -u -l -n -A -D -F -x", "-f -c -C -i -r -S -t -T"),
    "unshare": _wrapper("", "-m -u -i -n -p -U -C -T -f -r --fork --mount --net --pid --user --map-root-user"),
    "nsenter": _wrapper("-t --target -S --setuid -G --setgid", "-a -m -u -i -n -p -U -C -r -w -F"),
    "systemd-run": _wrapper("-p --property -u --unit -M", "--user --scope -t --pty -P --pipe -q --wait -r -d -G"),
    "caffeinate": _wrapper("-t -w", "-d -i -m -s -u", transparent=True),
    "xvfb-run": _wrapper("-n -s -f -e -p -w", "-a -l"),
    "watch": _wrapper("-n --interval -q --equexit", "-b -c -d -e -g -p -t -x -C -r -w", joined=True),
    "ssh": _wrapper(
        "-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w",
        "-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -V -v -X -x -Y -y",
        operands=1,
        joined=True,
    ),
    "npx": _wrapper("-p --package", "-y --yes --no-install -q --quiet --no --"),
    "uvx": _wrapper("--from --with -p --python", "-q --isolated"),
    "bunx": _wrapper(),
    **dict.fromkeys(("uv", "poetry", "pipenv", "pdm", "hatch", "rye", "bundle", "pixi"), _RUN),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _NPM),
}


def option_end(words: tuple[Word, ...], start: int, wrapper: Wrapper) -> Split:
    """Find the first operand from `start` on. A word whose value is not known ends the search, unsure."""
    split = Split(start)
    while split.index < len(words):
        word = words[split.index]
        if not word.exact and not (word.text[:1] == "-" and word.plain > 1):
            split.sure = False
            return split
        if word.text == "--":
            split.index += 1
            return split
        if word.text[:1] != "-" or (word.text == "-" and "-" not in wrapper.flags):
            return split
        split.index += 1
        wanting = _option(word.text, wrapper, split)
        if wanting is not None and split.index < len(words):
            value = words[split.index]
            split.seen[wanting] = value.text
            split.sure = split.sure and not value.splits
            split.index += 1
    return split


def _option(text: str, wrapper: Wrapper, split: Split) -> str | None:
    """Note one option word; return the option that takes the next word as its value."""
    name, equals, value = text.partition("=")
    if text in wrapper.valued:
        return text
    if name in wrapper.valued | wrapper.flags and (equals or text in wrapper.flags):
        split.seen[name] = value
    elif text[:2] != "--":
        return _cluster(text, wrapper, split)
    else:
        split.sure = False
    return None


def _cluster(text: str, wrapper: Wrapper, split: Split) -> str | None:
    """Read `-abc`: flags, the last of which may take a value, attached or as the next word."""
    for position, letter in enumerate(text[1:], 2):
        option = "-" + letter
        if option in wrapper.valued:
            split.seen[option] = text[position:]
            return None if text[position:] else option
        split.seen[option] = ""
        if option not in wrapper.flags:
            split.sure = split.sure and letter.isdigit()
            return None
    return None
