"""The table of rules: for each keyword that can refuse a value, how a reader is shown to refuse nothing new."""

from dataclasses import dataclass

from headrace.registry.json_compatibility import arrays, combined, objects, scalars
from headrace.registry.json_compatibility.goal import Prove
from headrace.registry.json_compatibility.value import KINDS, NUMBERS

STRINGS = frozenset({"string"})
OBJECTS = frozenset({"object"})
ARRAYS = frozenset({"array"})


@dataclass(frozen=True)
class Rule:
    """What is demanded of some keywords of the reader, where the writer may write values of these kinds."""

    keywords: tuple[str, ...]
    kinds: frozenset[str]
    prove: Prove
    widened: str
    """What may be changed, in words for the documentation."""
    reasons: tuple[str, ...]
    """The types of reasons that it gives itself."""


def _rule(keywords: str, kinds: frozenset[str], prove: Prove, widened: str, reasons: str) -> Rule:
    return Rule(tuple(keywords.split()), kinds, prove, widened, tuple(reasons.split()))


def _sizes(word: str, name: str, kinds: frozenset[str]) -> tuple[Rule, Rule]:
    (kind,) = kinds
    most, least = f"max{word}", f"min{word}"
    return (
        _rule(
            most, kinds, scalars.upper(most, kind, len), "raised or removed", f"MAX_{name}_ADDED MAX_{name}_DECREASED"
        ),
        _rule(
            least,
            kinds,
            scalars.lower(least, kind, len),
            "lowered or removed",
            f"MIN_{name}_ADDED MIN_{name}_INCREASED",
        ),
    )


