"""`/schemas`: by id, by guid, and all of them."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from headrace.registry.answers import Sparse, ToldSchema, ToldUse, ToldVersion
from headrace.registry.errors import schema_not_found
from headrace.registry.languages import LANGUAGES
from headrace.registry.media import Answer
from headrace.registry.page import Page
from headrace.registry.registered import Registered
from headrace.registry.registry import Registry
from headrace.registry.requests import Flag, Name, page
from headrace.registry.routes.subjects import which
from headrace.registry.routes.versions import QUALIFIED


def router(registry: Registry) -> APIRouter:
    routes = APIRouter(route_class=Sparse, tags=["Schemas"], prefix="/schemas")

    @routes.get("", summary="List schemas")
    def schemas(
        *,
        paging: Annotated[Page, Depends(page)],
        subject_prefix: Annotated[str, Query(alias="subjectPrefix")] = "",
        aliases: Flag = False,
        deleted: Flag = False,
        latest_only: Annotated[Flag, Query(alias="latestOnly")] = False,
        rule_type: Annotated[str, Query(alias="ruleType")] = "",
    ) -> list[ToldSchema]:
        names = registry.aliases(subject_prefix) if aliases else {}
        found = registry.schemas(
            subject_prefix,
            also=names,
            which=which(deleted, only=False),
            latest_only=latest_only,
            rule_type=rule_type,
            page=paging,
        )
        return [ToldSchema.of(each).model_copy(update={"aliases": names.get(each.subject) or None}) for each in found]

    @routes.get("/types", summary="List the types that are understood")
    def types() -> list[str]:
        return list(LANGUAGES)

    @routes.get("/ids/{id_}", summary="Get the schema of an id")
    def by_id(
        id_: int,
        subject: str = "",
        format_: Annotated[str, Query(alias="format")] = "",
        reference_format: Annotated[str, Query(alias="referenceFormat")] = "",
        fetch_max_id: Annotated[Flag, Query(alias="fetchMaxId")] = False,
    ) -> ToldSchema:
        found = registry.with_id(id_, subject=subject)
        told = ToldSchema.of(found, registry.text(found, format_=format_)).without("id")
        if reference_format == QUALIFIED:
            told = told.with_qualified_references()
        return told.model_copy(update={"max_id": registry.last_id(found.subject)}) if fetch_max_id else told

    @routes.get("/ids/{id_}/schema", summary="Get the schema of an id alone", response_class=Answer)
    def text_by_id(id_: int, subject: str = "", format_: Annotated[str, Query(alias="format")] = "") -> Response:
        found = registry.with_id(id_, subject=subject)
        return Response(registry.text(found, format_=format_), media_type=Answer.media_type)

    @routes.get("/ids/{id_}/subjects", summary="List the subjects that have an id")
    def subjects(
        id_: int, paging: Annotated[Page, Depends(page)], subject: str = "", deleted: Flag = False
    ) -> list[str]:
        return [each.subject for each in paging.of(_uses(registry, id_, subject=subject, deleted=deleted))]

    @routes.get("/ids/{id_}/versions", summary="List the versions that have an id")
    def versions(
        id_: int, paging: Annotated[Page, Depends(page)], subject: str = "", deleted: Flag = False
    ) -> list[ToldVersion]:
        found = paging.of(_uses(registry, id_, subject=subject, deleted=deleted))
        return [ToldVersion(subject=each.subject, version=each.version) for each in found]

    @routes.get("/guids/{guid}", summary="Get the schema of a guid")
    def by_guid(guid: Name, format_: Annotated[str, Query(alias="format")] = "") -> ToldSchema:
        found = registry.with_guid(_guid(guid))
        return ToldSchema.of(found, registry.text(found, format_=format_)).without("subject", "version", "id")

    @routes.get("/guids/{guid}/ids", summary="List the ids of a guid, by context")
    def ids(guid: Name) -> list[ToldUse]:
        return [ToldUse(context=use.context, id=use.id) for use in registry.ids_of_guid(_guid(guid))]

    return routes


def _uses(registry: Registry, id_: int, *, subject: str, deleted: bool) -> list[Registered]:
    return registry.uses_of_id(id_, subject=subject, which=which(deleted, only=False))


def _guid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise schema_not_found(text) from error
