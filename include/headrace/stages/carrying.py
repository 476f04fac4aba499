"""Carrying the heads on: an empty commit that tells how far a table has come, or gathers its small manifests.

Iceberg's own procedures leave snapshots without heads; then they are found in an older one, until that expires. So
whoever lets one write carries them on before anything does, and with them the rules by which a clean table's rows were
made: a run that went on by other ones would not be refused any more.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.update.snapshot import UpdateSnapshot

from headrace import clean, heads
from headrace.lake import heads_of, keep_time, noted

PROPERTY = "headrace.upkeep"
"""The key in a snapshot summary: what upkeep did, as JSON."""

SMALL_BYTES = 4 * 2**20
"""Half of what Iceberg lets a manifest grow to: a smaller one is worth being gathered."""

MANY = 20
"""More small manifests than this are gathered: each one is a file that every reader opens."""


def manifests(table: Table) -> list[ManifestFile]:
    """Those of main."""
    current = table.current_snapshot()
    return current.manifests(table.io) if current else []


def has_many_manifests(table: Table) -> bool:
    return sum(each.manifest_length < SMALL_BYTES for each in manifests(table)) > MANY


def has_heads(table: Table) -> bool:
    """Whether main's newest snapshot itself tells how far the table has come."""
    current = table.current_snapshot()
    return bool(current and current.summary and heads.PROPERTY in current.summary.additional_properties)


def with_heads(table: Table, *, done: Mapping[str, object]) -> dict[str, str]:
    """The summary of a snapshot of upkeep's: the heads and rules as they are, and what was done."""
    made_by = noted(table, clean.RULES)
    rules = {clean.RULES: made_by} if made_by else {}
    return {heads.PROPERTY: heads_of(table).to_json(), **rules, **without_heads(done)}


def without_heads(done: Mapping[str, object]) -> dict[str, str]:
    """The same for a table that has none."""
    return {PROPERTY: json.dumps(done)}


def commit_empty(table: Table, summary: Mapping[str, str]) -> None:
    """Add a snapshot for its summary's sake; raises CommitFailedException where somebody was quicker."""
    _commit(table, summary, lambda update: update.fast_append())


def gather_manifests(table: Table, summary: Mapping[str, str]) -> None:
    """The same, with small manifests made few: no data file is touched, and none is named otherwise."""
    _commit(table, summary, _merging)


def _merging(update: UpdateSnapshot) -> Any:
    append = update.merge_append()
    # The table's own settings say when its writers do so by themselves; here it is asked for.
    append._merge_enabled, append._min_count_to_merge = True, 2
    return append


def _commit(table: Table, summary: Mapping[str, str], appending: Callable[[UpdateSnapshot], Any]) -> None:
    with table.transaction() as transaction:
        with appending(transaction.update_snapshot(snapshot_properties=dict(summary))):
            pass  # no file
        keep_time(transaction)
