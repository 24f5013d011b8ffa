#!/bin/sh
# Make .venv ready: sh scripts/setup.sh EXTRA PYTHON
# EXTRA is `all` (to use Chimera) or `dev` (to work on it). Needs the network once, and none when nothing changed.
set -eu

extra=$1
python=${2:-}
cd "$(dirname "$0")/.."

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

check_python() {
    [ -n "$python" ] || fail "Chimera needs Python 3.11 or newer, and none was found." \
        "Install one, or say where it is: make run PYTHON=/path/to/python3.11"
    command -v "$python" >/dev/null || fail "There is no program $python; set PYTHON to a Python 3.11 or newer."
    new_enough "$python" || fail "Chimera needs Python 3.11 or newer; $python is $("$python" -V 2>&1)." \
        "Say where a newer one is: make run PYTHON=/path/to/python3.11"
    "$python" -c 'import ensurepip, venv' 2>/dev/null || fail "$python has no venv module." \
        "On Debian and Ubuntu it is a package of its own: apt install python3-venv"
}

make_venv() {
    check_python
    echo "Creating .venv with $("$python" -V 2>&1)"
    rm -rf .venv
    "$python" -m venv .venv
}

install() {
    .venv/bin/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt "$@"
}

new_enough .venv/bin/python || make_venv
echo "Installing what Chimera needs into .venv (once; takes about a minute)"
install hatchling editables
install --no-build-isolation --editable ".[$extra]"
touch ".venv/.ready-$extra"
[ "$extra" != dev ] || touch .venv/.ready-all
echo "Ready."
echo
