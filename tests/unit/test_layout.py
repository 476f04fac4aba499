"""Layout: every derived name."""

from datetime import UTC, datetime

from headrace import layout, record


def test_an_archive_file_is_found_by_topic_partition_date_hour_and_offsets() -> None:
    hour = datetime(2026, 11, 16, 4, tzinfo=UTC)
    assert layout.archive_key("orders", 2, hour=hour, first=7, last=19, plan="ab12") == (
        "orders/2/2026-11-16/04/00000000000000000007-00000000000000000019-ab12.parquet"
    )


def test_a_record_with_an_implausible_timestamp_is_filed_as_unknown() -> None:
    assert record.filed_hour(-1) is None
    assert record.filed_hour(2**62) is None
    assert "/unknown/unknown/" in layout.archive_key("orders", 0, hour=None, first=0, last=0, plan="p")


def test_a_plausible_timestamp_is_filed_under_its_hour_in_utc() -> None:
    moment = datetime(2026, 11, 16, 4, 59, 59, tzinfo=UTC)
    hour = record.filed_hour(int(moment.timestamp() * 1000))
    assert hour is not None
    assert record.hour_start(hour) == datetime(2026, 11, 16, 4, tzinfo=UTC)


def test_a_run_id_becomes_a_branch_that_sql_takes() -> None:
    assert layout.branch("scheduled__2026-11-16T04:00:00+00:00") == "run_scheduled_2026_11_16t04_00_00_00_00"
