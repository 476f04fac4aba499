"""Texts with a meaning: what Iceberg or Spark has no type for is a text there, and more than that elsewhere."""

from pyiceberg.types import StringType


class JsonText(StringType):
    """JSON in canonical form: what has no column type of its own. In a warehouse it is JSON again."""


class TimeText(StringType):
    """A time of day as HH:MM:SS.ffffff: Spark cannot read Iceberg's time. In a warehouse it is a time again."""
