"""`/` and `/v1/metadata`: that the registry is there, and what it is."""

from typing import Any

from fastapi import APIRouter

COMPATIBLE = "8.0.0"
"""The version of Confluent's registry whose API this is; clients ask for it to know what they may use."""


def router() -> APIRouter:
    routes = APIRouter(tags=["Server"])

    @routes.get("/", summary="Answer, to show that it is there")
    @routes.post("/", summary="Answer, to show that it is there")
    def root() -> dict[str, str]:
        return {}

    @routes.get("/v1/metadata/id", summary="Get the server's ids")
    def ids() -> dict[str, Any]:
        return {"scope": {"path": [], "clusters": {"schema-registry-cluster": "headrace"}}, "id": ""}

    @routes.get("/v1/metadata/version", summary="Get the server's version")
    def version() -> dict[str, str]:
        return {"version": COMPATIBLE, "commitId": "headrace"}

    @routes.get("/v1/metadata/deployment", summary="Get the attributes of the server's deployment")
    def deployment() -> dict[str, list[str]]:
        return {"attributes": []}

    return routes
