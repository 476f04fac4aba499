"""`/subjects`: which there are, which version a schema is, and deleting one."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from headrace.registry.answers import Sparse, ToldSchema
from headrace.registry.page import Page
from headrace.registry.registered import Which
from headrace.registry.registry import Registry
from headrace.registry.requests import Flag, Name, SentSchema, page
from headrace.registry.subject import ANY_CONTEXT


def router(registry: Registry) -> APIRouter:
    routes = APIRouter(route_class=Sparse, tags=["Subjects"])

    @routes.get("/subjects", summary="List subjects")
    def subjects(
        paging: Annotated[Page, Depends(page)],
        subject_prefix: Annotated[str, Query(alias="subjectPrefix")] = ANY_CONTEXT,
        deleted: Flag = False,
        deleted_only: Annotated[Flag, Query(alias="deletedOnly")] = False,
    ) -> list[str]:
        return registry.subjects(subject_prefix, which=which(deleted, only=deleted_only), page=paging)

    @routes.post("/subjects/{subject}", summary="Look up a schema under a subject")
    def look_up(
        subject: Name,
        sent: SentSchema,
        normalize: Flag = False,
        format_: Annotated[str, Query(alias="format")] = "",
        deleted: Flag = False,
    ) -> ToldSchema:
        found = registry.look_up(subject, sent.schema_text(), normalize=normalize, deleted=deleted)
        return ToldSchema.of(found, registry.text(found, format_=format_))

    @routes.get("/subjects/{subject}/metadata", summary="Get the last version with given metadata")
    def with_metadata(
        subject: Name,
        key: Annotated[list[str], Query()] = [],  # noqa: B006
        value: Annotated[list[str], Query()] = [],  # noqa: B006
        format_: Annotated[str, Query(alias="format")] = "",
        deleted: Flag = False,
    ) -> ToldSchema:
        found = registry.with_metadata(subject, dict(zip(key, value, strict=False)), deleted=deleted)
        return ToldSchema.of(found, registry.text(found, format_=format_))

    @routes.delete("/subjects/{subject}", summary="Delete a subject")
    def delete(subject: Name, permanent: Flag = False) -> list[int]:
        return registry.delete_subject(subject, permanent=permanent)

    return routes


def which(deleted: bool, *, only: bool) -> Which:
    """Where both are asked for, only the deleted ones are meant."""
    return Which.DELETED if only else Which.ALL if deleted else Which.LIVE
