"""`/config`: compatibility levels and what else can be set, for all, a context or a subject."""

from typing import Annotated

from fastapi import APIRouter, Query

from headrace.registry.answers import Sparse
from headrace.registry.config import Config, ConfigUpdate
from headrace.registry.registry import Registry
from headrace.registry.requests import Flag, Name

Inherit = Annotated[Flag, Query(alias="defaultToGlobal")]


def router(registry: Registry) -> APIRouter:
    routes = APIRouter(route_class=Sparse, tags=["Config"], prefix="/config")

    @routes.get("", summary="Get the global config")
    def get_global(inherit: Inherit = False) -> Config:
        return registry.config(inherit=inherit)

    @routes.get("/{subject}", summary="Get a subject's config")
    def get(subject: Name, inherit: Inherit = False) -> Config:
        return registry.config(subject, inherit=inherit)

    @routes.put("", summary="Change the global config")
    def put_global(sent: ConfigUpdate) -> ConfigUpdate:
        return _echoed(registry.update_config(sent))

    @routes.put("/{subject}", summary="Change a subject's config")
    def put(subject: Name, sent: ConfigUpdate) -> ConfigUpdate:
        return _echoed(registry.update_config(sent, subject=subject))

    @routes.delete("", summary="Clear the global config")
    def delete_global() -> Config:
        return registry.delete_config()

    @routes.delete("/{subject}", summary="Clear a subject's config")
    def delete(subject: Name) -> Config:
        return registry.delete_config(subject)

    return routes


def _echoed(config: Config) -> ConfigUpdate:
    """A config under the names that a request has for it."""
    return ConfigUpdate.model_construct(**dict(config))
