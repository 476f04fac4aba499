"""Reading a declaration: every fault of it at once, and what can still be told of the rest."""

import copy
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from headrace.declaration import Declaration
from headrace.fault import Fault, nearest, show

Place = tuple[int | str, ...]
JSON_WORDS = {"True": "true", "False": "false", "None": "null"}
"""What Python calls otherwise than the file."""
SAYS_NOTHING = {"expect": ""}
"""Stands for a check that could not be read, so that the others keep their numbers."""


@dataclass(frozen=True)
class Reading:
    """What could be read of a declaration, and what could not."""

    declaration: Declaration
    faults: tuple[Fault, ...]


def read(file: str, declared: Any, *, attribute: str) -> Reading:
    """The declaration that stands under an attribute of a file; defaults in place of everything faulty."""
    try:
        return Reading(_validate(declared), ())
    except ValidationError as error:
        details = error.errors()
    faults = tuple(fault(file, each, attribute=attribute) for each in details)
    return Reading(_salvage(declared, [_place(each) for each in details]), faults)


def _validate(declared: Any) -> Declaration:
    # As JSON and strictly: neither "3" is a number nor 1 a truth, as in the schema that editors check against.
    return Declaration.model_validate_json(json.dumps(declared), strict=True)


def _salvage(declared: Any, broken: Iterable[Place]) -> Declaration:
    """The declaration without what is broken; without a part's needed attribute the whole part goes."""
    rest = copy.deepcopy(declared) if isinstance(declared, dict) else {}
    for place in broken:
        _remove(rest, place)
    keyless = "key" not in rest
    try:
        read = _validate({**rest, "key": ["key"]} if keyless else rest)
    except ValidationError as error:
        return _salvage(rest, [_place(each) for each in error.errors()])
    return read.model_copy(update={"key": []}) if keyless else read


def _place(detail: Mapping[str, Any]) -> Place:
    """What has to go so that an error does; where something is missing, that is the part that needs it."""
    place: Place = detail["loc"]
    return place[:-1] if detail["type"] == "missing" and len(place) > 1 else place


def _remove(declared: Any, place: Place) -> None:
    match place:
        case ("checks", int(number), *_):
            declared["checks"][number] = SAYS_NOTHING
        case (name, rest, *_) if isinstance(rest, str) and isinstance(declared.get(name), dict):
            _remove(declared[name], place[1:])
        case (name, *_):
            declared.pop(name, None)


def fault(file: str, detail: Mapping[str, Any], *, attribute: str = "", root: type[BaseModel] = Declaration) -> Fault:
    """What Pydantic found, in our words; `root` is the model that the file was read into."""
    place: Place = detail["loc"]
    path = ".".join(str(part) for part in (attribute, *place) if part != "")
    message, fix = _told(detail, root)
    missing = detail["type"] == "missing"
    return Fault(file, path, message, fix, value=None if missing else detail["input"])


def _told(detail: Mapping[str, Any], root: type[BaseModel]) -> tuple[str, str]:
    """What is wrong, and what to do."""
    kind, place, value = detail["type"], detail["loc"], detail["input"]
    if kind == "extra_forbidden":
        return "is not an attribute.", nearest(str(place[-1]), known(place[:-1], root))
    if kind == "missing" and isinstance(place[-1], int):
        return "is missing.", "It takes two values."
    if kind == "missing":
        return f"is missing: {_described(place, root)}", ""
    if kind == "literal_error":
        words = [JSON_WORDS.get(word, word.strip("'")) for word in re.split(", | or ", detail["ctx"]["expected"])]
        if len(words) == 1:
            return f"is {show(value)}; it has to be {words[0]}.", ""
        match = get_close_matches(str(value), words, n=1)
        fix = f'Did you mean "{match[0]}"?' if match else ""
        return f"is {show(value)}, which is not one of {', '.join(words)}.", fix
    if kind == "value_error":
        return f"is {show(value)}: {detail['ctx']['error']}.", ""
    if kind == "list_type" and isinstance(value, str):
        return f"is {show(value)}; it has to be a list.", f"Write [{show(value)}]."
    if kind in WANTED:
        return f"is {show(value)}; it has to be {WANTED[kind](detail.get('ctx', {}))}.", ""
    return f"is {show(value)}: {detail['msg']}.", ""


WANTED: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "string_type": lambda _: "a text",
    "list_type": lambda _: "a list",
    "tuple_type": lambda _: "a list of two values",
    "dict_type": lambda _: "an object",
    "model_type": lambda _: "an object",
    "bool_type": lambda _: "true or false",
    "int_type": lambda _: "a whole number",
    "greater_than_equal": lambda context: f"at least {context['ge']}",
    "too_short": lambda context: f"at least {context['min_length']} long",
    "too_long": lambda context: f"at most {context['max_length']} long",
}


def _described(place: Place, root: type[BaseModel]) -> str:
    model = _model(place[:-1], root)
    description = model.model_fields[str(place[-1])].description if model else None
    return f"{(description or '')[:1].lower()}{(description or '')[1:]}"


def known(place: Sequence[int | str], root: type[BaseModel] = Declaration) -> list[str]:
    """The attributes known at a place in the declaration."""
    model = _model(place, root)
    return [field.alias or name for name, field in model.model_fields.items()] if model else []


def _model(place: Sequence[int | str], root: type[BaseModel]) -> type[BaseModel] | None:
    """The part of the declaration at a place, through lists, objects by name and what may be left out."""
    found: Any = root
    for part in place:
        if isinstance(found, type) and issubclass(found, BaseModel) and part in found.model_fields:
            found = found.model_fields[str(part)].annotation
        kinds = (found, *getattr(found, "__args__", ()))
        found = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), found)
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None
