"""A Postgres database and how to reach it."""

from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

OPTIONS = ("sslmode", "sslrootcert", "sslcert", "sslkey")
"""What a connection may say of TLS, in words that libpq and Java's driver share."""


@dataclass(frozen=True)
class Database:
    """Host, port, name and credentials; the password is kept out of `repr` and so out of logs."""

    host: str
    port: int
    name: str
    user: str
    password: str = field(repr=False)
    options: tuple[tuple[str, str], ...] = ()
    """Names of OPTIONS, and their values."""

    def url(self, scheme: str = "postgresql", **more: object) -> str:
        credentials = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        asked = urlencode({**dict(self.options), **more}, quote_via=quote)
        return f"{scheme}://{credentials}@{self.host}:{self.port}/{self.name}{'?' if asked else ''}{asked}"
