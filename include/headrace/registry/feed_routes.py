"""The routes that Confluent's registry does not have: what is known of feeds."""

from collections.abc import Callable, Iterable

from fastapi import APIRouter

from headrace.registry import feeds
from headrace.registry.errors import Code, RegistryFault
from headrace.registry.feeds import FeedMetadata
from headrace.registry.registered import Registered
from headrace.registry.requests import Name


def router(declaring: Callable[[], Iterable[Registered]]) -> APIRouter:
    """`GET /feeds` and `GET /feeds/{name}`, over the newest versions that declare one."""
    routes = APIRouter(tags=["Feeds"])

    @routes.get("/feeds", summary="Every feed that a registered schema declares")
    def every() -> list[FeedMetadata]:
        return list(feeds.known(declaring()).values())

    @routes.get("/feeds/{name}", summary="One feed")
    def one(name: Name) -> FeedMetadata:
        known = feeds.known(declaring())
        if name not in known:
            raise RegistryFault(Code.FEED_NOT_FOUND, f"Feed '{name}' not found.")
        return known[name]

    return routes
