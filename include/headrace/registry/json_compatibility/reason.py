"""Reasons why a reader refuses what a writer may write: Confluent's names and words for them, and some of our own."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Path = tuple[str, ...]
Reasons = tuple["Reason", ...]


@dataclass(frozen=True)
class Reason:
    """One thing that is narrower in the reader, and where."""

    type: str
    path: Path = ()

    def under(self, path: Path) -> "Reason":
        """The same reason, seen from further out."""
        return Reason(self.type, (*path, *self.path)) if path else self

    @property
    def pointer(self) -> str:
        """Where it is, as Confluent writes it: unescaped."""
        return "#/" + "/".join(self.path)

    @property
    def message(self) -> str:
        """Confluent's text, down to its unpaired quote; `%s` stands for the reader, then for the writer."""
        # A name with the placeholder in it must not be taken for one.
        where = self.pointer.replace("%s", "%25s")
        return f'{{errorType:"{self.type}", description:"{TEXTS[self.type].replace("PATH", where)}\'}}'


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _all(names: str, text: str) -> Mapping[str, str]:
    return dict.fromkeys(names.split(), text)


TEXTS: Mapping[str, str] = {
    **_all(
        "MAXIMUM_ADDED MINIMUM_ADDED EXCLUSIVE_MAXIMUM_ADDED EXCLUSIVE_MINIMUM_ADDED MULTIPLE_OF_ADDED "
        "MAX_LENGTH_ADDED MIN_LENGTH_ADDED PATTERN_ADDED REQUIRED_ATTRIBUTE_ADDED MAX_PROPERTIES_ADDED "
        "MIN_PROPERTIES_ADDED DEPENDENCY_ARRAY_ADDED DEPENDENCY_SCHEMA_ADDED MAX_ITEMS_ADDED MIN_ITEMS_ADDED "
        "MAX_CONTAINS_ADDED UNIQUE_ITEMS_ADDED ADDITIONAL_ITEMS_REMOVED "
        "ADDITIONAL_PROPERTIES_REMOVED UNEVALUATED_PROPERTIES_REMOVED UNEVALUATED_ITEMS_REMOVED "
        "SCHEMA_ADDED FORMAT_ADDED CONTENT_ADDED PROPERTY_NAMES_ADDED CONTAINS_ADDED CONDITION_ADDED",
        "The keyword at path 'PATH' in the %s schema is not present in the %s schema",
    ),
    **_all(
        "MIN_LENGTH_INCREASED MINIMUM_INCREASED EXCLUSIVE_MINIMUM_INCREASED MIN_PROPERTIES_INCREASED "
        "MULTIPLE_OF_EXPANDED MIN_ITEMS_INCREASED MIN_CONTAINS_INCREASED",
        "The value at path 'PATH' in the %s schema is more than its value in the %s schema",
    ),
    **_all(
        "MAX_LENGTH_DECREASED MAXIMUM_DECREASED MAX_ITEMS_DECREASED MAX_CONTAINS_DECREASED "
        "EXCLUSIVE_MAXIMUM_DECREASED MAX_PROPERTIES_DECREASED",
        "The value at path 'PATH' in the %s schema is less than its value in the %s schema",
    ),
    **_all(
        "PATTERN_CHANGED MULTIPLE_OF_CHANGED DEPENDENCY_ARRAY_CHANGED FORMAT_CHANGED CONTENT_CHANGED "
        "CONTAINS_CHANGED CONDITION_CHANGED REFERENCE_CHANGED",
        "The value at path 'PATH' is different between the %s and %s schema",
    ),
    **_all(
        "ADDITIONAL_ITEMS_NARROWED ENUM_ARRAY_NARROWED SUM_TYPE_NARROWED ADDITIONAL_PROPERTIES_NARROWED "
        "UNEVALUATED_PROPERTIES_NARROWED UNEVALUATED_ITEMS_NARROWED",
        "An array or combined type at path 'PATH' has fewer elements in the %s schema than the %s schema",
    ),
    **_all(
        "DEPENDENCY_ARRAY_EXTENDED PRODUCT_TYPE_EXTENDED NOT_TYPE_EXTENDED",
        "An array or combined type at path 'PATH' has more elements in the %s schema than the %s schema",
    ),
    **_all(
        "TYPE_CHANGED TYPE_NARROWED COMBINED_TYPE_CHANGED COMBINED_TYPE_SUBSCHEMAS_CHANGED ENUM_ARRAY_CHANGED",
        "A type at path 'PATH' is different between the %s schema and the %s schema",
    ),
    **_all(
        "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL "
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL ITEM_ADDED_TO_OPEN_CONTENT_MODEL "
        "PATTERN_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "The %s schema has an open content model and has a property or item at path 'PATH' which is missing in the "
        "%s schema",
    ),
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": "The %s schema has an unopen content model and has a required "
    "property at path 'PATH' which is missing in the %s schema",
    **_all(
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL "
        "PATTERN_PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "The %s has a closed content model and is missing a property or item present at path 'PATH' in the %s schema",
    ),
    **_all(
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL "
        "PATTERN_PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL "
        "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "A property or item is missing in the %s schema but present at path 'PATH' in the %s schema and is not covered "
        "by its partially open content model",
    ),
    **_all(
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL "
        "PATTERN_PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL "
        "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "The %s schema has a property or item at path 'PATH' which is missing in the %s schema and is not covered by "
        "its partially open content model",
    ),
    "ONE_OF_OVERLAPS": "The oneOf at path 'PATH' in the %s schema has schemas that a value of the %s schema may "
    "fulfil at once, so that it would be refused; tell them apart by a const or use anyOf",
    "TOO_COMPLEX": "The %s schema at path 'PATH' could not be compared with the %s schema within a bearable time; give "
    "its alternatives a const to tell them apart, or split it",
}
"""What is said of each type; PATH stands for where it is."""

OURS = _words(
    "FORMAT_ADDED FORMAT_CHANGED CONTENT_ADDED CONTENT_CHANGED PROPERTY_NAMES_ADDED CONTAINS_ADDED CONTAINS_CHANGED "
    "CONDITION_ADDED CONDITION_CHANGED REFERENCE_CHANGED ONE_OF_OVERLAPS TOO_COMPLEX "
    "PATTERN_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL PATTERN_PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL "
    "PATTERN_PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL "
    "PATTERN_PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
)
"""The types that Confluent has no name for, since it does not look there."""

LENIENT = _words(
    "ADDITIONAL_PROPERTIES_NARROWED ADDITIONAL_PROPERTIES_REMOVED UNEVALUATED_PROPERTIES_NARROWED "
    "UNEVALUATED_PROPERTIES_REMOVED REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL "
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL "
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL "
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
)
"""The types that Confluent's policy LENIENT lets pass."""


def once(reasons: Iterable[Reason]) -> Reasons:
    """Each reason once, in the order in which they were found."""
    return tuple(dict.fromkeys(reasons))
