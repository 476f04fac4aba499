"""Where a Confluent-compatible registry answers, ours or an outside one, and how to sign in there."""

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx


@dataclass(frozen=True)
class Address:
    """One URL, or several with commas between, and credentials, which stay out of `repr` and so out of logs."""

    url: str
    login: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    timeout: float = 30
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Settings of Confluent's client under their own names, such as `bearer.auth.logical.cluster`."""

    @property
    def shown(self) -> str:
        """The URL as errors may tell it: some have a name and a password in them."""
        return re.sub(r"//[^/,]*@", "//", self.url)

    def config(self) -> dict[str, Any]:
        """The settings of Confluent's own client."""
        files = {
            "ssl.ca.location": self.ca_file if self.verify else False,
            "ssl.certificate.location": self.certificate_file,
            "ssl.key.location": self.key_file,
        }
        given = {name: value for name, value in files.items() if value is not None}
        return {"url": self.url, "timeout": self.timeout, **given, **self._credentials(), **self.more}

    def _credentials(self) -> dict[str, str]:
        if self.token:
            # The client insists on naming a cluster, which only Confluent Cloud reads.
            return {
                "bearer.auth.credentials.source": "STATIC_TOKEN",
                "bearer.auth.token": self.token,
                "bearer.auth.logical.cluster": "",
            }
        return {"basic.auth.user.info": f"{self.login}:{self.password or ''}"} if self.login else {}

    def client(self) -> httpx.Client:
        """A plain client, for what Confluent's does not know."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        auth = (self.login, self.password or "") if self.login and not self.token else None
        base = self.url.split(",")[0].strip()
        return httpx.Client(base_url=base, headers=headers, auth=auth, verify=self._tls(), timeout=self.timeout)

    def _tls(self) -> ssl.SSLContext | bool:
        if not self.verify:
            return False
        context = ssl.create_default_context(cafile=self.ca_file)
        if self.certificate_file:
            context.load_cert_chain(self.certificate_file, self.key_file)
        return context
