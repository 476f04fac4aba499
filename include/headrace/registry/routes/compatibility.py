"""`/compatibility`: whether a schema could be registered, and why not."""

from typing import Annotated

from fastapi import APIRouter, Query

from headrace.registry.answers import Sparse, ToldCompatibility
from headrace.registry.errors import Code, RegistryFault
from headrace.registry.registry import Registry
from headrace.registry.requests import Flag, Name, SentSchema
from headrace.registry.version import version_of


def router(registry: Registry) -> APIRouter:
    routes = APIRouter(route_class=Sparse, tags=["Compatibility"], prefix="/compatibility/subjects/{subject}/versions")

    @routes.post("", summary="Compare a schema with all versions of a subject that count")
    def with_all(
        subject: Name, sent: SentSchema, normalize: Flag = False, verbose: Annotated[Flag, Query()] = False
    ) -> ToldCompatibility:
        return _compare(registry, subject, sent, version=None, normalize=normalize, verbose=verbose)

    @routes.post("/{version}", summary="Compare a schema with one version of a subject")
    def with_one(
        subject: Name,
        version: Name,
        sent: SentSchema,
        normalize: Flag = False,
        verbose: Annotated[Flag, Query()] = False,
    ) -> ToldCompatibility:
        return _compare(registry, subject, sent, version=version_of(version), normalize=normalize, verbose=verbose)

    return routes


def _compare(
    registry: Registry, subject: str, sent: SentSchema, *, version: int | None, normalize: bool, verbose: bool
) -> ToldCompatibility:
    try:
        found = registry.incompatibilities(subject, sent.schema_text(), version=version, normalize=normalize)
    except RegistryFault as fault:
        # Who asks for the reasons is told of an invalid schema as of one more.
        if not verbose or fault.code is not Code.INVALID_SCHEMA:
            raise
        found = [fault.message]
    return ToldCompatibility(is_compatible=not found, messages=found if verbose else None)
