"""Reading shell texts: which commands a text runs, and where that cannot be told."""

from chimera.permissions.shell.commands import Command, ShellText, read_shell
from chimera.permissions.shell.findings import Word

__all__ = ["Command", "ShellText", "Word", "read_shell"]
