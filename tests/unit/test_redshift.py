"""Redshift's statements, made by pure functions, held against the documented grammar; and the rows they are about."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, time
from decimal import Decimal
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from psycopg import sql
from redshift_connector.error import InterfaceError, ProgrammingError
from redshift_grammar import form

from headrace import feed as feeds
from headrace.clean import HIDDEN_ROW
from headrace.constructs import CONSTRUCTS
from headrace.declaration import Sharing
from headrace.errors import FeedError, ServiceAway, ServiceRefused, SettingsError, WarehouseBusy, WarehouseError
from headrace.share import Share, share
from headrace.type_reference import feed as feed_of_all
from headrace.warehouses import (
    redshift_faults,
    redshift_folder,
    redshift_merge,
    redshift_platform,
    redshift_table,
    redshift_wire,
)
from headrace.warehouses.changes import Changes, Standing
from headrace.warehouses.redshift import RedshiftWarehouse, unload, unloaded
from headrace.warehouses.redshift_table import Shape
from headrace.warehouses.redshift_text import literal

FIELDS = [
    {"name": "id", "type": "string", "doc": 'It\'s \\ the "key", 100%.'},
    {"name": "shop", "type": "int"},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
    {"name": "address", "type": {"type": "record", "name": "Address", "fields": [{"name": "city", "type": "string"}]}},
    {"name": "raw", "type": "bytes"},
    {"name": "uid", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "noon", "type": {"type": "long", "logicalType": "time-micros"}},
    {"name": "created_at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "email", "type": "string", "pii": "email"},
]
TABLE = sql.Identifier("shop", "orders")
NONE = Changes({}, (), (), (), (), ())


def shared(*, sharing: dict[str, Any] | None = None, **declared: Any) -> Share:
    feed = {"key": ["id", "shop"], "warehouses": {"cluster": sharing or {}}, **declared}
    schema = {"type": "record", "name": "Order", "doc": "Orders.", "feed": feed, "fields": FIELDS}
    return share(feeds.parse("orders.avsc", json.dumps(schema)), "cluster")


def of_everything() -> Iterator[Share]:
    """Tables with a column of every construct."""
    yield shared()
    for schema_type in CONSTRUCTS:
        made = feed_of_all(schema_type, CONSTRUCTS[schema_type])
        declared = made.declaration.model_copy(update={"warehouses": {"cluster": Sharing()}})
        yield share(replace(made, declaration=declared), "cluster")


def statements(share: Share) -> Iterator[str]:
    """All that are made of a share."""
    keys = list(share.key)
    added = Changes({"old": "new"}, tuple(share.names), (), (), ("gone",), ())
    made: list[sql.Composable] = [
        redshift_table.definition(TABLE, share),
        *redshift_table.alterations(TABLE, added, share),
        *redshift_table.emptied(TABLE, added),
        redshift_table.touch(TABLE),
        redshift_platform.within(redshift_platform.PATIENCE_MS),
        *redshift_table.descriptions(TABLE, share),
        redshift_merge.copied(share.names, share, marked=True),
        redshift_merge.copied(keys, share, marked=False),
        redshift_merge.copy("s3://lake/staging/orders/cluster/1/rows.manifest", iam_role="default"),
        redshift_merge.copy("s3://lake/rows.manifest", iam_role="arn:aws:iam::123456789012:role/headrace"),
        redshift_merge.staging(share),
        redshift_merge.looked_for(share),
        redshift_merge.insert(TABLE, share.names, share),
        redshift_merge.insert(sql.Identifier(redshift_merge.STAGED), share.names, share, marked=True),
        redshift_merge.insert(sql.Identifier(redshift_merge.STAGED), keys, share),
        redshift_merge.counts(TABLE, share),
        redshift_merge.surplus(TABLE, share),
        redshift_merge.delete(TABLE, share),
        redshift_merge.remove(TABLE, share),
        redshift_merge.unhide(),
        redshift_merge.merge(TABLE, share),
        unload(unloaded(TABLE, share, looked_for=False), "s3://lake/unloaded/", iam_role="default"),
        unload(unloaded(TABLE, share, looked_for=True), "s3://lake/unloaded/", iam_role="default", kms_key="a-key"),
        redshift_platform.make_turn("public", share.feed),
        redshift_platform.take_turn("public", share.feed),
        *redshift_platform.grants("public", "cluster_reader", [share.feed]),
        *redshift_platform.revocations("public", "cluster_reader", [share.feed], last=True),
    ]
    yield from (each.as_string() for each in made)


def test_every_statement_is_one_that_redshift_documents() -> None:
    found = {form(each) for share in of_everything() for each in statements(share)}
    platform = [*redshift_platform.PLATFORM, *redshift_platform.FORGET]
    platform += [each for name, each in vars(redshift_platform).items() if name.isupper() and isinstance(each, str)]
    platform += [redshift_table.COLUMNS, redshift_table.VIEWS]
    found |= {form(each) for each in platform if " " in each}
    assert {"copy", "merge", "unload", "lock", "create view", "grant select", "comment", "delete"} <= found


@pytest.mark.parametrize(
    "statement",
    [
        "copy t from 's3://b/m' iam_role default format as parquet manifest region 'eu-west-1'",
        "merge into t as o using s on o.id = s.id when matched then update set a = s.a",
        "merge into t using s on t.i=s.i when matched then update set t.a = 1 when not matched then insert values (0)",
        "insert into t (a) values (1) on conflict do nothing",
        "alter table t add column a integer, add column b integer",
        "alter table t alter column a type bigint",
        "create table t (a text)",
        "truncate t",
        "select now()",
    ],
)
def test_what_redshift_does_not_take_is_noticed(statement: str) -> None:
    with pytest.raises(AssertionError):
        form(statement)


def test_sort_and_distribution_keys_come_from_the_feed() -> None:
    def laid_out(**declared: Any) -> str:
        return redshift_table.keys(redshift_table.shape(shared(**declared))).as_string()

    assert laid_out() == 'diststyle key distkey ("id") sortkey ("id", "shop")'
    partition = {"field": "created_at", "by": "day"}
    assert laid_out(partition=partition) == 'diststyle key distkey ("id") sortkey ("created_at", "id", "shop")'
    chosen = laid_out(sharing={"distribute": "shop"}, sort=["price"])
    assert chosen == 'diststyle key distkey ("shop") sortkey ("price")'
    # By bytes Redshift neither sorts nor distributes, by a masked moment nobody asks.
    assert laid_out(key=["raw"]) == "diststyle auto"
    assert laid_out(partition=partition, sharing={"mask": {"created_at": "year"}}).endswith('sortkey ("id", "shop")')


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("shopp", 'distribute names "shopp", which is not a field. Did you mean "shop"?'),
        ("address", 'distribute names "address", which is dropped or has no single value there.'),
    ],
)
def test_what_cannot_be_distributed_by_is_told(column: str, told: str) -> None:
    with pytest.raises(FeedError, match="distribute") as caught:
        shared(sharing={"distribute": column})
    assert told in str(caught.value)


def test_a_table_keeps_its_layout_under_other_names() -> None:
    recorded = redshift_table.shape(shared(sort=["price"], sharing={"mask": {"email": "hash"}}))
    assert Shape.from_json(recorded.to_json()) == recorded
    renamed = recorded.renamed({"id": "number", "price": "cost", "email": "mail"})
    assert renamed == Shape(("number", "shop"), {"mail": "hash"}, "number", ("cost",))


@pytest.mark.parametrize(
    ("asked", "spelled"),
    [
        ("timestamp with time zone", "timestamptz"),
        ("numeric(12,2)", "decimal(12, 2)"),
        ("character varying(65535)", "varchar(65535)"),
        ("character(36)", "char(36)"),
        ("binary varying(16777216)", "varbyte(16777216)"),
        ("super", "super"),
    ],
)
def test_types_are_spelled_as_ours(asked: str, spelled: str) -> None:
    assert redshift_table.spelled(asked) == spelled


def test_a_table_that_is_as_wanted_needs_no_change() -> None:
    wanted = shared()
    types = {name: redshift_table.column_type(type_) for name, type_ in wanted.types.items()}
    assert redshift_table.changes(Standing(types, wanted.key, {}), wanted) == NONE
    narrow = Standing({**types, "price": "decimal(10, 2)"}, wanted.key, {})
    assert redshift_table.changes(narrow, wanted).widened == ("price",)
    wide = Standing({**types, "price": "decimal(14, 2)"}, wanted.key, {})
    assert redshift_table.changes(wide, wanted).lossy


def test_texts_are_quoted_as_redshift_reads_them() -> None:
    assert literal("it's a \\ in C:\\").as_string() == r"'it''s a \\ in C:\\'"


ROWS: dict[str, list[Any]] = {
    "id": ["a", "b"],
    "shop": [1, -(2**31)],
    "price": [Decimal("9999999999.99"), None],
    "address": ['{"city": ""}', None],
    "raw": [b"\x00\xff", None],
    "uid": ["f81d4fae-7dec-11d0-a765-00a0c91e6bf6", None],
    "noon": [time(23, 59, 59, 999999), time(0)],
    "created_at": [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)],
}


def test_rows_come_back_from_parquet_as_they_went() -> None:
    wanted = shared()
    batch = pa.RecordBatch.from_pydict(ROWS, schema=wanted.schema)
    staged = redshift_wire.sent(batch, wanted)
    ((body, rows),) = redshift_folder.files(iter([staged]), schema=staged.schema)
    assert rows == 2
    file = pq.ParquetFile(BytesIO(body), coerce_int96_timestamp_unit="us")
    physical = {file.schema.column(place).name: file.schema.column(place).physical_type for place in range(len(ROWS))}
    assert physical["created_at"] == "INT96"
    assert physical["shop"] == "INT32"
    read = pa.Table.from_batches([redshift_wire.received(each, wanted) for each in file.iter_batches()])
    assert read == pa.Table.from_batches([batch])


def test_files_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redshift_folder, "FILE_BYTES", 4000)
    schema = pa.schema([("a", pa.int64())])
    batches = (pa.RecordBatch.from_pydict({"a": list(range(size))}, schema=schema) for size in (300, 300, 0, 300))
    made = list(redshift_folder.files(batches, schema=schema))
    assert [rows for _, rows in made] == [600, 300]


@pytest.mark.parametrize(("name", "value"), [("id", "ü" * 33_000), ("address", '"' + "a" * 70_000 + '"')])
def test_a_value_that_redshift_has_no_room_for_is_told_without_it(name: str, value: str) -> None:
    wanted = shared()
    batch = pa.RecordBatch.from_pydict({**{each: [None] for each in wanted.names}, name: [value]}, schema=wanted.schema)
    with pytest.raises(WarehouseError) as caught:
        redshift_wire.sent(batch, wanted)
    assert f"a value of {name} has" in str(caught.value)
    assert "65,535" in str(caught.value)
    assert value not in str(caught.value)


def test_hidden_rows_are_staged_with_their_mark() -> None:
    wanted = shared()
    schema = wanted.schema.append(pa.field(HIDDEN_ROW, pa.bool_()))
    batch = pa.RecordBatch.from_pydict({**ROWS, HIDDEN_ROW: [True, False]}, schema=schema)
    assert redshift_wire.sent(batch, wanted).column(HIDDEN_ROW).to_pylist() == [True, False]


WAREHOUSE = RedshiftWarehouse(
    "cluster", connect=lambda: None, s3=lambda: None, lake="s3://lake", connection="rs", place="rs.example.com:5439/dev"
)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (ProgrammingError({"C": "28000", "M": "password authentication failed"}), ServiceRefused, "Mend the Airflow"),
        (ProgrammingError({"C": "42501", "M": "permission denied for schema"}), ServiceRefused, "its user may do"),
        (InterfaceError("communication error", OSError()), ServiceAway, "does not answer: communication error"),
        (ProgrammingError({"C": "57P01", "M": "terminating connection"}), ServiceAway, "broke off"),
        (ProgrammingError({"C": "57014", "M": "canceling statement"}), WarehouseBusy, "svv_transactions"),
        (
            ProgrammingError({"C": "XX000", "M": "1023", "D": "Serializable isolation violation on table - 1"}),
            WarehouseBusy,
            "somebody else wrote",
        ),
        (ProgrammingError({"C": "42704", "M": 'role "x" does not exist'}), SettingsError, "Create it"),
        (ProgrammingError({"C": "22P02", "M": "Invalid digit, Value 's'"}), WarehouseError, "does not fit its column"),
        (ProgrammingError({"C": "XX000", "M": "S3ServiceException:Access Denied"}), WarehouseError, "Access Denied"),
    ],
)
def test_what_redshift_says_is_told_in_our_words(error: Exception, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind) as caught, redshift_faults.told(WAREHOUSE, "orders"):
        raise error
    assert told in str(caught.value)
    assert "Value 's'" not in str(caught.value)


def test_what_was_deleted_is_given_up_to_the_last_row() -> None:
    statement = redshift_table.vacuum(sql.Identifier("public", "orders"))
    assert form(statement.as_string()) == "vacuum"
