"""The command line: a thin shell over the library, one module per command."""

import sys

import typer
from rich.console import Console

from headrace import __version__
from headrace.cli.lint import lint
from headrace.cli.new import new
from headrace.cli.register import register
from headrace.cli.stubs import stubs
from headrace.errors import HeadraceError

app = typer.Typer(
    help="Headrace: one schema file in, a checked and reconciled pipeline out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(lint)
app.command()(new)
app.command()(register)
app.command()(stubs)


def main() -> None:
    """Run the command line; our own errors are one clear message on standard error and exit code 1."""
    try:
        app()
    except HeadraceError as error:
        Console(stderr=True, soft_wrap=True, highlight=False).print(f"headrace: {error}", markup=False)
        sys.exit(1)


@app.callback()
def root() -> None:
    """Headrace: one schema file in, a checked and reconciled pipeline out."""


@app.command()
def version() -> None:
    """Print the version."""
    print(__version__)
