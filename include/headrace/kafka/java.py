"""librdkafka's settings in the words of Kafka's Java client, which Spark reads with."""

from collections.abc import Callable

from headrace.errors import SettingsError
from headrace.kafka.topic import Config

SAME = {
    "bootstrap.servers": "bootstrap.servers",
    "metadata.broker.list": "bootstrap.servers",
    "client.id": "client.id",
    "client.rack": "client.rack",
    "ssl.key.password": "ssl.key.password",
}
LOGINS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
GUARDED = ("ssl.", "sasl.", "security.", "oauth", "enable.ssl.", "enable.sasl.", "https.")
"""How settings begin that decide whom we trust and who we are: one of these that is not understood is not left out."""

Read = Callable[[str], str]
"""Gives the text of a file."""


class Untranslatable(SettingsError):
    """A setting that the Java client has no word for."""


def java_settings(config: Config, *, read: Read) -> dict[str, str]:
    """The settings for a Java client on any machine: files become their contents.

    Settings of this client's own workings (queues, time-outs, callbacks) are left out.
    """
    left = {name: value for name, value in config.items() if name in SAME or name.startswith(GUARDED)}
    found = {SAME[name]: str(left.pop(name)) for name in list(left) if name in SAME}
    found |= _protocol(left) | _sasl(left) | _trust(left, read) | _keys(left, read) | _hosts(left)
    if left:
        raise Untranslatable(f"Kafka's Java client, and so Spark, has no word for {', '.join(sorted(left))}")
    return found


def _protocol(left: dict[str, object]) -> dict[str, str]:
    protocol = left.pop("security.protocol", None)
    return {"security.protocol": str(protocol).upper()} if protocol else {}


def _sasl(left: dict[str, object]) -> dict[str, str]:
    given = [left.pop(name, None) for name in ("sasl.mechanisms", "sasl.mechanism")]
    mechanism = str(given[0] or given[1] or "")
    if not mechanism:
        return {}
    if mechanism not in LOGINS:
        raise Untranslatable(f"Spark logs in to Kafka by {', '.join(LOGINS)}, not by {mechanism}")
    user, password = (_quoted(str(left.pop(f"sasl.{name}", ""))) for name in ("username", "password"))
    login = f"{LOGINS[mechanism]} required username={user} password={password};"
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": login}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _trust(left: dict[str, object], read: Read) -> dict[str, str]:
    certificates = _text(left, "ssl.ca", read)
    return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": certificates} if certificates else {}


def _keys(left: dict[str, object], read: Read) -> dict[str, str]:
    chain, key = _text(left, "ssl.certificate", read), _text(left, "ssl.key", read)
    if not chain and not key:
        return {}
    if "PRIVATE KEY-----" in key and "BEGIN PRIVATE KEY" not in key and "BEGIN ENCRYPTED PRIVATE KEY" not in key:
        raise Untranslatable(
            "Kafka's Java client takes a private key as PKCS #8 only; convert it: openssl pkcs8 -topk8"
        )
    return {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}


def _text(left: dict[str, object], name: str, read: Read) -> str:
    """A PEM text, given as it is or as the file that holds it."""
    text, location = left.pop(f"{name}.pem", None), left.pop(f"{name}.location", None)
    if text or not location:
        return str(text or "")
    try:
        return read(str(location))
    except OSError as error:  # librdkafka also takes a folder, or looks for one by itself
        raise Untranslatable(f"{name}.location is {location}, which is no file that Spark could be told") from error


def _hosts(left: dict[str, object]) -> dict[str, str]:
    """Whether a broker must have a certificate for its own name."""
    if str(left.get("enable.ssl.certificate.verification", "true")).lower() == "true":
        left.pop("enable.ssl.certificate.verification", None)
    algorithm = left.pop("ssl.endpoint.identification.algorithm", None)
    if algorithm is None:
        return {}
    return {"ssl.endpoint.identification.algorithm": "" if str(algorithm) == "none" else str(algorithm)}
