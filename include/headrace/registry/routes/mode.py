"""`/mode`: which changes are taken, for all, a context or a subject."""

from fastapi import APIRouter

from headrace.registry.answers import Sparse, ToldMode
from headrace.registry.registry import Registry
from headrace.registry.requests import Flag, Name, SentMode
from headrace.registry.routes.config import Inherit


def router(registry: Registry) -> APIRouter:
    routes = APIRouter(route_class=Sparse, tags=["Modes"], prefix="/mode")

    @routes.get("", summary="Get the global mode")
    def get_global(inherit: Inherit = False) -> ToldMode:
        return ToldMode(mode=registry.mode(inherit=inherit))

    @routes.get("/{subject}", summary="Get a subject's mode")
    def get(subject: Name, inherit: Inherit = False) -> ToldMode:
        return ToldMode(mode=registry.mode(subject, inherit=inherit))

    @routes.put("", summary="Set the global mode")
    def put_global(sent: SentMode, force: Flag = False) -> ToldMode:
        registry.set_mode(sent.mode, force=force)
        return ToldMode(mode=sent.mode)

    @routes.put("/{subject}", summary="Set a subject's mode")
    def put(subject: Name, sent: SentMode, force: Flag = False) -> ToldMode:
        registry.set_mode(sent.mode, subject=subject, force=force)
        return ToldMode(mode=sent.mode)

    @routes.delete("", summary="Clear the global mode")
    def delete_global(recursive: Flag = False) -> ToldMode:
        return ToldMode(mode=registry.delete_mode(recursive=recursive))

    @routes.delete("/{subject}", summary="Clear a subject's mode")
    def delete(subject: Name, recursive: Flag = False) -> ToldMode:
        return ToldMode(mode=registry.delete_mode(subject, recursive=recursive))

    return routes
