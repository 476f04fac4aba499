"""The command line: a thin shell over the library, one module per command."""

import sys

import typer
from rich.console import Console

from headrace import __version__
from headrace.cli.accept_loss import accept_loss
from headrace.cli.compare import compare
from headrace.cli.forget import forget
from headrace.cli.import_ import import_
from headrace.cli.lint import lint
from headrace.cli.load import load
from headrace.cli.losses import losses
from headrace.cli.new import new
from headrace.cli.quarantine import quarantine
from headrace.cli.read import read
from headrace.cli.rebuild import rebuild
from headrace.cli.reconcile import reconcile
from headrace.cli.register import register
from headrace.cli.replay import replay
from headrace.cli.stubs import stubs
from headrace.cli.upkeep import upkeep
from headrace.cli.verify import verify
from headrace.cli.warehouse import warehouse
from headrace.cli.where import where
from headrace.errors import HeadraceError

app = typer.Typer(
    help="Headrace: one schema file in, a checked and reconciled pipeline out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(accept_loss)
app.command()(compare)
app.command()(forget)
app.command("import")(import_)
app.command()(lint)
app.command()(load)
app.command()(losses)
app.command()(new)
app.command()(quarantine)
app.command()(read)
app.command()(rebuild)
app.command()(reconcile)
app.command()(register)
app.command()(replay)
app.command()(stubs)
app.command()(upkeep)
app.command()(verify)
app.command()(where)
app.add_typer(warehouse, name="warehouse")


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
