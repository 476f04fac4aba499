"""`headrace lint`: everything that is wrong in feed files, at once."""

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from headrace import feed, layout, warehouse
from headrace.errors import RegistryError, SettingsError
from headrace.fault import Fault, Severity
from headrace.registry.compatibility import Level
from headrace.settings import Settings

if TYPE_CHECKING:
    import httpx

COLOURS: Mapping[Severity, str] = {"error": "bold red", "warning": "yellow"}


def lint(  # noqa: PLR0917 - typer calls it by names
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Feed files, or folders of them; the schemas folder if none.", exists=True),
    ] = None,
    against_git: Annotated[
        str | None,
        typer.Option(metavar="REV", help="Compare with the files of a git revision, such as origin/main."),
    ] = None,
    against_registry: Annotated[
        bool,
        typer.Option("--against-registry", help="Compare with the registry of the connection headrace_registry."),
    ] = False,
    level: Annotated[
        Level, typer.Option(help="How schemas may change, against git; a registry has levels of its own.")
    ] = Level.BACKWARD,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on warnings too.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Tell everything that is wrong in feed files: where, which value, and what to do.

    Without files, in those of the schemas folder, and in those that declare warehouses.

    Exit code 0: nothing, or warnings only. 1: errors. 2: it could not be checked.
    Example: headrace lint schemas/orders.avsc --against-git origin/main
    """
    # What reads columns is slow to import, and other commands do without.
    from headrace import lint as library

    paths = [path for given in files or [Settings().schemas] for path in _feed_files(given)]
    faults = library.lint(paths, warehouses=_warehouses())
    declared = [] if files else warehouse.files(Settings().warehouses)
    faults += _warehouse_faults(declared)
    if against_git:
        faults += _since_revision(paths, against_git, level=level)
    if against_registry:
        faults += _since_registered(paths)
    checked = [*paths, *declared]
    ordered = sorted(faults, key=lambda fault: (checked.index(Path(fault.file)), fault.line))
    if json_:
        print(json.dumps([asdict(fault) for fault in ordered], ensure_ascii=False, indent=2))
    else:
        _show(ordered, checked=len(checked))
    if any(strict or fault.severity == "error" for fault in faults):
        sys.exit(1)


def _feed_files(given: Path) -> list[Path]:
    if not given.exists():
        raise typer.BadParameter(f"{given} is not there. Name files or a folder, or set HEADRACE_SCHEMAS.")
    return feed.files(given) if given.is_dir() else [given]


def _warehouses() -> set[str] | None:
    """Those that are declared; None where there is no folder of them, as in a repository of feed files alone."""
    folder = Settings().warehouses
    return {path.stem for path in warehouse.files(folder)} if folder.is_dir() else None


def _warehouse_faults(paths: Sequence[Path]) -> Iterator[Fault]:
    """What is wrong with warehouses' files, each by itself, beside the others, and with what they say of feeds."""
    if not paths:
        return
    good, bad = warehouse.declared(Settings().warehouses)
    read = {path.stem: feed.read_file(path) for path in _feed_files(Settings().schemas)}
    feeds = {name: None if each.faults else each.feed for name, each in read.items()}
    for path in paths:
        for faults in warehouse.misfits(path.stem, good[path.stem], feeds).values() if path.stem in good else ():
            yield from (replace(fault, file=str(path), line=1) for fault in faults)
        for told in bad.get(path.stem, "").splitlines():
            yield Fault(str(path), "", told.removeprefix(f"{path.name}: "), line=1)


def _since_revision(paths: Sequence[Path], revision: str, *, level: Level) -> Iterator[Fault]:
    from headrace import earlier, lint

    for folder, together in groupby(sorted(paths), key=lambda path: path.parent):
        try:
            past = earlier.at_revision(folder, revision)
        except SettingsError as error:
            raise typer.BadParameter(str(error), param_hint="--against-git") from error
        for path in together:
            read = feed.read_file(path)
            before = read.feed and earlier.before(path, read.feed, past=past)
            if read.feed and before:
                refused = lint.refusals(read.feed, before, level=level)
                yield from lint.placed(path, lint.changes(read, before, refused=refused))


def _since_registered(paths: Sequence[Path]) -> Iterator[Fault]:
    from headrace import change, earlier, lint

    try:
        with _registry() as client:
            for path in paths:
                read = feed.read_file(path)
                answer = read.feed and earlier.registered(read.feed, client)
                if read.feed and answer:
                    refused = change.answered_faults(read.feed, answer.messages, origin=answer.earlier.origin)
                    yield from lint.placed(path, lint.changes(read, answer.earlier, refused=refused))
    except (RegistryError, SettingsError) as error:
        raise typer.BadParameter(str(error), param_hint="--against-registry") from error


def _registry() -> "httpx.Client":
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        from airflow.sdk.exceptions import AirflowNotFoundException

        from headrace.airflow.hooks import RegistryHook

        try:
            return RegistryHook().address.client()
        except AirflowNotFoundException as error:
            fix = "Add it under Admin, Connections, or set AIRFLOW_CONN_HEADRACE_REGISTRY."
            raise SettingsError(f"Airflow has no connection {layout.REGISTRY_CONNECTION}. {fix}") from error


def _show(faults: Sequence[Fault], *, checked: int) -> None:
    """One line per fault, which terminals and editors can open; colours only for people."""
    console = Console(soft_wrap=True, highlight=False)
    places = [f"{fault.file}:{fault.line}" for fault in faults]
    width = max(map(len, places), default=0)
    for place, fault in zip(places, faults, strict=True):
        told = " ".join(part for part in (fault.path, fault.message, fault.fix) if part)
        severity = (f"{fault.severity:<7}", COLOURS[fault.severity])
        console.print(Text.assemble(f"{place:<{width}}  ", severity, f"  {told}"))
    found = [fault.severity for fault in faults]
    counts = [_count(checked, "file"), *(_count(found.count(severity), severity) for severity in COLOURS)]
    console.print(", ".join(counts), markup=False)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
