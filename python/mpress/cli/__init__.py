"""The command line: one module a command.

Whatever the user got wrong is one sentence on standard error and exit status 2.
"""

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

from mpress import _core
from mpress.cli.errors import UserError

# Of each command: what there is in the module of its name, and settings of typer's.
_COMMANDS = {
    "run": ("run", {"context_settings": {"allow_interspersed_args": False}}),
    "report": ("report", {}),
    "inspect": ("inspect", {}),
    "bench": ("app", {}),
    "tune": ("tune_machine", {}),
    "simulate": ("simulate", {}),
    "info": ("info", {}),
}


def application(names: Iterable[str] = _COMMANDS) -> typer.Typer:
    """The command line with these commands: each loads what it needs, and `run` little."""
    app = typer.Typer(
        name="mpress",
        help="MPI programs exchange floating-point data compressed on the fly.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_check_environment)
    for name in names:
        attribute, settings = _COMMANDS[name]
        found = getattr(import_module(f"mpress.cli.{name}"), attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name, **settings)(found)
    return app


def _print_version(asked_for: bool) -> None:
    if asked_for:
        print(_core.build_info()["version"])
        raise typer.Exit()


def _check_environment(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    try:
        _core.check_environment()
    except ValueError as error:
        raise UserError(str(error)) from None


def main() -> None:
    """Entry point of `mpress`."""
    try:
        app = application([name for name in _COMMANDS if sys.argv[1:2] == [name]] or _COMMANDS)
        sys.exit(app(standalone_mode=False))
    except UserError as error:
        # Ranks that mpress started may have said it.
        message, status = str(error).removeprefix("mpress: "), 2
    except KeyboardInterrupt:
        message, status = "interrupted", 130
    except BrokenPipeError:
        sys.stderr.close()  # nobody reads on; the interpreter's last flush shall not complain
        status = 141
        message = ""
    except Exception as error:
        # Typer's own errors (of click, or of the copy of it that newer releases carry).
        if not hasattr(error, "format_message"):
            raise
        message, status = error.format_message().replace("\n", " "), error.exit_code
    if message:
        print(f"mpress: {message}", file=sys.stderr)
    sys.exit(status)
