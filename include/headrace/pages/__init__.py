"""Pages that Airflow serves: made here as text from plain values, and mounted elsewhere.

They load nothing from anywhere: styles and pictures are in the page, and there is no script.
"""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def environment() -> Environment:
    """The templates; what is put into them is escaped."""
    made = Environment(loader=PackageLoader("headrace.pages"), autoescape=True, undefined=StrictUndefined)
    made.trim_blocks = made.lstrip_blocks = True
    return made
