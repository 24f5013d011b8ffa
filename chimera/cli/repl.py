"""`chimera code` on a terminal: a conversation, line by line."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from chimera.assembly.scrubbing import scrubbed, scrubbed_text
from chimera.cli.approval import Approver
from chimera.cli.decisions import decision_table
from chimera.cli.exits import INTERRUPTED, OK
from chimera.cli.interrupts import Interrupts
from chimera.cli.live import Remarks, resync_session, watching_plugins
from chimera.cli.options import CodeOptions, Mode
from chimera.cli.resuming import how_to_resume, where_it_stood
from chimera.cli.screen import Screen, make_console
from chimera.cli.setup import Session, open_session
from chimera.core.loop_events import LoopEventType
from chimera.errors import ChimeraError
from chimera.permissions.families import nearest
from chimera.text import clean

__all__ = ["Repl", "run_repl"]

_PROMPT = "> "
_MORE = "... "
_HELP = {
    "help": "show this",
    "clear": "begin a new conversation",
    "cost": "tokens and money spent so far",
    "plugins": "the plugins that are loaded",
    "decisions": "what interceptors, permissions and you decided",
    "resync": "load, reload and unload plugins as the settings and their files say now",
    "exit": "leave",
}


def run_repl(options: CodeOptions) -> int:
    """Talk until the person leaves, and return the exit code."""
    screen = Screen(make_console())
    approver = Approver(screen, _read_line, lambda: session.agent.cancel())
    with (
        open_session(options, default_mode=Mode.ASK, ask=approver) as session,
        watching_plugins(session, (repl := Repl(session, screen, _read_line)).remarks.say),
    ):
        return repl.run()


def _read_line(prompt: str) -> str:
    with suppress(ImportError):  # editing and history, where the platform has them
        import readline  # noqa: F401
    return input(prompt)


class Repl:
    """One conversation on one screen. `read_line` shows a prompt and returns a line; it may raise `EOFError` and
    `KeyboardInterrupt`."""

    def __init__(self, session: Session, screen: Screen, read_line: Callable[[str], str]) -> None:
        self._session = session
        self._screen = screen
        self._console = screen.console
        self._read_line = read_line
        self.remarks = Remarks(lambda line: screen.note(clean(line)))
        self._screen.follow_sub_agents(session.bus)
        self._usage: Counter[str] = Counter()
        self._commands: dict[str, Callable[[], None]] = {
            "help": self._help,
            "clear": self._clear,
            "cost": self._cost,
            "plugins": self._plugins,
            "decisions": self._decisions,
            "resync": self._resync,
        }

    def run(self) -> int:
        """Read and do until `/exit`, the end of input, or Ctrl-C twice at rest; then say how to go on."""
        self._banner()
        code = self._converse()
        agent = self._session.agent
        if agent.journal is not None and agent.history:
            command = how_to_resume(agent.journal.id, self._session.project)
            self._console.print(f"resume with: {clean(command)}", style="dim", soft_wrap=True)  # it is to be copied
        return code

    def _converse(self) -> int:
        warned = False
        with asyncio.Runner() as runner:
            while True:
                try:
                    line = self._read()
                except EOFError:
                    self._console.print()
                    return OK
                except KeyboardInterrupt:
                    self._console.print()
                    if warned:
                        return INTERRUPTED
                    warned = True
                    self._screen.note("press Ctrl-C again, or type /exit, to leave")
                    continue
                warned = False
                if line in ("/exit", "/quit"):
                    return OK
                self._obey(line, runner)

    def _read(self) -> str:
        line = self._read_line(_PROMPT)
        while line.endswith("\\"):
            line = f"{line[:-1]}\n{self._read_line(_MORE)}"
        return line.strip()

    def _obey(self, line: str, runner: asyncio.Runner) -> None:
        if not line:
            return
        if line.startswith("/"):
            self._command(line[1:])
        else:
            self._turn(line, runner)
        self._console.print()

    def _turn(self, text: str, runner: asyncio.Runner) -> None:
        interrupts = Interrupts(self._session.agent.cancel)
        with self.remarks.held_back():
            try:
                with interrupts.held():
                    runner.run(self._send(text, interrupts))
            except asyncio.CancelledError:
                self._screen.note("interrupted")
        if interrupts.exit_code not in (None, INTERRUPTED):
            raise SystemExit(interrupts.exit_code)

    async def _send(self, text: str, interrupts: Interrupts) -> None:
        with interrupts.watching():
            turn = self._session.agent.send(text)
            try:
                async for said in turn:
                    event = scrubbed(said)
                    self._session.log.see(event)
                    self._screen.show(event)
                    if event.type is LoopEventType.RESULT:
                        self._usage.update(event.data.usage)
            finally:
                await turn.aclose()

    def _command(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        added = self._session.manager.components.commands
        if name in self._commands:
            self._commands[name]()
        elif name in added:
            try:
                answer = added[name].handler(rest.strip())
            except Exception as problem:  # a plugin's command must not end the conversation
                self._screen.note(f"/{name} failed: {type(problem).__name__}: {scrubbed_text(str(problem))}", "red")
            else:
                self._console.print(clean(answer or "done"))
        else:
            near = nearest(name, [*_HELP, *added])
            hint = f"did you mean /{near}?" if near else "/help lists the commands"
            self._screen.note(f"there is no command /{name}; {hint}")

    def _banner(self) -> None:
        session, agent = self._session, self._session.agent
        loaded = ", ".join(session.manager.plugins) or "none"
        self._console.print(f"Chimera  {agent.model}", style="bold")
        self._screen.note(f"project {session.project}")
        self._screen.note(f"{agent.agent.preset.name}, permissions: {session.mode}, plugins: {loaded}")
        for path in session.settings.files:
            here = path.is_relative_to(session.project)
            self._screen.note(f"settings {path.relative_to(session.project) if here else path}")
        if agent.journal is not None:
            for line in where_it_stood(agent.journal.id, agent.history):
                self._screen.note(line)
        self._screen.note("/help lists the commands; a \\ at the end of a line continues it")
        self._console.print()

    def _help(self) -> None:
        added = self._session.manager.components.commands
        for name, text in {**_HELP, **{name: command.help for name, command in added.items()}}.items():
            self._console.print(f"/{clean(name):<11} {clean(text)}")

    def _clear(self) -> None:
        self._session.agent.clear()
        self._screen.note("a new conversation begins")

    def _cost(self) -> None:
        agent = self._session.agent
        tokens = f"{self._usage['input_tokens']:,} tokens in, {self._usage['output_tokens']:,} out"
        turns = f"{agent.turn_count} turn{'s' * (agent.turn_count != 1)}"
        self._console.print(f"{turns}, {tokens}, ${agent.total_cost:.4f}")

    def _plugins(self) -> None:
        loaded = self._session.manager.plugins
        for name, plugin in loaded.items():
            about = (type(plugin).__doc__ or "").strip().partition("\n")[0]
            self._console.print(f"{clean(name)}  {clean(about)}")
        if not loaded:
            self._screen.note("none; load some with --plugin NAME, or name them in .chimera/config.toml")

    def _resync(self) -> None:
        try:
            lines = resync_session(self._session)
        except ChimeraError as problem:
            self._screen.note(str(problem), "red")
            return
        for line in lines:
            self._screen.note(clean(line))

    def _decisions(self) -> None:
        entries = self._session.log.entries
        if entries:
            self._console.print(decision_table(entries))
        else:
            self._screen.note("nothing was blocked, replaced or denied yet")
