"""The registry's guard: Airflow's own sign-in and permissions before every route, known or not.

Airflow does not authenticate the applications that a plugin mounts. So the guard stands before the whole application,
its documentation and its unknown paths included.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import urlsplit

import httpx
from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.core_api.security import get_user, resolve_user_from_token
from airflow.configuration import conf
from fastapi import FastAPI, HTTPException, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from headrace.registry import access
from headrace.registry.access import Change, Tokens, Unauthorized
from headrace.registry.paths import moved

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
PERMISSIONS: Mapping[Change, str] = {"POST": "create", "PUT": "edit", "DELETE": "delete"}


@dataclass(frozen=True)
class Identity:
    """Who asks, and whether a browser may have sent their credentials by itself, for whoever's page it shows."""

    user: BaseUser
    is_ambient: bool


async def exchange(name: str, password: str) -> str:
    """A token from the auth manager's own endpoint, inside this process: the same for Simple, FAB and Keycloak."""
    application = _auth_application()
    if application is None:
        raise Unauthorized("This Airflow's auth manager takes no passwords; use a token.")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://auth") as client:
        answer = await client.post("/token", json={"username": name, "password": password})
    if answer.is_client_error:
        raise Unauthorized(f"The auth manager refused {name}.")
    token: str = answer.raise_for_status().json()["access_token"]
    return token


@cache
def _auth_application() -> FastAPI | None:
    application: FastAPI | None = get_auth_manager().get_fastapi_app()
    return application


@dataclass(frozen=True)
class Guard:
    """Middleware of an application that only the signed-in reach, and whose changes take permission."""

    app: ASGIApp
    tokens: Tokens = field(default_factory=lambda: Tokens(exchange))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # What is no plain request, such as a web socket, nobody needs and nobody gets.
        refused = await self.refusal(Request(scope)) if scope["type"] == "http" else WebSocketClose()
        await (refused or self.app)(scope, receive, send)

    async def refusal(self, request: Request) -> Response | None:
        """The answer to a request that may not go on."""
        try:
            identity = await self.identity(request)
        except Unauthorized:
            return answer(401, "Unauthorized", headers={"WWW-Authenticate": 'Basic realm="Headrace"'})
        wanted = access.change(request.method, inner_path(request.scope))
        if wanted is None:
            return None
        if identity.is_ambient and access.is_foreign(request.headers, hosts=_hosts(request)):
            return answer(403, "A page of another site sent this change: only pages of this Airflow may.")
        if not await run_in_threadpool(_permits, identity.user, wanted):
            who, what = identity.user.get_name(), PERMISSIONS[wanted]
            return answer(403, f"{who} may not do this: it takes the permission to {what} Airflow's Variables.")
        return None

    async def identity(self, request: Request) -> Identity:
        """Who asks: by a token, by name and password, or by the cookie of Airflow's UI; an explicit one wins."""
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        try:
            match scheme.lower():
                case "bearer":
                    return Identity(await resolve_user_from_token(credentials), is_ambient=False)
                case "basic":
                    token = await self.tokens.get(*access.name_and_password(credentials))
                    return Identity(await resolve_user_from_token(token), is_ambient=True)
                case "":
                    return Identity(await get_user(request, None, None), is_ambient=True)
        except HTTPException as error:
            raise Unauthorized(str(error.detail)) from error
        raise Unauthorized(f"{scheme} credentials are not known here; use Bearer or Basic.")


def _permits(user: BaseUser, wanted: Change) -> bool:
    return bool(get_auth_manager().is_authorized_variable(method=wanted, user=user))


def inner_path(scope: Scope) -> str:
    """The path as the application's own routes read it: what is guarded must be what is served."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    path = raw.decode("latin-1").removeprefix(scope.get("root_path", ""))
    try:
        return moved(path, "")[0]
    except ValueError:
        return path


def _hosts(request: Request) -> frozenset[str]:
    """Where our own pages come from; behind a proxy, a browser knows the configured address only."""
    return frozenset({request.headers.get("host", ""), urlsplit(conf.get("api", "base_url", fallback="")).netloc})


def answer(status: int, message: str, *, code: int | None = None, headers: Mapping[str, str] | None = None) -> Response:
    """A refusal as Confluent's clients read it."""
    content = {"error_code": code or status, "message": message}
    return JSONResponse(content, status, headers=headers, media_type=CONTENT_TYPE)
