"""The registry as a web application: Confluent's REST API over the core, every error told in Confluent's way."""

import logging
from collections.abc import Sequence
from http import HTTPStatus

import psycopg
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from headrace.registry import feed_routes
from headrace.registry.bodies import Bounded
from headrace.registry.errors import Code, RegistryFault
from headrace.registry.manual import manual
from headrace.registry.media import Answer, Media, refusal
from headrace.registry.paths import Paths
from headrace.registry.registry import Registry
from headrace.registry.routes import compatibility, config, contexts, mode, schemas, server, subjects, versions

log = logging.getLogger(__name__)

RESOURCES = (subjects, versions, schemas, compatibility, config, mode, contexts)


def application(registry: Registry) -> FastAPI:
    """The application; it guards nothing, so what serves it must stand a guard before it."""
    app = FastAPI(
        title="Headrace schema registry",
        description="Confluent's Schema Registry API, version 8, for Avro and JSON Schema; and what is known of feeds.",
        version=server.COMPATIBLE,
        default_response_class=Answer,
        redirect_slashes=False,
        # FastAPI's own pages are made by scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        middleware=[Middleware(Paths), Middleware(Media), Middleware(Bounded)],
        exception_handlers=dict.fromkeys(REFUSED, refuse),
    )
    made = [resource.router(registry) for resource in RESOURCES]
    for router in (server.router(), *made, feed_routes.router(registry.store.declaring)):
        app.include_router(router)
    app.add_api_route("/docs", lambda: manual(app.openapi()), include_in_schema=False)
    return app


REFUSED: Sequence[type[Exception]] = (
    RegistryFault,
    RequestValidationError,
    HTTPException,
    psycopg.Error,
    UnicodeEncodeError,
    RecursionError,
    Exception,
)


async def refuse(request: Request, error: Exception) -> Answer:
    """The one place where an error becomes an answer."""
    match error:
        case HTTPException(status_code=status):
            return refusal(status, HTTPStatus(status).phrase)
        case RequestValidationError():
            return _unread(error)
        case RegistryFault():
            return _told(error)
        case psycopg.Error() | UnicodeEncodeError() | RecursionError():
            return _told(_fault(error))
    # The server logs it, with its trace.
    return Answer({"error_code": 500, "message": "Internal Server Error"}, 500)


def _told(fault: RegistryFault) -> Answer:
    return Answer({"error_code": fault.code, "message": fault.message}, fault.code.status)


def _fault(error: Exception) -> RegistryFault:
    """What went wrong below the core."""
    match error:
        case psycopg.errors.LockNotAvailable():
            return RegistryFault(Code.TIMED_OUT, "Others are writing to the registry for too long; try again.")
        case psycopg.errors.NumericValueOutOfRange():
            return RegistryFault(Code.NOT_PERMITTED, "All ids of the context, or versions of the subject, are used up.")
        case RecursionError():
            return RegistryFault(Code.INVALID_SCHEMA, "The schema is nested too deeply.")
        case psycopg.DataError() | UnicodeEncodeError():
            return RegistryFault(
                Code.INVALID_SCHEMA, "NUL, or half a surrogate pair, is no character that can be kept."
            )
    log.error("The registry's store failed: %s", error)
    return RegistryFault(Code.STORE_FAILED, "Error in the backend data store")


def _unread(error: RequestValidationError) -> Answer:
    """What is said of a request that could not be read: a path or query is one of nothing, a body is a bad one."""
    fault = error.errors()[0]
    where = [str(part) for part in fault["loc"]]
    if where[0] != "body":
        return refusal(404, HTTPStatus.NOT_FOUND.phrase)
    if len(where) == 1 and fault["type"] == "missing":
        return Answer({"error_code": 422, "message": "The request must have a body."}, 422)
    return Answer({"error_code": 400, "message": f"{'.'.join(where[1:])}: {fault['msg']}"}, 400)
