"""A column of a source read into a field's values, all at once where that is possible, else each by itself."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from headrace.history import scalars
from headrace.history.scalars import Unfit
from headrace.history.shortcut import is_text
from headrace.history.source import Values
from headrace.history.target import Target

ReadColumn = Callable[[Values], tuple[list[Any], dict[int, str]]]
"""Gives values, None for those that do not fit, and by their index why not."""


def column_reader(target: Target, type_: pa.DataType | None) -> ReadColumn:
    """Reads a column's values into its field's; without a type, the column is a list of Python's own values."""
    shortcut = target.shortcut(type_) if type_ is not None else None
    read = _through_json(target, type_)

    def whole(column: Values) -> tuple[list[Any], dict[int, str]]:
        if shortcut is not None:
            try:
                return list(shortcut(column)), {}
            except (ValueError, OverflowError):
                pass  # one of them does not fit: which, each tells by itself
        values, unfit = [], {}
        for index, value in enumerate(listed(column)):
            try:
                values.append(None if value is None else read(value))
            except Unfit as error:
                values.append(None)
                unfit[index] = str(error)
        return values, unfit

    return whole


def _through_json(target: Target, type_: pa.DataType | None) -> scalars.Read:
    """A column of texts holds JSON where its field is JSON; a text that is its own value tells no type."""
    if target.is_json and type_ is not None and is_text(type_):
        return lambda value: target.read(scalars.nested(value))
    return target.read


def listed(column: Values) -> list[Any]:
    if isinstance(column, list):
        return column
    if pa.types.is_temporal(column.type) and getattr(column.type, "unit", "") == "ns":
        column = column.cast(pa.string())  # Python's own times end at microseconds
    try:
        found: list[Any] = column.to_pylist()
        return found
    except (OverflowError, ValueError):
        # Dates and moments that Python has not, such as Postgres' infinity: each by itself, as nothing that fits.
        return [_single(each) for each in column]


def _single(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return ...
