"""The forms of the platform's own DAGs: fields as Airflow's UI shows them."""

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Param

from headrace import feed as feeds
from headrace.settings import Settings


def feed(description: str) -> Param:
    """A feed's name; those with a file are proposed, any other may be typed in."""
    folder = Settings().schemas
    known = [path.stem for path in feeds.files(folder)] if folder.is_dir() else []
    return Param("", type="string", minLength=1, examples=known, title="Feed", description=description)


def optional(title: str, description: str, **schema: Any) -> Param:
    return Param(None, type=["null", "string"], title=title, description=description, **schema)


def listed(title: str, description: str, *, first: Sequence[str] = (), **items: str) -> Param:
    """Texts, one a line, which is how the form shows a list of them; it sends null for none."""
    texts = {"type": "string", **items}
    return Param([*first], type=["null", "array"], items=texts, title=title, description=description)


def switch(title: str, description: str, *, on: bool = False) -> Param:
    return Param(on, type="boolean", title=title, description=description)


def number(title: str, description: str) -> Param:
    return Param(None, type=["null", "number"], exclusiveMinimum=0, title=title, description=description)
