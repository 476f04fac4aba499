"""A schema's metadata: tags by path, properties, and the names of sensitive properties; all of them sorted."""

from collections.abc import Mapping
from typing import Any

from headrace.registry.version import whole

Metadata = Mapping[str, Any]
# The property that ties a schema's content to its version number, so that the same text can be registered again.
VERSION = "confluent:version"


def sorted_metadata(metadata: Metadata) -> Metadata:
    """One form for all metadata that are the same; what is empty is left out."""
    parts = {
        "tags": {key: sorted(set(tags)) for key, tags in sorted((metadata.get("tags") or {}).items())},
        "properties": dict(sorted((metadata.get("properties") or {}).items())),
        "sensitive": sorted(set(metadata.get("sensitive") or ())),
    }
    return {name: part for name, part in parts.items() if part}


def merge_metadata(older: Metadata | None, newer: Metadata | None) -> Metadata | None:
    """The older metadata with the newer ones laid over them."""
    if older is None or newer is None:
        return newer if older is None else older
    return sorted_metadata(
        {
            "tags": {**(older.get("tags") or {}), **(newer.get("tags") or {})},
            "properties": {**(older.get("properties") or {}), **(newer.get("properties") or {})},
            "sensitive": [*(older.get("sensitive") or ()), *(newer.get("sensitive") or ())],
        }
    )


def properties(metadata: Metadata | None) -> Mapping[str, str]:
    return (metadata or {}).get("properties") or {}


def with_version(metadata: Metadata | None, version: int) -> Metadata:
    return sorted_metadata({**(metadata or {}), "properties": {**properties(metadata), VERSION: str(version)}})


def without_version(metadata: Metadata | None) -> Metadata | None:
    if metadata is None:
        return None
    kept = {name: value for name, value in properties(metadata).items() if name != VERSION}
    return sorted_metadata({**metadata, "properties": kept})


def names_version(metadata: Metadata | None) -> bool:
    """Whether the metadata name a version, be it one or not."""
    return VERSION in properties(metadata)


def version_in(metadata: Metadata | None) -> int | None:
    """The version that the metadata name, if they name one."""
    return whole(properties(metadata).get(VERSION, ""))
