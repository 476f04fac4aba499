"""Calls to Kinesis: patient where it limits us, and its refusals in our words."""

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError, PartialCredentialsError

from headrace import layout
from headrace.errors import HeadraceError, SettingsError, TopicError, TopicMissing, TopicSilent

CONFIG = Config(connect_timeout=10, read_timeout=60, retries={"mode": "standard", "total_max_attempts": 3})
"""A client's own patience, for a network that drops a call; ours is for limits, of which it soon has enough."""
EXPIRED = "ExpiredIteratorException"
MISSING = "ResourceNotFoundException"
LIMITED = (
    "KMSThrottlingException",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
)
"""A shard gives 5 answers and 2 MB a second, to all who read it; after 10 MB it gives nothing for 5 seconds."""
DENIED = (
    "AccessDeniedException",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "KMSAccessDeniedException",
    "MissingAuthenticationTokenException",
    "OptInRequired",
    "UnrecognizedClientException",
)
PAUSES_S = (0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0, 5.0, 5.0)
"""How long we wait when we are limited once more; half of each is left to chance, so that readers fall out of step."""
BUSY = 500
"""From this HTTP status on, the fault is the service's own."""


def ask(
    call: Callable[..., Any], /, *, stream: str, pauses: Sequence[float] = PAUSES_S, **arguments: Any
) -> dict[str, Any]:
    """What a client's method answers. Of its errors only an expired iterator's comes through as it is."""
    for pause in (*pauses, None):
        try:
            answer: dict[str, Any] = call(**arguments)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == EXPIRED:
                raise
            if code not in LIMITED:
                raise _refusal(error, code, stream=stream) from error
            if pause is None:
                raise _limited(error, code, stream=stream) from error
            time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 -- no secret hangs on it
        except BotoCoreError as error:
            raise _silence(error, stream=stream) from error
        else:
            return answer
    raise AssertionError("the last try answers or raises")


def _limited(error: ClientError, code: str, *, stream: str) -> HeadraceError:
    return TopicSilent(
        f"stream {stream}: Kinesis limits {error.operation_name} ({code}), and waiting did not help. All who read a "
        f"shard share 5 answers and 2 MB a second: run it when fewer read, or split the shards."
    )


def _refusal(error: ClientError, code: str, *, stream: str) -> HeadraceError:
    said = error.response["Error"].get("Message", "").rstrip(".")
    if code == MISSING:
        return TopicMissing(
            f"stream {stream}: AWS has none of that name there ({said}). Make it, or correct kinesis.stream in the "
            f"feed file, or the account and region of the Airflow connection {layout.KINESIS_CONNECTION}."
        )
    if code in DENIED:
        return SettingsError(
            f"stream {stream}: AWS refuses {error.operation_name} ({code}: {said}). Correct the Airflow connection "
            f"{layout.KINESIS_CONNECTION}, or let its role list shards and get records of this stream."
        )
    told = f"stream {stream}: {error.operation_name} failed with {code}: {said}."
    busy = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= BUSY
    return TopicSilent(told) if busy else TopicError(told)


def _silence(error: BotoCoreError, *, stream: str) -> HeadraceError:
    if isinstance(error, NoCredentialsError | PartialCredentialsError | NoRegionError):
        return SettingsError(
            f"stream {stream}: {error} Complete the Airflow connection {layout.KINESIS_CONNECTION}, or give the "
            f"machine a role."
        )
    return TopicSilent(f"stream {stream}: Kinesis gives no answer: {error} Is its endpoint right?")
