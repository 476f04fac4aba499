"""Pure parts of the web: paths that begin with a context, types that clients accept, pages and configs."""

import pytest

from headrace.registry.config import Config, ConfigUpdate, checked, inherited, updated
from headrace.registry.errors import Code, RegistryFault
from headrace.registry.media import TYPES, preferred
from headrace.registry.mode import Mode, parse_mode
from headrace.registry.page import Page
from headrace.registry.paths import moved
from headrace.registry.registered import Which


@pytest.mark.parametrize(
    ("path", "query", "meant", "asked"),
    [
        ("/subjects/s/versions", "a=1", "/subjects/s/versions", "a=1"),
        ("/subjects/", "", "/subjects", ""),
        ("/", "", "/", ""),
        ("", "", "/", ""),
        ("/subjects/a%2Fb", "", "/subjects/a%2Fb", ""),
        ("/contexts", "", "/contexts", ""),
        ("/contexts/", "", "/contexts", ""),
        ("/contexts/.c", "", "/contexts/:.c:", ""),
        ("/contexts/.c/subjects", "", "/subjects", "subjectPrefix=%3A.c%3A"),
        ("/contexts/.c/subjects", "subjectPrefix=x&limit=1", "/subjects", "limit=1&subjectPrefix=%3A.c%3Ax"),
        ("/contexts/.c/subjects", "subjectPrefix=:.d:", "/subjects", "subjectPrefix=%3A.d%3A"),
        ("/contexts/.c/subjects/s/versions/1", "x=y", "/subjects/:.c:s/versions/1", "x=y"),
        ("/contexts/.c/subjects/%3A.d%3As", "", "/subjects/%3A.d%3As", ""),
        ("/contexts/.c/subjects/a%2Fb", "", "/subjects/:.c:a%2Fb", ""),
        ("/contexts/.c/subjects/config/versions", "", "/subjects/:.c:config/versions", ""),
        ("/contexts/.c/compatibility/subjects/s/versions", "", "/compatibility/subjects/:.c:s/versions", ""),
        ("/contexts/.c/config", "", "/config/:.c:", ""),
        ("/contexts/.c/config/s", "", "/config/:.c:s", ""),
        ("/contexts/.c/mode", "", "/mode/:.c:", ""),
        ("/contexts/:.:/mode", "", "/mode", ""),
        ("/contexts/.c/schemas", "", "/schemas", "subjectPrefix=%3A.c%3A"),
        ("/contexts/.c/schemas/ids/1", "", "/schemas/ids/1", "subject=%3A.c%3A"),
        ("/contexts/.c/schemas/ids/1/versions", "subject=s", "/schemas/ids/1/versions", "subject=%3A.c%3As"),
        ("/contexts/.c/schemas/types", "", "/schemas/types", ""),
        ("/contexts/.c/contexts", "", "/contexts", ""),
        ("/contexts/.c/contexts/.d/subjects/s", "", "/subjects/:.d:s", ""),
        ("/contexts/.c" * 5000 + "/subjects/s", "", "/subjects/:.c:s", ""),
    ],
)
def test_a_path_with_a_context_is_one_without(path: str, query: str, meant: str, asked: str) -> None:
    assert moved(path, query) == (meant, asked)


@pytest.mark.parametrize(
    ("accept", "type_"),
    [
        ("*/*", TYPES[0]),
        ("", TYPES[0]),
        ("application/*", TYPES[0]),
        ("application/json", TYPES[2]),
        ("APPLICATION/JSON", TYPES[2]),
        ("application/json, */*;q=0.1", TYPES[2]),
        ("application/vnd.schemaregistry+json, application/json", TYPES[1]),
        ("text/html", None),
        ("application/json;q=0", None),
        ("application/json;q=nonsense", None),
    ],
)
def test_the_best_type_that_a_client_accepts(accept: str, type_: str | None) -> None:
    assert preferred(accept) == type_


@pytest.mark.parametrize(
    ("page", "most", "expected"),
    [
        (Page(), None, [0, 1, 2, 3]),
        (Page(1), None, [1, 2, 3]),
        (Page(1, 2), None, [1, 2]),
        (Page(0, 0), None, [0, 1, 2, 3]),
        (Page(-3, -3), None, [0, 1, 2, 3]),
        (Page(9, 1), None, []),
        (Page(0, 9), 2, [0, 1]),
        (Page(1, 1), 2, [1]),
        (Page(), 3, [0, 1, 2]),
    ],
)
def test_a_page_of_an_answer(page: Page, most: int | None, expected: list[int]) -> None:
    assert page.of([0, 1, 2, 3], most=most) == expected


@pytest.mark.parametrize(
    ("which", "live", "deleted"), [(Which.LIVE, True, False), (Which.ALL, True, True), (Which.DELETED, False, True)]
)
def test_which_versions_a_question_is_about(which: Which, live: bool, deleted: bool) -> None:
    assert (which.includes(False), which.includes(True)) == (live, deleted)


def test_an_update_changes_what_it_names() -> None:
    before = Config(compatibility_level="FULL", normalize=True)
    after = updated(before, ConfigUpdate.model_validate({"normalize": None, "compatibilityGroup": "g"}))
    assert after.as_json() == {"compatibilityLevel": "FULL", "compatibilityGroup": "g"}


def test_a_subject_inherits_all_but_what_is_its_own() -> None:
    general = Config(compatibility_level="FULL", normalize=True, alias="x", default_metadata={"properties": {}})
    assert inherited(Config(validate_rules=True), general).as_json() == {
        "compatibilityLevel": "BACKWARD",
        "normalize": True,
        "validateRules": True,
    }


def test_a_level_is_read_in_any_case_and_refused_if_none() -> None:
    assert checked(ConfigUpdate.model_validate({"compatibility": "full"})).compatibility_level == "FULL"
    assert checked(ConfigUpdate.model_validate({"compatibilityPolicy": "odd"})).compatibility_policy is None
    with pytest.raises(RegistryFault):
        checked(ConfigUpdate.model_validate({"compatibility": "fully"}))


def test_a_mode_is_read_in_any_case_and_forwarding_is_for_all() -> None:
    assert parse_mode("readonly", for_all=False) is Mode.READONLY
    assert parse_mode("FORWARD", for_all=True) is Mode.FORWARD
    for text in ("FORWARD", "odd"):
        with pytest.raises(RegistryFault):
            parse_mode(text, for_all=False)


def test_a_code_begins_with_its_status() -> None:
    assert {code.status for code in Code} == {404, 409, 422, 500}
