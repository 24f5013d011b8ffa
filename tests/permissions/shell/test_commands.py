"""Following wrappers, inner shells and variables to what really runs."""

from __future__ import annotations

import pytest

from chimera.permissions.shell import Command, read_shell


def names(text: str) -> list[str]:
    """Return the commands that start nothing further, as text."""
    return [" ".join(word.text for word in command.words) for command in read_shell(text).all() if not command.inner]


@pytest.mark.parametrize(
    "wrapped",
    [
        "{}",
        "sudo {}",
        "sudo -u root -E {}",
        "sudo -uroot -- {}",
        "sudo --user=root X=1 {}",
        "doas -u root {}",
        "env {}",
        "env -i -u HOME A=1 B=2 {}",
        "env a-b=c =d {}",
        "/usr/bin/env {}",
        "ENV {}",
        "timeout 1 {}",
        "timeout -k 5 --signal=KILL 1 {}",
        "timeout -sKILL 1 {}",
        'timeout "$T" {}',
        "nice {}",
        "nice -10 {}",
        "nice -n 5 {}",
        "nohup {}",
        "stdbuf -oL {}",
        "setsid -f {}",
        "ionice -c2 -n7 {}",
        "command {}",
        "command -p {}",
        "builtin {}",
        "exec {}",
        "exec -a ls {}",
        "time {}",
        "/usr/bin/time -v {}",
        "xargs {}",
        "xargs -0 -n1 -I% {}",
        "chroot /x {}",
        "flock /tmp/lock {}",
        "flock -n /tmp/lock -c '{}'",
        "busybox {}",
        "strace -f -o log {}",
        "uv run {}",
        "npx -y {}",
        "npm exec -- {}",
        "sudo env timeout 1 nice {}",
        "bash -c '{}'",
        "bash -lc '{}'",
        "bash -c -e '{}'",
        "bash -c -- '{}'",
        "bash -c - '{}'",
        "bash +x -c '{}'",
        "bash +o posix -c '{}'",
        "bash -o pipefail -ec '{}'",
        "bash -O extglob -c '{}' name arg",
        "sh -c \"bash -c '{}'\"",
        "bash <<< '{}'",
        "bash <<'E'\n{}\nE",
        "bash -s <<E\n{}\nE",
        "sudo bash <<E\n{}\nE",
        "eval {}",
        "eval '{}'",
        "trap '{}' EXIT",
        "find . -exec {} {{}} \\;",
        "find . -name x -ok {} +",
        "fd -x {}",
        "su - me -c '{}'",
        "su --command='{}'",
        "script -qc '{}' log",
        "runuser -u me {}",
        "watch -n1 {}",
        "ssh -p 22 host '{}'",
        "PS4='$({})' x",
        "GIT_SSH_COMMAND='{}' git fetch",
        "export EDITOR='{}'",
        "env PAGER='{}' man x",
        "eval -- '{}'",
        "trap -- '{}' 0",
        "mapfile -t -c1 -C '{}' a",
        "setpriv --reuid 0 {}",
        "prlimit {}",
        "linux64 {}",
        "choom -n 0 -- {}",
        "sg root -c '{}'",
        "split --filter='{}' f",
        "split --filt '{}' f",
        "tar -cf x --use-compress-program='{}' y",
        "tar -czI '{}' -f x y",
        "tar cf x y --checkpoint=1 --checkpoint-action=exec='{}'",
        "rsync -ave '{}' a b",
        "git -c alias.z='!{}' z",
        "git -C x -c core.pager='{}' log",
        "git -c diff.x.textconv='{}' diff",
        "git bisect run {}",
        "git submodule foreach --recursive '{}'",
        "git rebase --exec '{}' HEAD~1",
        "git rebase -x'{}' HEAD~1",
        "git grep -O'{}' x",
        "git difftool --extcmd='{}'",
        "git filter-branch --tree-filter '{}'",
        "git clone -u '{}' x",
    ],
)
def test_what_a_wrapper_starts_is_found(wrapped: str) -> None:
    text = wrapped.format("rm -x")
    assert any(name.startswith("rm -x") for name in names(text)), read_shell(text)


