"""Bodies of a size that the registry can read: all of one is in memory at once, and its schema is parsed."""

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 4 * 2**20
"""Four times what Confluent's registry can keep in one of Kafka's records."""


class Bounded:
    """Middleware that stops reading a body when it is too large, whatever its sender said of its length."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MOST_BYTES:
                raise HTTPException(413)
            return message

        await self.app(scope, counted, send)
