"""Compare: a run's branch beside what readers see, by key and without values."""

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from workshop import ORDER, ORDER_FIELDS, Record, Workshop

from headrace.errors import BranchMissing, CheckError

Make = Callable[..., Workshop]


def order(key: str, revision: int, *, price: str = "9.99", day: int = 1, email: str | None = None) -> Record:
    row = {"id": key, "revision": revision, "status": "placed", "price": Decimal(price), "email": email}
    return Record({**row, "created_at": datetime(2026, 1, day, tzinfo=UTC)})


def compared(shop: Workshop, branch: str, listed: int = 5) -> Any:
    from headrace.stages.compare import compare

    return compare(shop.feed, branch, lake=shop.lake, listed=listed)


def test_a_branch_is_told_by_the_rows_it_would_add_remove_and_change(workshop: Make, tmp_path: Path) -> None:
    partition = {"field": "created_at", "by": "day"}
    checks = [{"column": "price", "between": [0, 100]}]
    shop = workshop({**ORDER, "partition": partition, "checks": checks})
    shop.merge(*(order(f"k{number}", 1, day=1) for number in range(4)), order("far", 1, day=2))
    gone = Record(None, key="k0")
    shop.publish(order("k1", 2, price="500.00", email="jane@shop.example"), order("k2", 2), order("new", 1), gone)
    shop.extract()
    shop.transform("scheduled__1")
    with pytest.raises(CheckError, match=r"price: 0 to 100 \(\w+_between: 1 of 3 rows; key k1\)") as raised:
        shop.check("scheduled__1")
    assert f"headrace compare {shop.feed.name} run_scheduled_1" in str(raised.value)
    found = compared(shop, "run_scheduled_1")
    assert found.counts == {"added": 1, "removed": 1, "changed": 2}
    assert found.columns == {"revision": 2, "price": 1, "email": 1}
    assert found.keys == {"added": ["new"], "removed": ["k0"], "changed": ["k1", "k2"]}
    assert found.files == 2, "the other day's file was read, though both have it"
    assert len(compared(shop, "run_scheduled_1", listed=1).keys["changed"]) == 1
    with pytest.raises(BranchMissing, match="There are: run_scheduled_1"):
        compared(shop, "run_2")
    (tmp_path / shop.feed.file).write_text(json.dumps(shop.feed.schema))
    shown = command(shop.feed.name, "scheduled__1", schemas=tmp_path)
    assert (shown.returncode, "jane" in shown.stdout, "k1, k2" in shown.stdout) == (0, False, True)
    told = json.loads(command(shop.feed.name, "run_scheduled_1", "--json", schemas=tmp_path).stdout)
    assert told["counts"] == {"added": 1, "removed": 1, "changed": 2}


def command(*arguments: str, schemas: Path) -> "subprocess.CompletedProcess[str]":
    import os

    program = Path(sys.executable).with_name("headrace")
    around = {**os.environ, "HEADRACE_SCHEMAS": str(schemas)}
    return subprocess.run([program, "compare", *arguments], check=False, capture_output=True, text=True, env=around)


def test_a_personal_key_is_not_told(workshop: Make) -> None:
    fields = [{**field, "pii": "customer"} if field["name"] == "id" else field for field in ORDER_FIELDS]
    declared = {**ORDER, "warehouses": {}}
    shop = workshop(declared, fields=fields)
    shop.publish(order("jane", 1))
    shop.extract()
    shop.transform("run")
    found = compared(shop, "run_run")
    assert (found.counts["added"], found.keys) == (1, {"added": [], "removed": [], "changed": []})
