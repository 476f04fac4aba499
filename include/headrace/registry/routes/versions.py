"""`/subjects/{subject}/versions`: registering schemas, and getting and deleting them by number."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from headrace.registry.answers import Sparse, ToldSchema
from headrace.registry.media import Answer
from headrace.registry.page import Page
from headrace.registry.registered import Which
from headrace.registry.registry import Registry
from headrace.registry.requests import Flag, Name, SentSchema, page
from headrace.registry.routes.subjects import which
from headrace.registry.version import version_of

QUALIFIED = "qualified"


def router(registry: Registry) -> APIRouter:
    routes = APIRouter(route_class=Sparse, tags=["Subjects"], prefix="/subjects/{subject}/versions")

    @routes.get("", summary="List the versions of a subject")
    def versions(
        subject: Name,
        paging: Annotated[Page, Depends(page)],
        deleted: Flag = False,
        deleted_only: Annotated[Flag, Query(alias="deletedOnly")] = False,
        negative: Annotated[Flag, Query(alias="deletedAsNegative")] = False,
    ) -> list[int]:
        wanted = Which.ALL if negative else which(deleted, only=deleted_only)
        found = registry.history(subject, which=wanted, page=paging)
        return [-each.version if negative and each.is_deleted else each.version for each in found]

    @routes.post("", summary="Register a schema")
    def register(
        subject: Name,
        sent: SentSchema,
        normalize: Flag = False,
        format_: Annotated[str, Query(alias="format")] = "",
        force: Flag = False,
    ) -> ToldSchema:
        done = registry.register(subject, sent.asked(), normalize=normalize, force=force)
        return ToldSchema.of(done, registry.text(done, format_=format_)).without("subject", "ts", "deleted")

    @routes.get("/{version}", summary="Get a version")
    def version(
        subject: Name,
        version: Name,
        format_: Annotated[str, Query(alias="format")] = "",
        reference_format: Annotated[str, Query(alias="referenceFormat")] = "",
        deleted: Flag = False,
    ) -> ToldSchema:
        found = registry.version(subject, version_of(version), deleted=deleted)
        told = ToldSchema.of(found, registry.text(found, format_=format_))
        return told.with_qualified_references() if reference_format == QUALIFIED else told

    @routes.get("/{version}/schema", summary="Get a version's schema alone", response_class=Answer)
    def schema(
        subject: Name, version: Name, format_: Annotated[str, Query(alias="format")] = "", deleted: Flag = False
    ) -> Response:
        found = registry.version(subject, version_of(version), deleted=deleted)
        return Response(registry.text(found, format_=format_), media_type=Answer.media_type)

    @routes.get("/{version}/referencedby", summary="List the ids of the schemas that refer to a version")
    def referenced_by(
        subject: Name, version: Name, paging: Annotated[Page, Depends(page)], deleted: Flag = False
    ) -> list[int]:
        return registry.referenced_by(subject, version_of(version), deleted=deleted, page=paging)

    @routes.delete("/{version}", summary="Delete a version")
    def delete(subject: Name, version: Name, permanent: Flag = False) -> int:
        return registry.delete_version(subject, version_of(version), permanent=permanent)

    return routes
