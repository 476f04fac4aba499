"""Paths as Confluent's registry reads them: encoded slashes stay inside names, and a context may stand in front."""

from urllib.parse import parse_qsl, unquote, urlencode

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.registry.subject import context_prefix, names_context


class Paths:
    """Middleware that hands on paths still encoded, without a trailing slash, and with contexts moved into subjects.

    What can be got can be asked about: HEAD is GET, whose body the web server keeps back.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        root, raw = scope.get("root_path", ""), scope.get("raw_path") or scope["path"].encode()
        inner = raw.decode("latin-1").removeprefix(root)
        try:
            path, query = moved(inner, scope["query_string"].decode("latin-1"))
        except ValueError as error:
            await JSONResponse({"error_code": 400, "message": str(error)}, 400)(scope, receive, send)
            return
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        read = {**scope, "method": method, "path": root + path, "query_string": query.encode("latin-1")}
        await self.app(read, receive, send)


def moved(path: str, query: str) -> tuple[str, str]:
    """`/contexts/C/subjects/S` as `/subjects/:.C:S`, and so for every other path that begins with a context."""
    parts = path.strip("/").split("/")
    # Of several contexts the last one counts.
    while parts[:3:2] == ["contexts", "contexts"]:
        parts = parts[2:]
    if parts[0] != "contexts" or len(parts) == 1:
        return "/" + "/".join(parts), query
    prefix = context_prefix(unquote(parts[1]))
    rest = _within(parts[2:], prefix)
    return "/" + "/".join(rest or ["contexts", prefix]), _query(rest, query, prefix=prefix)


def _within(parts: list[str], prefix: str) -> list[str]:
    """The path with its subject in the context; a config or mode without a subject is the context's own."""
    if parts in (["config"], ["mode"]):
        return [*parts, prefix] if prefix else parts
    place = next((number for number, part in enumerate(parts) if _leads(part, number)), None)
    if place is None or place + 1 == len(parts) or names_context(unquote(parts[place + 1])):
        return parts
    return [*parts[: place + 1], prefix + parts[place + 1], *parts[place + 2 :]]


def _leads(part: str, number: int) -> bool:
    """Whether a subject follows this part of a path."""
    return part == "subjects" or (number == 0 and part in ("config", "mode"))


def _query(parts: list[str], query: str, *, prefix: str) -> str:
    """The query with the subject, or the beginning of subjects, that it names in the context."""
    if parts[:2] == ["schemas", "ids"]:
        name = "subject"
    elif parts in (["schemas"], ["subjects"]):
        name = "subjectPrefix"
    else:
        return query
    asked = parse_qsl(query, keep_blank_values=True)
    value = dict(asked).get(name, "")
    kept = [(key, each) for key, each in asked if key != name]
    return urlencode([*kept, (name, value if names_context(value) else prefix + value)])
