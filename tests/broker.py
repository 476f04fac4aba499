"""A broker of a test's own: it may ask for TLS and a password, and it may be killed."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from stack import java as javas
from stack.settings import HOST, JARS

USER, PASSWORD = "headrace", "a-password-of-this-test"
LIMITED = "limited"
"""A user who may do nothing until he is allowed to; the other may do everything."""
LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def certificates(folder: Path) -> tuple[Path, Path]:
    """A CA of our own, and a server's key with its certificate, both as PEM files."""
    now = datetime.now(UTC)

    def issue(name: str, *, key: Any, issuer: x509.Name, signer: Any, authority: bool) -> x509.Certificate:
        built = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)
        )
        return built.sign(signer, hashes.SHA256())

    authority, server = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a CA of this test")])
    root = issue("a CA of this test", key=authority, issuer=issuer, signer=authority, authority=True)
    leaf = issue(HOST, key=server, issuer=issuer, signer=authority, authority=False)
    pem = serialization.Encoding.PEM
    private = server.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    trusted, keys = folder / "ca.pem", folder / "server.pem"
    trusted.write_bytes(root.public_bytes(pem))
    keys.write_bytes(private + leaf.public_bytes(pem) + root.public_bytes(pem))
    return trusted, keys


@dataclass
class Broker:
    """One KRaft node in a folder of its own; `secure` makes it speak SASL_SSL with SCRAM and nothing else."""

    folder: Path
    secure: bool = False
    port: int = field(default_factory=free_port)
    controller: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def config(self) -> dict[str, Any]:
        """A client's settings, as an Airflow connection would hold them."""
        plain: dict[str, Any] = {"bootstrap.servers": f"{HOST}:{self.port}", "log_level": 0}
        if not self.secure:
            return plain
        return plain | {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self.folder / "ca.pem"),
        }

    def start(self) -> None:
        """Bring it up, and wait until it answers."""
        (self.folder / "log4j2.properties").write_text(LOGGING)
        settings = self.folder / "server.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in self._properties().items()))
        if not (self.folder / "data").exists():
            users = [f"--add-scram=SCRAM-SHA-256=[name={name},password={PASSWORD}]" for name in (USER, LIMITED)]
            format_ = ["format", "-t", "4L6g3nShT-eMCtK--X86sw", "-c", str(settings), *(users if self.secure else [])]
            subprocess.run([*self._java("kafka.tools.StorageTool"), *format_], check=True, capture_output=True)
        with (self.folder / "broker.log").open("ab") as log:
            self.process = subprocess.Popen([*self._java("kafka.Kafka"), str(settings)], stdout=log, stderr=log)
        self._wait()

    def kill(self) -> None:
        """End it as a power cut would."""
        if self.process and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait(30)

    def _wait(self) -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            assert self.process is not None
            assert self.process.poll() is None, (self.folder / "broker.log").read_text()[-3000:]
            try:
                AdminClient(self.config).list_topics(timeout=2)
            except KafkaException:
                continue
            return
        raise AssertionError((self.folder / "broker.log").read_text()[-3000:])

    def _java(self, main: str) -> list[str]:
        found = javas.find(os.environ)
        logging = f"-Dlog4j2.configurationFile=file:{self.folder / 'log4j2.properties'}"
        quick = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return [str(found), *quick, logging, "-cp", f"{JARS / 'kafka'}/*", main]

    def _properties(self) -> Mapping[str, object]:
        protocol = "SASL_SSL" if self.secure else "PLAINTEXT"
        here = f"{HOST}:{self.port}"
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{HOST}:{self.controller}",
            "listeners": f"CLIENT://{here},CONTROLLER://{HOST}:{self.controller}",
            "advertised.listeners": f"CLIENT://{here}",
            "listener.security.protocol.map": f"CLIENT:{protocol},CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "CLIENT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.folder / "data",
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            "log.cleaner.backoff.ms": 100,
            "log.cleaner.dedupe.buffer.size": 4 * 2**20,
            **(self._security() if self.secure else {}),
        }

    def _security(self) -> Mapping[str, object]:
        _, keys = certificates(self.folder)
        login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
        return {
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
            "listener.name.client.scram-sha-256.sasl.jaas.config": f'{login} username="{USER}" password="{PASSWORD}";',
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": keys,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{USER};User:ANONYMOUS",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.folder / "ca.pem",
        }
