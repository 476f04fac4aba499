"""Progress: whether any store of a feed lacks something that the store before it has."""

from collections.abc import Iterable

from headrace import away, layout, quarantine, withheld
from headrace.feed import Feed
from headrace.heads import Heads
from headrace.lake import Lake, heads_of
from headrace.masks import MaskKey
from headrace.share import share_of
from headrace.stages.load import contract
from headrace.stages.transform import missing
from headrace.warehouses.client import WarehouseClient
from headrace.warehouses.load import Load


@away.tells
def is_behind(feed: Feed, *, lake: Lake, warehouses: Iterable[WarehouseClient], mask_key: MaskKey) -> bool:
    """True when an earlier run left work: rows not merged, or a warehouse not loaded, whatever stopped it then.

    Or when the clean table does not know yet what is withheld from whom: that is noted while the fields are there.
    """
    archive, clean = lake.find(layout.archive_table(feed.name)), lake.find(layout.clean_table(feed.name))
    if archive is None or archive.current_snapshot() is None:
        return False
    if missing(heads_of(archive), heads_of(clean) if clean else Heads()):
        return True
    if clean is None:
        return False
    if withheld.note(feed, noted := clean.properties.get(withheld.PROPERTY)) != noted:
        return True
    rejected = lake.find(layout.quarantine_table(feed.name))
    if rejected is not None and quarantine.released(rejected):
        return True
    snapshot = clean.current_snapshot()
    current, schema = snapshot.snapshot_id if snapshot else None, clean.schema().schema_id
    return any(
        warehouse.holds(feed.name) != Load(current, contract(share_of(feed, warehouse.name, clean), mask_key, schema))
        for warehouse in warehouses
    )
