"""RegistryHook: schemas, feeds and serializers for hand-written DAGs, from ours or any Confluent-like registry."""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlsplit

import httpx
from airflow.sdk import BaseHook, Connection

from headrace import layout
from headrace.airflow.provider import CONNECTION_TYPE, FIELDS, HOOK_NAME
from headrace.errors import FeedError, RegistryError, SettingsError
from headrace.feed import ATTRIBUTES
from headrace.registry import feeds
from headrace.registry.address import Address
from headrace.registry.feeds import FeedMetadata
from headrace.registry.schema import SchemaText

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import RegisteredSchema, SchemaRegistryClient
    from confluent_kafka.serialization import Deserializer, Serializer


class RegistryHook(BaseHook):
    """A schema registry by its Airflow connection; an outside one's feeds are read from its schemas' own text."""

    conn_name_attr = "registry_conn_id"
    default_conn_name = layout.REGISTRY_CONNECTION
    conn_type = CONNECTION_TYPE
    hook_name = HOOK_NAME

    def __init__(self, registry_conn_id: str = layout.REGISTRY_CONNECTION) -> None:
        super().__init__()
        self.registry_conn_id = registry_conn_id

    @cached_property
    def address(self) -> Address:
        return read_address(self.get_connection(self.registry_conn_id))

    def client(self) -> "SchemaRegistryClient":
        """Confluent's own client, signed in; the same one each time, for it remembers schemas."""
        return self._client

    @cached_property
    def _client(self) -> "SchemaRegistryClient":
        from confluent_kafka.schema_registry import SchemaRegistryClient

        return SchemaRegistryClient(self.address.config())

    def get_conn(self) -> "SchemaRegistryClient":
        """Airflow's word for the client."""
        return self.client()

    def schema(self, subject: str, version: int | Literal["latest"] = "latest") -> "RegisteredSchema":
        """One version of a subject."""
        client = self.client()
        return client.get_latest_version(subject) if version == "latest" else client.get_version(subject, version)

    def feed(self, name: str) -> FeedMetadata:
        """What the registry knows of a feed."""
        if found := self._ask(f"/feeds/{quote(name, safe='')}"):
            return FeedMetadata.model_validate(found)
        for each in self._declared([layout.subject(name), *self._subjects()]):
            if each.name == name:
                return each
        raise RegistryError(f"{self.address.shown}: there is no feed {name!r}. Register its file: headrace register")

    def feeds(self) -> list[FeedMetadata]:
        """What the registry knows of every feed."""
        found = self._ask("/feeds")
        if found is None:
            return list(self._declared(self._subjects()))
        return [FeedMetadata.model_validate(each) for each in found]

    def serializer(self, feed: str) -> "Serializer":
        """Confluent's serializer of a feed's values: from dictionaries, in the registered version, never a new one."""
        from confluent_kafka.schema_registry.avro import AvroSerializer
        from confluent_kafka.schema_registry.json_schema import JSONSerializer

        schema = self.schema(self.feed(feed).subject).schema
        config = {"auto.register.schemas": False, "use.latest.version": True}
        made: Serializer = (
            JSONSerializer(schema, self.client(), conf=config)
            if schema.schema_type == "JSON"
            else AvroSerializer(self.client(), schema, conf=config)
        )
        return made

    def deserializer(self, feed: str) -> "Deserializer":
        """Confluent's deserializer of a feed's values: to dictionaries, in the version they were written with."""
        from confluent_kafka.schema_registry.avro import AvroDeserializer
        from confluent_kafka.schema_registry.json_schema import JSONDeserializer

        made: Deserializer = (
            JSONDeserializer(None, schema_registry_client=self.client())
            if self.feed(feed).type == "JSON"
            else AvroDeserializer(self.client())
        )
        return made

    def test_connection(self) -> tuple[bool, str]:
        """What the Test button asks: whether the registry lets us in and answers as one."""
        self.client()  # a setting that Confluent's client does not know is an error here
        try:
            subjects, types = self._ask("/subjects"), self._ask("/schemas/types")
        except RegistryError as error:
            return False, str(error)
        if subjects is None or types is None:
            return False, f"{self.address.shown} has no subjects or types: this is no registry. Is the URL right?"
        return True, f"{self.address.shown} answers: {len(subjects)} subjects; types {', '.join(types)}."

    def _ask(self, path: str) -> Any:
        """What the registry says; None where it has no such thing, as an outside one has no feeds."""
        try:
            with self.address.client() as client:
                answer = client.get(path)
        except httpx.TransportError as error:
            raise RegistryError(f"{self.address.shown}: {error}. Is the URL right, and the registry up?") from error
        if "json" not in answer.headers.get("content-type", ""):
            raise RegistryError(
                f"{self.address.shown}{path}: {answer.status_code}, but this is no registry. Is the URL right?"
            )
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        if answer.is_error:
            raise RegistryError(f"{self.address.shown}{path}: {answer.status_code} {answer.json().get('message')}")
        return answer.json()

    def _subjects(self) -> list[str]:
        return [subject for subject in self.client().get_subjects() if feeds.is_of_values(subject)]

    def _declared(self, subjects: list[str]) -> Iterator[FeedMetadata]:
        """The feeds that the newest schemas of these subjects declare; what declares none, or wrongly, is no feed."""
        from confluent_kafka.schema_registry import SchemaRegistryError

        for subject in subjects:
            try:
                found = _feed(self.schema(subject))
            except FeedError:
                continue
            except SchemaRegistryError as error:
                if error.http_status_code != httpx.codes.NOT_FOUND:
                    raise
                continue
            if found:
                yield found


def read_address(connection: Connection) -> Address:
    """An Airflow connection as the address of a registry."""
    if not connection.host:
        raise SettingsError(f"Airflow connection {connection.conn_id}: no URL is set. Set it under Admin, Connections.")
    extra = {name: value for name, value in connection.extra_dejson.items() if value not in (None, "")}
    return Address(
        url=_url(connection.host, scheme=connection.schema or "http", port=connection.port),
        login=connection.login,
        password=connection.password,
        more={name: value for name, value in extra.items() if "." in name},
        **{name: extra[name] for name in FIELDS if name in extra},
    )


def _url(host: str, *, scheme: str, port: int | None) -> str:
    """The URL of a connection, which may hold its scheme and port apart; of several, each names its own."""
    url = urlsplit(host if "://" in host else f"{scheme}://{host}")
    if port and url.port is None and "," not in host:
        url = url._replace(netloc=f"{url.netloc}:{port}")
    return url.geturl()


def _feed(registered: "RegisteredSchema") -> FeedMetadata | None:
    """The feed, if any, that an outside registry's schema declares."""
    type_ = next((known for known in ATTRIBUTES if known == registered.schema.schema_type), None)
    subject, version, id_ = registered.subject, registered.version, registered.schema_id
    if not (type_ and subject and version and id_):
        return None
    metadata = registered.schema.metadata.to_dict() if registered.schema.metadata else None
    feed = feeds.feed_of(subject, SchemaText(type_, registered.schema.schema_str or "", metadata=metadata))
    return feeds.metadata(feed, version=version, id_=id_) if feed else None
