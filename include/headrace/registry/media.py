"""Content types: what a client may send, and which of ours it gets its answer in."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The first is what a client gets that does not care.
TYPES = ("application/vnd.schemaregistry.v1+json", "application/vnd.schemaregistry+json", "application/json")
# Confluent takes a body of no declared type for JSON.
TAKEN = (*TYPES, "application/octet-stream")


class Answer(JSONResponse):
    """An answer in the registry's own type, until a client asks for another."""

    media_type = TYPES[0]


class Media:
    """Middleware that refuses types which the registry does not speak, and answers in the one that was asked for."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        answered = preferred(headers.get("accept", "*/*"))
        if answered is None:
            await refusal(406, "Not Acceptable")(scope, receive, send)
        elif "content-type" in headers and _type(headers["content-type"]) not in TAKEN:
            await refusal(415, "Unsupported Media Type")(scope, receive, send)
        else:
            # FastAPI reads a body as JSON only if it is called so.
            MutableHeaders(scope=scope)["content-type"] = "application/json"
            await self.app(scope, receive, _answering(send, answered))


def refusal(status: int, phrase: str) -> Answer:
    """What Confluent's server says by itself."""
    return Answer({"error_code": status, "message": f"HTTP {status} {phrase}"}, status)


def preferred(accept: str) -> str | None:
    """The best of our types that a client accepts; None if it accepts none."""
    wanted = dict(_weighed(each) for each in accept.split(",") if each.strip()) or {"*/*": 1.0}
    weights = {type_: _weight(wanted, type_) for type_ in TYPES}
    best = max(TYPES, key=lambda type_: weights[type_])
    return best if weights[best] > 0 else None


def _weight(wanted: dict[str, float], type_: str) -> float:
    return wanted.get(type_, wanted.get("application/*", wanted.get("*/*", 0.0)))


def _weighed(entry: str) -> tuple[str, float]:
    name, *parameters = (part.strip() for part in entry.split(";"))
    quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
    try:
        return name.lower(), float(quality)
    except ValueError:
        return name.lower(), 0.0


def _type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def _answering(send: Send, type_: str) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if headers.get("content-type") == TYPES[0]:
                headers["content-type"] = type_
        await send(message)

    return sent
