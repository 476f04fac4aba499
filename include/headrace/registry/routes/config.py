"""`/config`: compatibility levels and what else can be set, for all, a context or a subject."""

from typing import Annotated

from fastapi import APIRouter, Query

from headrace.registry.answers import Sparse
from headrace.registry.config import Config, ConfigUpdate
from headrace.registry.registry import Registry
from headrace.registry.requests import Flag, Name


def router(registry: Registry) -> APIRouter:
    routes = APIRouter(route_class=Sparse, tags=["Config"], prefix="/config")

    @routes.get("", summary="Get the global config")
    @routes.get("/{subject}", summary="Get a subject's config")
    def get(subject: Name = "", inherit: Annotated[Flag, Query(alias="defaultToGlobal")] = False) -> Config:
        return registry.config(subject, inherit=inherit)

    @routes.put("", summary="Change the global config")
    @routes.put("/{subject}", summary="Change a subject's config")
    def put(sent: ConfigUpdate, subject: Name = "") -> ConfigUpdate:
        after = registry.update_config(sent, subject=subject)
        return ConfigUpdate.model_construct(**dict(after))

    @routes.delete("", summary="Clear the global config")
    @routes.delete("/{subject}", summary="Clear a subject's config")
    def delete(subject: Name = "") -> Config:
        return registry.delete_config(subject)

    return routes