RULES: tuple[Rule, ...] = (
    _rule(
        "type", KINDS, scalars.types, "types added, integer → number", "TYPE_CHANGED TYPE_NARROWED SUM_TYPE_NARROWED"
    ),
    _rule("$ref $dynamicRef", KINDS, combined.references, "as what it refers to", ""),
    _rule("unknownRef", KINDS, combined.unknown_reference, "nothing", "REFERENCE_CHANGED"),
    _rule("enum", KINDS, scalars.enum, "values added", "ENUM_ARRAY_NARROWED ENUM_ARRAY_CHANGED"),
    _rule("const", KINDS, scalars.const, "removed, or made an enum with it", "ENUM_ARRAY_CHANGED"),
    *_sizes("Length", "LENGTH", STRINGS),
    _rule("pattern", STRINGS, scalars.pattern, "removed", "PATTERN_ADDED PATTERN_CHANGED"),
    _rule("format", STRINGS, scalars.format_, "removed, uri → iri and the like", "FORMAT_ADDED FORMAT_CHANGED"),
    _rule(
        "contentEncoding", STRINGS, scalars.unchanged("contentEncoding", "CONTENT"), "removed",
        "CONTENT_ADDED CONTENT_CHANGED",
    ),
    _rule(
        "contentMediaType", STRINGS, scalars.unchanged("contentMediaType", "CONTENT"), "removed",
        "CONTENT_ADDED CONTENT_CHANGED",
    ),
    _rule("maximum", NUMBERS, scalars.maximum, "raised or removed", "MAXIMUM_ADDED MAXIMUM_DECREASED"),
    _rule("minimum", NUMBERS, scalars.minimum, "lowered or removed", "MINIMUM_ADDED MINIMUM_INCREASED"),
    _rule(
        "exclusiveMaximum", NUMBERS, scalars.exclusive_maximum, "raised, made inclusive or removed",
        "EXCLUSIVE_MAXIMUM_ADDED EXCLUSIVE_MAXIMUM_DECREASED",
    ),
    _rule(
        "exclusiveMinimum", NUMBERS, scalars.exclusive_minimum, "lowered, made inclusive or removed",
        "EXCLUSIVE_MINIMUM_ADDED EXCLUSIVE_MINIMUM_INCREASED",
    ),
    _rule(
        "multipleOf", NUMBERS, scalars.multiple_of, "divided or removed",
        "MULTIPLE_OF_ADDED MULTIPLE_OF_EXPANDED MULTIPLE_OF_CHANGED",
    ),
    _rule("required", OBJECTS, objects.required, "names removed, or added with a default", "REQUIRED_ATTRIBUTE_ADDED"),
    _rule(
        "properties", OBJECTS, objects.properties, "optional ones added to a closed model",
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL "
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL "
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ),
    _rule(
        "patternProperties", OBJECTS, objects.pattern_properties, "removed from an open model, added to a closed one",
        "PATTERN_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL "
        "PATTERN_PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ),
    _rule("dependentRequired", OBJECTS, objects.dependent_required, "names removed",
          "DEPENDENCY_ARRAY_ADDED DEPENDENCY_ARRAY_EXTENDED DEPENDENCY_ARRAY_CHANGED"),
    _rule("dependentSchemas", OBJECTS, objects.dependent_schemas, "widened or removed", "DEPENDENCY_SCHEMA_ADDED"),
    _rule(
        "additionalProperties unevaluatedProperties patternProperties", OBJECTS, objects.other_properties,
        "widened or removed; properties removed that it covers",
        "ADDITIONAL_PROPERTIES_REMOVED ADDITIONAL_PROPERTIES_NARROWED UNEVALUATED_PROPERTIES_REMOVED "
        "UNEVALUATED_PROPERTIES_NARROWED PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL "
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL "
        "PATTERN_PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL "
        "PATTERN_PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ),
    _rule("propertyNames", OBJECTS, objects.property_names, "widened or removed", "PROPERTY_NAMES_ADDED"),
    *_sizes("Properties", "PROPERTIES", OBJECTS),
    _rule(
        "prefixItems", ARRAYS, arrays.prefix_items, "items added to a closed model",
        "ITEM_ADDED_TO_OPEN_CONTENT_MODEL ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ),
    _rule(
        "items unevaluatedItems", ARRAYS, arrays.other_items, "widened or removed; items removed that it covers",
        "SCHEMA_ADDED ADDITIONAL_ITEMS_REMOVED ADDITIONAL_ITEMS_NARROWED UNEVALUATED_ITEMS_REMOVED "
        "UNEVALUATED_ITEMS_NARROWED ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL "
        "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ),
    *_sizes("Items", "ITEMS", ARRAYS),
    _rule("uniqueItems", ARRAYS, scalars.unique_items, "removed", "UNIQUE_ITEMS_ADDED"),
    _rule(
        "contains", ARRAYS, arrays.contains, "widened, minContains lowered, maxContains raised, removed",
        "CONTAINS_ADDED CONTAINS_CHANGED MIN_CONTAINS_INCREASED MAX_CONTAINS_ADDED MAX_CONTAINS_DECREASED",
    ),
    _rule(
        "allOf", KINDS, combined.all_of, "schemas widened or removed",
        "PRODUCT_TYPE_EXTENDED COMBINED_TYPE_CHANGED COMBINED_TYPE_SUBSCHEMAS_CHANGED TYPE_CHANGED",
    ),
    _rule(
        "anyOf", KINDS, combined.any_of, "schemas widened or added",
        "SUM_TYPE_NARROWED COMBINED_TYPE_CHANGED COMBINED_TYPE_SUBSCHEMAS_CHANGED TYPE_CHANGED",
    ),
    _rule(
        "oneOf", KINDS, combined.one_of, "schemas widened or added that exclude each other",
        "SUM_TYPE_NARROWED COMBINED_TYPE_CHANGED COMBINED_TYPE_SUBSCHEMAS_CHANGED TYPE_CHANGED ONE_OF_OVERLAPS",
    ),
    _rule("not", KINDS, combined.not_, "narrowed or removed", "NOT_TYPE_EXTENDED"),
    _rule(
        "if", KINDS, combined.condition, "then and else widened, condition kept; removed",
        "CONDITION_ADDED CONDITION_CHANGED",
    ),
)  # fmt: skip
"""In the order in which reasons are told."""

PARTS = frozenset({"then", "else", "minContains", "maxContains"})
"""Keywords that the rule of another looks at."""
