"""Earlier versions of feed files: as a git revision has them, or as a schema registry knows them."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from headrace import feed
from headrace.change import Earlier
from headrace.errors import RegistryError, SettingsError
from headrace.feed import ENDINGS, SUFFIXES, Feed, SchemaType

REGISTRY = "the registry"


def at_revision(folder: Path, revision: str) -> dict[str, Earlier]:
    """The feeds of a folder that a revision has in another form, by file; those that are gone since, too."""
    _git(folder, "rev-parse", "--verify", f"{revision}^{{commit}}")
    changed = _git(folder, "diff", "--name-only", "--relative", "--no-renames", "-z", revision, "--", ".").split("\0")
    known = _git(folder, "ls-tree", "--name-only", "-z", revision, "--", ".").split("\0")
    found: dict[str, Earlier] = {}
    for name in sorted({*changed} & {*known}):
        if Path(name).suffix in SUFFIXES:
            before = feed.read(name, _git(folder, "show", f"{revision}:./{name}")).feed
            found |= {name: Earlier(revision, before)} if before else {}
    return found


def before(path: Path, now: Feed, *, past: Mapping[str, Earlier]) -> Earlier | None:
    """What a file was, under its own name or under another that is gone since and had the same topic."""
    gone = (each for name, each in past.items() if not path.with_name(name).exists())
    return past.get(path.name) or next((each for each in gone if each.feed.subject == now.subject), None)


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise SettingsError("git is not installed, and only it knows its revisions.") from error
    if done.returncode:
        raise SettingsError(
            f"git {arguments[0]} in {folder}: {done.stderr.strip() or 'failed'}. "
            "Is that the name of a revision here? In CI, fetch it first: git fetch origin BRANCH"
        )
    return done.stdout


@dataclass(frozen=True)
class Answer:
    """What a registry says to a new version: the newest it has, and why the new one may not follow."""

    earlier: Earlier
    messages: list[str]


def registered(now: Feed, client: httpx.Client) -> Answer | None:
    """Ask a registry about a feed, under the level that its subject has there; None when it has no such subject."""
    subject = quote(now.subject, safe="")
    newest = _ask(client, "GET", f"/subjects/{subject}/versions/latest")
    if newest is None:
        return None
    text = {"schema": json.dumps(now.schema), "schemaType": now.schema_type}
    path = f"/compatibility/subjects/{subject}/versions?verbose=true"
    judged = _ask(client, "POST", path, content=json.dumps(text)) or {}
    type_: SchemaType = newest.get("schemaType", "AVRO")
    before = feed.read(f"{now.name}{ENDINGS.get(type_, '')}", newest["schema"]).feed
    return Answer(Earlier(REGISTRY, before), judged.get("messages", [])) if before else None


def _ask(client: httpx.Client, method: str, path: str, content: str | None = None) -> Any:
    """A registry's answer; None when it does not know what was asked for."""
    headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    try:
        answer = client.request(method, path, content=content, headers=headers if content else {})
    except httpx.HTTPError as error:
        raise RegistryError(f"{client.base_url}: {error}. Is the address right, and the registry up?") from error
    if answer.status_code == httpx.codes.NOT_FOUND:
        return None
    if answer.is_error:
        raise RegistryError(f"{answer.url}: {answer.status_code} {answer.reason_phrase}: {_told(answer)}")
    return answer.json()


def _told(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return answer.text[:200]
