"""Readers: clean rows for people and their programs, as Arrow, pandas, DuckDB or Spark, at one published snapshot."""

from headrace.readers.clean_rows import CleanRows, WarehouseRows
from headrace.readers.opening import open_rows

__all__ = ["CleanRows", "WarehouseRows", "open_rows"]
