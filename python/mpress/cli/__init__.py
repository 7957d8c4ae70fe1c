"""The command line: one module a command.

Whatever the user got wrong is one sentence on standard error and exit status 2.
"""

import sys
from typing import Annotated

import typer

from mpress import _core
from mpress.cli import bench, info, inspect, report, run, simulate, tune
from mpress.cli.errors import UserError

app = typer.Typer(
    name="mpress",
    help="MPI programs exchange floating-point data compressed on the fly.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("run", context_settings={"allow_interspersed_args": False})(run.run)
app.command("report")(report.report)
app.command("inspect")(inspect.inspect)
app.add_typer(bench.app, name="bench")
app.command("tune")(tune.tune_machine)
app.command("simulate")(simulate.simulate)
app.command("info")(info.info)


def _print_version(asked_for: bool) -> None:
    if asked_for:
        print(_core.build_info()["version"])
        raise typer.Exit()


@app.callback()
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
