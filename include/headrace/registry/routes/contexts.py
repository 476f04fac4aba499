"""`/contexts`: the rooms that subjects and ids are counted in."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from headrace.registry.answers import Sparse
from headrace.registry.page import Page
from headrace.registry.registry import Registry
from headrace.registry.requests import Name, page


def router(registry: Registry) -> APIRouter:
    routes = APIRouter(route_class=Sparse, tags=["Contexts"], prefix="/contexts")

    @routes.get("", summary="List contexts")
    def contexts(
        paging: Annotated[Page, Depends(page)], prefix: Annotated[str, Query(alias="contextPrefix")] = ""
    ) -> list[str]:
        return registry.contexts(prefix, page=paging)

    @routes.delete("/{context}", summary="Delete an empty context", status_code=204)
    def delete(context: Name) -> None:
        registry.delete_context(context)

    return routes
