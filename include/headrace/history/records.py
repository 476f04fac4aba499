"""Rows that are at hand as Arrow, as records of a feed: all of them fit, or it is an error."""

from collections import Counter

import pyarrow as pa

from headrace.errors import JobError
from headrace.feed import Feed
from headrace.history.column_reading import column_reader
from headrace.history.encoding import Encoder
from headrace.history.kafka_key import key_writer
from headrace.history.mapping import map_columns, targets
from headrace.history.source import Rows, SourceColumn


def encoded(feed: Feed, rows: pa.RecordBatch, *, schema_id: int, largest: int) -> pa.RecordBatch:
    """The rows' keys and values in Confluent's frame."""
    columns = [SourceColumn(field.name, field.type) for field in rows.schema]
    encoder = Encoder(feed, map_columns(feed, columns, renames={}), schema_id, largest)
    given = dict(zip(rows.schema.names, rows.columns, strict=True))
    done = encoder.encode(Rows("", range(1, rows.num_rows + 1), given), position=0)
    if done.rejected:
        reasons = Counter(f"{each.field}: {each.why}" for each in done.rejected)
        told = "; ".join(f"{reason} ({count} rows)" for reason, count in reasons.most_common(5))
        raise JobError(f"feed {feed.name}: its job gives rows that are no records of it: {told}. Mend the job.")
    return done.records


def keys(feed: Feed, rows: pa.RecordBatch) -> list[bytes]:
    """The Kafka keys of rows of which at least the key is there."""
    by_name = {target.name: target for target in targets(feed)}
    wanted = [by_name[name] for name in feed.declaration.key]
    read = {each.name: column_reader(each, rows.schema.field(each.name).type)(rows[each.name])[0] for each in wanted}
    write = key_writer(wanted)
    return [write({name: read[name][place] for name in read}) for place in range(rows.num_rows)]