@pytest.mark.parametrize(
    "text",
    [
        "$x y",
        "${x} y",
        "$(y) z",
        "r* y",
        "{rm,-rf,x}",
        "~user/bin/x",
        "eval $x",
        'eval "$x"',
        "bash -c $x",
        'bash -c "rm $x"',
        "bash -c",
        "bash $x",
        "bash <(x)",
        "bash /dev/stdin",
        "bash < <(x)",
        "x | bash",
        "x | bash -s",
        "x | sh -",
        "bash --unknown x",
        "bash 3<<E\nE",
        "bash <<E\n$x\nE",
        "sh -c \"echo $'a'\"",
        "source <(x)",
        ". /dev/stdin",
        "sudo $x",
        "sudo --unknown x",
        "timeout $t x",
        "timeout -k $t 1 x",
        "env -S 'x y'",
        "env --unknown x",
        "xargs bash",
        "xargs sh -c",
        "xargs env",
        "xargs -I % sh -c %",
        "find $x -name y",
        "find . -exec {} \\;",
        "parallel x",
        "at now",
        "su",
        "alias x=y",
        "enable -f x y",
        "hash -p x y",
        "x='a[$(y)]'; echo $((x))",
        "let 'a[$(x)]=1'",
        "echo $(( 'a[$(x)]' ))",
        "(( 'a[$(x)]' ))",
        "echo $(( a['$(x)'] ))",
        "test -v 'a[$(x)]'",
        "printf -v 'a[$(x)]' y",
        "read 'a[$(x)]'",
        "declare -i x='$(y)'",
        "trap $x EXIT",
        "history -s x",
        "set -o history -o histexpand",
        "set -H",
        "set $x",
        "BASH_ALIASES[q]=x",
        "BASH_CMDS[q]=/x",
        "BASH_ENV=<(x) bash -c :",
        "BASH_ENV=/dev/stdin bash -c :",
        "ENV=$x sh -i",
        "bash --init-file <(x) -ic :",
        "bash --rcfile $x -i",
        "echo x > s; bash s",
        "echo x > s; . ./s",
        "echo x > ./s; chmod +x s; ./s",
        "echo x > s; BASH_ENV=s bash -c :",
        "git $x",
        'git -c "$x" log',
        "git -c alias.z=$x z",
        "git --unknown x",
        "sudo " * 20 + "x",
        "bash -c " * 20 + "x",
    ],
)
def test_what_is_known_only_when_it_runs_is_a_doubt(text: str) -> None:
    assert read_shell(text).doubts


@pytest.mark.parametrize(
    "text",
    [
        "ls $x",
        'git commit -m "$msg"',
        "bash script.sh $x",
        "bash < script.sh",
        "bash --version",
        "source venv/bin/activate",
        "command -v rm",
        "sudo -l",
        "npm run test",
        "env",
        "find . -name '*.py'",
        'find "$d" -name x',
        "for f in *.py; do wc $f; done",
        "awk '{print $1}' f",
        "echo $((1 + 2))",
        "x=$((y + 1))",
        "xargs",
        "exec 3> f",
        "sudo bash -c 'ls'",
        "set -euo pipefail",
        'set -- "$x"',
        "history",
        "ENV=test npm start",
        'git -c user.name="$x" commit',
        'git -C "$d" status',
        "git submodule update --init",
        "git bisect start",
        "echo x > s; bash t",
    ],
)
def test_everyday_texts_leave_no_doubt(text: str) -> None:
    assert read_shell(text).doubts == ()


@pytest.mark.parametrize(
    "text",
    [
        "PATH=/x ls",
        "PATH=/x; ls",
        "export PATH=/x",
        "LD_PRELOAD=x ls",
        "env NODE_OPTIONS=x node",
        "http_proxy=x; curl y",
        "x=1 ls",
        "for PATH in /x; do ls; done",
        "echo $((x))",
        "echo ${x:=y}",
    ],
)
def test_a_changed_environment_is_noted(text: str) -> None:
    assert read_shell(text).taints


@pytest.mark.parametrize("text", ["LC_ALL=C ls", "CI=1 ls", "x=1; ls $x", "for f in a; do ls; done", "NO_COLOR=1 ls"])
def test_a_harmless_environment_is_not(text: str) -> None:
    assert read_shell(text).taints == ()


def test_the_tree_says_where_the_inner_command_begins() -> None:
    (outer,) = read_shell("sudo -u me timeout 5 git log").commands
    assert (outer.inner_at, outer.transparent) == (3, False)
    (timeout,) = outer.inner
    assert (timeout.inner_at, timeout.transparent) == (2, True)
    assert [word.text for word in timeout.inner[0].words] == ["git", "log"]


def test_arguments_that_come_later_leave_a_command_open() -> None:
    def last(text: str) -> Command:
        return list(read_shell(text).all())[-1]

    assert last("xargs git").open_ended
    assert last("xargs env nice git").open_ended
    assert not last("xargs -I {} git {}").open_ended
    assert not last("xargs -I {} git {}").words[-1].exact
    assert not last("find . -exec git {} +").words[-1].exact
