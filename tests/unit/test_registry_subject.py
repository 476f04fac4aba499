"""Subjects and the contexts that qualify them; versions as requests name them."""

import pytest

from headrace.registry.errors import RegistryFault
from headrace.registry.subject import (
    Qualified,
    begins_with,
    can_be_configured,
    can_be_registered,
    context_prefix,
    normalize,
    qualified,
    within,
)
from headrace.registry.version import LATEST, version_of


@pytest.mark.parametrize(
    ("text", "context", "name"),
    [
        ("orders-value", ".", "orders-value"),
        (":.staging:orders", ".staging", "orders"),
        (":.staging:", ".staging", ""),
        (":.staging", ".staging", ""),
        (":.:orders", ".", "orders"),
        (":.:", ".", ""),
        ("", ".", ""),
        (":.a:b:c", ".a", "b:c"),
        (":orders", ".", ":orders"),
        (":*:orders", "*", "orders"),
    ],
)
def test_a_subject_is_a_context_and_a_name(text: str, context: str, name: str) -> None:
    assert qualified(text) == Qualified(context, name)


@pytest.mark.parametrize(
    ("text", "one"), [(":.:orders", "orders"), (":.c", ":.c:"), (":.c:x", ":.c:x"), ("x", "x"), (":.:", "")]
)
def test_each_subject_has_one_spelling(text: str, one: str) -> None:
    assert normalize(text) == one


@pytest.mark.parametrize(
    ("parent", "subject", "meant"),
    [("a", "b", "b"), (":.c:a", "b", ":.c:b"), (":.c:a", ":.d:b", ":.d:b"), ("a", ":.d:b", ":.d:b")],
)
def test_a_reference_is_meant_in_its_parents_context_unless_it_names_one(parent: str, subject: str, meant: str) -> None:
    assert within(parent, subject) == meant


@pytest.mark.parametrize(
    ("written", "prefix"), [("c", ":.c:"), (".c", ":.c:"), (":.c:", ":.c:"), (".", ""), (":.:", "")]
)
def test_a_context_can_be_written_in_three_ways(written: str, prefix: str) -> None:
    assert context_prefix(written) == prefix


def test_a_context_has_no_colon() -> None:
    with pytest.raises(ValueError, match="Context name 'a:b' cannot contain a colon"):
        context_prefix("a:b")


@pytest.mark.parametrize(
    ("text", "registered", "configured"),
    [
        ("orders", True, True),
        ("ünïcode / space", True, True),
        ("a\nb", False, False),
        ("a\x7fb", False, False),
        ("__GLOBAL", False, False),
        (":.c:__EMPTY", False, False),
        (":.__GLOBAL:", False, True),
    ],
)
def test_some_names_are_refused(text: str, registered: bool, configured: bool) -> None:
    assert (can_be_registered(text), can_be_configured(text)) == (registered, configured)


@pytest.mark.parametrize(
    ("subject", "prefix", "expected"),
    [
        ("orders", "", True),
        ("orders", "ord", True),
        ("orders", "x", False),
        (":.c:orders", "", False),
        (":.c:orders", ":.c:ord", True),
        (":.c:orders", ":.c:", True),
        (":.c:orders", ":.d:", False),
        (":.cd:orders", ":.c", True),
        (":.c:orders", ":*:ord", True),
        ("orders", ":*:", True),
    ],
)
def test_a_subject_begins_with_a_prefix_in_the_context_that_it_names(subject: str, prefix: str, expected: bool) -> None:
    assert begins_with(subject, prefix) is expected


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1), ("latest", LATEST), (" Latest ", LATEST), ("-1", LATEST), ("2147483647", 2**31 - 1)]
)
def test_a_version_is_a_number_or_the_latest(text: str, number: int) -> None:
    assert version_of(text) == number


@pytest.mark.parametrize("text", ["0", "-2", "x", "", "1.0", "2147483648", "1_0", "\u0661", "9" * 5000])
def test_other_versions_are_none(text: str) -> None:
    with pytest.raises(RegistryFault) as caught:
        version_of(text)
    assert caught.value.code == 42202
    assert f"'{text}'" in caught.value.message
