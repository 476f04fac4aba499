"""Lineage: whether a metadata file is of a table as the catalog knows it, or tells a history that it has lost sight of.

A commit that never landed leaves one snapshot that the catalog does not know. More of them, or any of another table,
may be all that is left of records that Kafka has forgotten: the table was dropped and made again, the catalog was
restored from an older copy, or two catalogs use one place. Only main counts: what dead runs left on
their branches was expired.
"""

from collections.abc import Iterator

from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from headrace.lake import ancestors


def is_foreign(table: Table, location: str) -> bool:
    """Whether a metadata file, which the table does not name, tells of more than a commit that never landed."""
    try:
        found = FromInputFile.table_metadata(table.io.new_input(location))
    except FileNotFoundError:
        return False  # Another upkeep was quicker.
    if found.table_uuid != table.metadata.table_uuid:
        return bool(found.snapshots)  # A table that was never finished has none.
    known = {each.snapshot_id for each in table.metadata.snapshots}
    current = table.current_snapshot()
    kept = ancestors(table, current.snapshot_id if current else None)
    # What was expired is older than all that main still has.
    oldest = min((each.sequence_number or 0 for each in kept), default=0)
    unknown = [each for each in _main(found) if each.snapshot_id not in known]
    return sum((each.sequence_number or 0) > oldest for each in unknown) > 1


def _main(found: TableMetadata) -> Iterator[Snapshot]:
    """The snapshots of a metadata file's main branch, the newest first."""
    number = found.current_snapshot_id
    while number is not None and (snapshot := found.snapshot_by_id(number)):
        yield snapshot
        number = snapshot.parent_snapshot_id
