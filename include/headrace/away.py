"""Services that are away: what Kafka, S3 and the catalog raise when they do not answer or refuse us, in our words.

The one place that knows these libraries' errors: a stage is wrapped in `tells`, and everything else passes through.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError
from confluent_kafka import KafkaError, KafkaException
from sqlalchemy.exc import DBAPIError

from headrace import layout
from headrace.errors import HeadraceError, ServiceAway, ServiceRefused, TopicMissing

if TYPE_CHECKING:
    from headrace.kafka.topic import Config
    from headrace.lake import Lake

P = ParamSpec("P")
T = TypeVar("T")

KAFKA_REFUSES = {
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
    KafkaError._INVALID_ARG,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
KAFKA_MISSES = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
S3_REFUSES = {
    "AccessDenied",
    "AllAccessDisabled",
    "AuthorizationHeaderMalformed",
    "Forbidden",
    "403",
    "InvalidAccessKeyId",
    "InvalidToken",
    "KMS.DisabledException",
    "KMS.NotFoundException",
    "NoSuchBucket",
    "NotImplemented",
    "PermanentRedirect",
    "SignatureDoesNotMatch",
}
ARROW_REFUSES = ("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "INVALID_SIGNATURE", "NO_SUCH_BUCKET", "SIGNATURE_DOES")
ARROW = "AWS Error "
"""By this Arrow's errors of S3 are told from those of any other file system."""
POSTGRES_REFUSES = ("28000", "28P01", "3D000", "42501")
"""SQL states: no such user, wrong password, no such database, not allowed."""

BEFORE = "Nothing was committed, and the next try begins again."
RESUMES = "What was committed before stays, and the next try goes on from there."
BETWEEN = "A commit that was under way landed whole or not at all; the next try sees which and goes on from there."


def tells(stage: Callable[P, T]) -> Callable[P, T]:
    """Let a stage, which takes `lake` and `kafka` by name, say which of them is away; run again, it begins again."""
    return _telling(stage, kept=BEFORE)


def tells_resuming(stage: Callable[P, T]) -> Callable[P, T]:
    """The same for a stage that commits bit by bit, and goes on where it stopped."""
    return _telling(stage, kept=RESUMES)


def _telling(stage: Callable[P, T], *, kept: str) -> Callable[P, T]:
    @functools.wraps(stage)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with services(kafka=kwargs.get("kafka"), lake=kwargs.get("lake"), kept=kept):  # type: ignore[arg-type]
            return stage(*args, **kwargs)

    return wrapped


@contextmanager
def services(*, kafka: "Config | None" = None, lake: "Lake | None" = None, kept: str = BEFORE) -> Iterator[None]:
    """Around what asks these services; `kept` tells what becomes of what was done so far."""
    try:
        yield
    except KafkaException as error:
        raise of_kafka(error.args[0], servers=str((kafka or {}).get("bootstrap.servers", "?")), kept=kept) from error
    except (BotoCoreError, ClientError) as error:
        raise of_boto(error, where=lake.storage.shown if lake else "?", kept=kept) from error
    except DBAPIError as error:
        where = f"{lake.database.host}:{lake.database.port}/{lake.database.name}" if lake else "?"
        raise of_catalog(error, where=where, kept=kept) from error
    except OSError as error:
        if ARROW not in str(error):
            raise
        raise of_arrow(error, where=lake.storage.shown if lake else "?", kept=kept) from error


def of_kafka(error: KafkaError, *, servers: str, kept: str) -> HeadraceError:
    said = _sentence(error.str())
    if error.code() in KAFKA_REFUSES:
        return _refused("Kafka", servers, said, connection=layout.KAFKA_CONNECTION, kept=kept)
    if error.code() in KAFKA_MISSES:
        return TopicMissing(f"Kafka at {servers}: {said} A topic was deleted while it was used. {kept}")
    return _away("Kafka", servers, said, connection=layout.KAFKA_CONNECTION, kept=kept)


def of_boto(error: BotoCoreError | ClientError, *, where: str, kept: str) -> HeadraceError:
    code = error.response.get("Error", {}).get("Code", "") if isinstance(error, ClientError) else ""
    said = _sentence(str(error))
    if code in S3_REFUSES or isinstance(error, NoCredentialsError | PartialCredentialsError):
        return _refused("S3", where, said, connection=layout.S3_CONNECTION, kept=kept)
    return _away("S3", where, said, connection=layout.S3_CONNECTION, kept=kept)


def of_arrow(error: OSError, *, where: str, kept: str) -> HeadraceError:
    told = str(error)
    said = _sentence(told[told.index(ARROW) :])
    if said.removeprefix(ARROW).startswith(ARROW_REFUSES):
        return _refused("S3", where, said, connection=layout.S3_CONNECTION, kept=kept)
    return _away("S3", where, said, connection=layout.S3_CONNECTION, kept=kept)


def of_catalog(error: DBAPIError, *, where: str, kept: str) -> HeadraceError:
    # What SQLAlchemy itself says holds the statement and its values; the driver's own words hold neither.
    return of_postgres(error.orig, state=getattr(error.orig, "pgcode", None), where=where, kept=kept)


def of_postgres(error: BaseException | None, *, state: str | None, where: str, kept: str) -> HeadraceError:
    """The catalog's database, whose driver raised this."""
    said = _sentence(str(error))
    wrong = "password authentication failed" in said or "does not exist" in said  # no state while connecting
    if state in POSTGRES_REFUSES or (wrong and type(error).__name__ == "OperationalError"):
        return _refused("The catalog", where, said, connection=layout.CATALOG_CONNECTION, kept=kept)
    return _away("The catalog", where, said, connection=layout.CATALOG_CONNECTION, kept=BETWEEN)


def _away(service: str, where: str, said: str, *, connection: str, kept: str) -> ServiceAway:
    return ServiceAway(
        f"{service} at {where} does not answer, though it was asked more than once: {said} {kept} "
        f"Is it up, and is the Airflow connection {connection} right?"
    )


def _refused(service: str, where: str, said: str, *, connection: str, kept: str) -> ServiceRefused:
    return ServiceRefused(
        f"{service} at {where} refuses us: {said} {kept} Mend the Airflow connection {connection}, or what its user "
        f"may do; docs/connections.md says what we need."
    )


def _sentence(text: Any) -> str:
    """What another program said, on one line that ends."""
    line = " ".join(str(text).split())
    return line if line.endswith((".", "!", "?")) else f"{line}."
