"""The page about reconciliations: what it shows, that it loads nothing, and that what it shows is only shown."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.pages import reconciliations
from headrace.reconciliation import Reconciliation

BASE = "http://airflow.example"


def compared(number: int, found: str = "finance", **changed: Any) -> Reconciliation:
    told: dict[str, Any] = {
        "at": datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(minutes=5 * number), "run": f"scheduled__{number}",
        "expected": {"archive": "topic", "clean": "archive"}.get(found, "clean"), "found": found, "scope": "whole",
        "snapshot": 1, "agrees": True, "expected_rows": 9, "found_rows": 9, "expected_unique": 9, "found_unique": 9,
        "sums": {"price": ("1.50", "1.50")}, "checksums": ("7", "7"), "seconds": 0.5,
    }  # fmt: skip
    return Reconciliation(**{**told, **changed})


def lost(number: int, keys: list[str], **changed: Any) -> Reconciliation:
    differences = {"partitions": ["2026-01-01"], "columns": {}, "keys": {"lost": {"count": len(keys), "keys": keys}}}
    apart: dict[str, Any] = {"agrees": False, "found_rows": 8, "found_unique": 8, "checksums": ("7", "6")}
    return compared(number, **{**apart, "differences": differences, **changed})


def page(*done: Reconciliation) -> str:
    return reconciliations.history("orders", done, base_url=BASE)


def test_each_pair_shows_its_last_comparisons_those_that_differ_first() -> None:
    shown = page(
        lost(4, ["k1"]), compared(3, "clean", scope="changes", checksums=("", ""), sums={}), compared(2, "archive")
    )
    assert re.findall(r"<h2>([^<]+–[^<]+)</h2>", shown) == ["clean–finance", "topic–archive", "archive–clean"]
    pairs = shown.split("<section")[1:]
    assert re.findall(r'class="cell (\w+)"', pairs[0]) == ["failed", "met", "failed"]
    assert "lost 1: <code>k1</code>" in pairs[0]
    assert "in partitions <code>2026-01-01</code>" in pairs[0]
    assert re.findall(r'class="cell (\w+)"', pairs[2].split("</section>")[0]) == ["met", "absent", "absent"]


def test_everything_and_what_a_run_changed_are_told_apart() -> None:
    (pair,) = reconciliations.pairs([compared(3, scope="changes", found_rows=2), compared(2), compared(1)])
    assert [(each.scope, each.run) for each in pair.last] == [("whole", "scheduled__2"), ("changes", "scheduled__3")]
    assert [bar.is_whole for bar in pair.bars] == [True, True, False], "the newest is on the right"
    assert pair.bars[2].height < pair.bars[0].height


def test_accounts_that_do_not_add_up_are_told() -> None:
    shown = page(compared(1, "clean", agrees=False, differences={"accounts": {"records merged": (9, 8)}}))
    assert "records merged: 8, and should be 9" in shown


def test_what_is_shown_is_only_shown_and_nothing_is_loaded() -> None:
    shown = page(lost(1, ["<script>alert(1)</script>", "{{ 7 * 7 }}"], run="<b>manual</b>"))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "{{ 7 * 7 }}" in shown
    assert "&lt;b&gt;manual&lt;/b&gt;" in shown
    assert not re.search(r"<script|<link|<img|@import|url\(|src=", shown)
    assert set(re.findall(r"https?://[^/\"]+", shown)) == {BASE}


def test_a_feed_that_was_never_compared_has_a_page_too() -> None:
    assert "Nothing of this feed was compared yet" in page()


def test_a_warehouse_that_is_behind_neither_agrees_nor_differs() -> None:
    late = compared(2, agrees=None, differences={"behind": "finance.orders is behind: nothing was loaded yet"})
    shown = page(late, lost(1, ["k1"], found="clean"))
    assert re.findall(r"<h2>([^<]+–[^<]+)</h2>", shown) == ["archive–clean", "clean–finance"]
    behind = shown.split("<section")[2].split("</section>")[0]
    assert re.findall(r'class="cell (\w+)"', behind) == ["absent"] * 3
    assert "– behind" in behind
    assert "nothing was loaded yet" in behind


def test_that_two_could_not_be_compared_stands_before_an_older_verdict() -> None:
    broken = compared(2, agrees=None, differences={"failed": "public.orders has no column price."}, checksums=("", ""))
    shown = page(broken, compared(1), compared(1, "clean"))
    assert re.findall(r"<h2>([^<]+–[^<]+)</h2>", shown) == ["clean–finance", "archive–clean"], "those at fault first"
    first = shown.split("<section")[1].split("</section>")[0]
    assert "✗ not compared" in first
    assert "public.orders has no column price." in first
    assert "✓ agree" not in first
    assert "✗ differ" not in first
