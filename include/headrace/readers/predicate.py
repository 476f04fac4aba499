"""Predicates: which rows a reader asks for, in the columns' own types, so that PyIceberg and Spark prune alike."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyiceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    LiteralPredicate,
    Not,
    NotEqualTo,
    NotIn,
    NotNull,
    NotStartsWith,
    Or,
    Reference,
    SetPredicate,
    UnaryPredicate,
    UnboundPredicate,
    parser,
)
from pyiceberg.expressions.visitors import BooleanExpressionVisitor, rewrite_not, visit
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType
from pyparsing import ParseBaseException

from headrace.errors import ReadError
from headrace.fault import nearest
from headrace.readers import literal

Where = str | BooleanExpression | Sequence[tuple[str, str, Any]]
"""A text as in SQL, an expression of PyIceberg's, or conditions that must all hold: `[("status", "=", "paid"), …]`."""

COMPARISONS: Mapping[str, type[LiteralPredicate]] = {
    "=": EqualTo,
    "==": EqualTo,
    "!=": NotEqualTo,
    "<>": NotEqualTo,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
}
SETS: Mapping[str, type[SetPredicate]] = {"in": In, "not in": NotIn}
NULLS: Mapping[str, type[UnaryPredicate]] = {"=": IsNull, "==": IsNull, "!=": NotNull, "<>": NotNull}


def parsed(where: Where | None) -> BooleanExpression:
    """What was asked for, whatever its form, without any `not` around several conditions."""
    if where is None:
        return AlwaysTrue()
    if isinstance(where, str):
        where = _parsed_text(where)
    if not isinstance(where, BooleanExpression):
        where = _all(_condition(each) for each in where)
    return rewrite_not(where)


def _all(conditions: Any) -> BooleanExpression:
    every: BooleanExpression = AlwaysTrue()
    for condition in conditions:
        every = And(every, condition)
    return every


def _parsed_text(where: str) -> BooleanExpression:
    try:
        return parser.parse(where)
    except ParseBaseException as error:
        # Not the text itself: a value in it may be personal.
        place = f"cannot be read from character {error.loc + 1} on"
    except ValueError as error:
        place = str(error)
    raise ReadError(f"where: {place}. Write it as: created_at >= '2026-01-31' and status in ('paid', 'shipped')")


def _condition(condition: Any) -> BooleanExpression:
    if not (isinstance(condition, tuple) and len(condition) == 3):
        raise ReadError('where: a list has conditions of three parts: ("status", "=", "paid").')
    column, operator, value = condition
    word = str(operator).lower()
    if value is None and word in NULLS:
        return NULLS[word](column)
    if word in SETS:
        return SETS[word](column, [_plain(each) for each in value])
    if word not in COMPARISONS:
        raise ReadError(f"where: {column}: {operator!r} is no comparison. {nearest(word, [*COMPARISONS, *SETS])}")
    return COMPARISONS[word](column, _plain(value))


def _plain(value: Any) -> Any:
    """A value that PyIceberg takes before the column's type is known: it has no literal for some of Python's."""
    return value.isoformat() if hasattr(value, "isoformat") else value


def columns_of(expression: BooleanExpression) -> set[str]:
    """The columns that a predicate looks at; of a field inside one, the column."""
    return visit(expression, _Columns())


def typed(expression: BooleanExpression, schema: Schema) -> BooleanExpression:
    """The predicate with literals of the columns' types; what is null is neither equal nor unequal, as in SQL."""
    return visit(expression, _Typed(schema))


class _Columns(BooleanExpressionVisitor[set[str]]):
    def visit_true(self) -> set[str]:
        return set()

    def visit_false(self) -> set[str]:
        return set()

    def visit_not(self, child_result: set[str]) -> set[str]:
        return child_result

    def visit_and(self, left_result: set[str], right_result: set[str]) -> set[str]:
        return left_result | right_result

    def visit_or(self, left_result: set[str], right_result: set[str]) -> set[str]:
        return left_result | right_result

    def visit_unbound_predicate(self, predicate: UnboundPredicate) -> set[str]:
        return {name_of(predicate).partition(".")[0]}

    def visit_bound_predicate(self, predicate: Any) -> set[str]:  # noqa: ARG002
        raise ReadError("where: an expression that is bound to a table was given; give it unbound.")


class _Typed(BooleanExpressionVisitor[BooleanExpression]):
    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def visit_true(self) -> BooleanExpression:
        return AlwaysTrue()

    def visit_false(self) -> BooleanExpression:
        return AlwaysFalse()

    def visit_not(self, child_result: BooleanExpression) -> BooleanExpression:
        return Not(child_result)

    def visit_and(self, left_result: BooleanExpression, right_result: BooleanExpression) -> BooleanExpression:
        return And(left_result, right_result)

    def visit_or(self, left_result: BooleanExpression, right_result: BooleanExpression) -> BooleanExpression:
        return Or(left_result, right_result)

    def visit_unbound_predicate(self, predicate: UnboundPredicate) -> BooleanExpression:
        name = name_of(predicate)
        made = _with_values(predicate, name, type_of(name, self.schema))
        return (
            And(NotNull(term=Reference(name)), made) if isinstance(made, NotEqualTo | NotIn | NotStartsWith) else made
        )

    def visit_bound_predicate(self, predicate: Any) -> BooleanExpression:  # noqa: ARG002
        raise AssertionError("refused when its columns were told")


def _with_values(predicate: UnboundPredicate, name: str, type_: IcebergType) -> BooleanExpression:
    match predicate:
        case SetPredicate():
            values = [literal.of_type(literal.value_of(each), type_, column=name) for each in predicate.literals]
            return type(predicate)(name, values)
        case LiteralPredicate():
            return type(predicate)(name, literal.of_type(literal.value_of(predicate.literal), type_, column=name))
    return predicate


def name_of(predicate: UnboundPredicate) -> str:
    assert isinstance(predicate.term, Reference), "the only term there is"
    return predicate.term.name


def type_of(name: str, schema: Schema) -> IcebergType:
    try:
        return schema.find_field(name).field_type
    except ValueError:
        raise ReadError(f"where: there is no {name}. {nearest(name, schema.column_names)}") from None
