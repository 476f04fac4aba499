"""Outcomes: what is expected of a run's rows, how it came out, and both in plain words."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from headrace.declaration import Severity

Origin = Literal["schema", "checks"]


class Expectation(BaseModel):
    """One Great Expectations expectation by its snake_case name."""

    model_config = ConfigDict(frozen=True)

    name: str
    arguments: dict[str, Any]
    severity: Severity = "stop"
    origin: Origin = "checks"
    """Whether the schema implies it, or the feed's `checks` declare it."""
    personal: bool = False
    """Whether it is about a personal column, of which nothing may be shown but counts."""

    def __str__(self) -> str:
        return f"{self.subject}: {self.demand}"

    @property
    def subject(self) -> str:
        return subject(self.arguments)

    @property
    def demand(self) -> str:
        return demand(self.name, self.arguments)


class Outcome(BaseModel):
    """How one expectation came out; of rows only keys, and none where they may be personal."""

    model_config = ConfigDict(frozen=True)

    expectation: Expectation
    success: bool
    unexpected: int | None = None
    """How many rows did not meet it, of an expectation about single rows."""
    rows: int | None = None
    """Of how many."""
    observed: float | str | None = None
    """What was found, of an expectation about the rows as a whole."""
    keys: tuple[str, ...] = ()
    """Of the first rows that did not meet it."""
    error: str | None = None
    """Why it could not be tested: the kind of error, for its message may hold a value."""

    def __str__(self) -> str:
        return f"{self.expectation} ({self.expectation.name}{f': {self.found}' if self.found else ''})"

    @property
    def found(self) -> str:
        """What was found, in words; empty where there is nothing to say."""
        parts = []
        if self.error is not None:
            parts.append(f"could not be tested: {self.error}")
        if self.unexpected is not None:
            parts.append(f"{self.unexpected} of {self.rows} rows" if self.rows else f"{self.unexpected} rows")
        if self.observed is not None:
            parts.append(f"found {self.observed}")
        if self.keys:
            parts.append(f"{'key' if len(self.keys) == 1 else 'keys'} {', '.join(self.keys)}")
        return "; ".join(parts)


def subject(arguments: Mapping[str, Any]) -> str:
    """What an expectation is about."""
    pair = [arguments[name] for name in ("column_A", "column_B") if name in arguments]
    return str(arguments.get("column") or ", ".join(arguments.get("column_list") or pair) or "the rows")


def demand(name: str, arguments: Mapping[str, Any]) -> str:
    """What is expected, as people say it; what has no words of its own is told by its name and arguments."""
    said = _words(name, arguments)
    share = arguments.get("mostly")
    return said if share is None else f"{said}, in {100 * float(share):g} % of the rows"


def _words(name: str, arguments: Mapping[str, Any]) -> str:
    match name:
        case "expect_column_values_to_be_unique":
            return "every value once"
        case "expect_compound_columns_to_be_unique":
            return "every combination once"
        case "expect_column_values_to_not_be_null":
            return "not null"
        case "expect_column_values_to_be_in_set":
            return f"one of {listed(arguments['value_set'])}"
        case "expect_column_values_to_be_in_type_list":
            return f"of type {' or '.join(arguments['type_list'])}"
        case "expect_column_values_to_match_regex":
            return f"matches {arguments['regex']}"
        case "expect_column_values_to_be_between":
            return _span(arguments)
        case "expect_column_value_lengths_to_be_between":
            return f"{_span(arguments)} characters"
        case "expect_table_row_count_to_be_between":
            return f"{_span(arguments)} rows"
    others = {key: value for key, value in arguments.items() if not key.startswith("column") and key != "mostly"}
    told = ", ".join(f"{key} {listed(value) if isinstance(value, list) else value}" for key, value in others.items())
    return f"{name.removeprefix('expect_').replace('_', ' ')}{f' ({told})' if told else ''}"


def _span(arguments: Mapping[str, Any]) -> str:
    low, high = arguments.get("min_value"), arguments.get("max_value")
    least = "" if low is None else f"more than {low}" if arguments.get("strict_min") else f"at least {low}"
    most = "" if high is None else f"less than {high}" if arguments.get("strict_max") else f"at most {high}"
    if low is not None and high is not None and not (arguments.get("strict_min") or arguments.get("strict_max")):
        return f"{low} to {high}"
    return " and ".join(part for part in (least, most) if part) or "any number of"


def listed(values: Sequence[Any], most: int = 8) -> str:
    """Values, the first ones of many."""
    more = f" and {len(values) - most} more" if len(values) > most else ""
    return ", ".join(map(str, values[:most])) + more
