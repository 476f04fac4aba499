"""A predicate as a condition on a Spark DataFrame, made of the frame's own columns: nothing here imports pyspark."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from pyiceberg.expressions import (
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    LiteralPredicate,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    SetPredicate,
    StartsWith,
    UnboundPredicate,
)
from pyiceberg.expressions.visitors import BooleanExpressionVisitor, visit
from pyiceberg.schema import Schema
from pyiceberg.types import TimestampType

from headrace.readers import literal
from headrace.readers.predicate import name_of, type_of

UNARY: Mapping[type, Callable[[Any], Any]] = {
    IsNull: lambda column: column.isNull(),
    NotNull: lambda column: column.isNotNull(),
    IsNaN: lambda column: column.isNaN(),
    NotNaN: lambda column: ~column.isNaN(),
}
COMPARISONS: Mapping[type, Callable[[Any, Any], Any]] = {
    EqualTo: lambda column, value: column == value,
    NotEqualTo: lambda column, value: column != value,
    LessThan: lambda column, value: column < value,
    LessThanOrEqual: lambda column, value: column <= value,
    GreaterThan: lambda column, value: column > value,
    GreaterThanOrEqual: lambda column, value: column >= value,
    StartsWith: lambda column, value: column.startswith(value),
    NotStartsWith: lambda column, value: ~column.startswith(value),
    In: lambda column, values: column.isin(values),
    NotIn: lambda column, values: ~column.isin(values),
}


def _local(value: datetime) -> str:
    """As Spark writes a time without a zone, which it reads as such: of a datetime it makes a moment, by the zone of
    this machine. To the letter, for where it is not strict it compares a list of texts with the column's own text."""
    text = value.isoformat(sep=" ")
    return text.rstrip("0") if value.microsecond else text


def condition(expression: BooleanExpression, frame: Any, *, schema: Schema) -> Any:
    """The frame's rows for which a predicate with typed literals holds; None for all of them."""
    return visit(expression, _Condition(frame, schema))


class _Condition(BooleanExpressionVisitor[Any]):
    """Conditions, with None for one that always holds."""

    def __init__(self, frame: Any, schema: Schema) -> None:
        self.frame = frame
        self.schema = schema

    def visit_true(self) -> Any:
        return None

    def visit_false(self) -> Any:
        column = self.frame[self.schema.column_names[0]]
        return column.isNull() & column.isNotNull()

    def visit_not(self, child_result: Any) -> Any:
        return self.visit_false() if child_result is None else ~child_result

    def visit_and(self, left_result: Any, right_result: Any) -> Any:
        if left_result is None or right_result is None:
            return right_result if left_result is None else left_result
        return left_result & right_result

    def visit_or(self, left_result: Any, right_result: Any) -> Any:
        return None if left_result is None or right_result is None else left_result | right_result

    def visit_unbound_predicate(self, predicate: UnboundPredicate) -> Any:
        name = name_of(predicate)
        column, kind = self.frame[name], type(predicate)
        match predicate:
            case SetPredicate():
                return COMPARISONS[kind](column, [self._value(each, name) for each in predicate.literals])
            case LiteralPredicate():
                return COMPARISONS[kind](column, self._value(predicate.literal, name))
        return UNARY[kind](column)

    def visit_bound_predicate(self, predicate: Any) -> Any:  # noqa: ARG002
        raise AssertionError("refused when its columns were told")

    def _value(self, found: Any, name: str) -> Any:
        type_ = type_of(name, self.schema)
        value = literal.of_type(literal.value_of(found), type_, column=name)
        return _local(value) if isinstance(type_, TimestampType) else value
