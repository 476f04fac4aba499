"""The declaration: one model, from which the reference page and the schema for editors are made."""

from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from headrace.declaration import Declaration, Declared
from headrace.duration import lasting, parse


def models(model: type[BaseModel] = Declared) -> Iterator[type[BaseModel]]:
    for each in model.__subclasses__():
        yield each
        yield from models(each)


@pytest.mark.parametrize("model", list(models()), ids=lambda model: model.__name__)
def test_every_attribute_says_what_it_means(model: type[BaseModel]) -> None:
    assert model.__doc__
    assert all(field.description for field in model.model_fields.values())


def test_everything_but_the_key_has_a_default() -> None:
    assert [name for name, field in Declaration.model_fields.items() if field.is_required()] == ["key"]


def test_the_defaults_are_good_declarations_themselves() -> None:
    least = Declaration(key=["id"])
    assert Declaration.model_validate_json(least.model_dump_json(), strict=True) == least
    assert lasting(least.retention.archive) is None
    assert parse(least.runs.retry_delay) < parse(least.runs.time_limit)
