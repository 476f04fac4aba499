"""A Postgres database and how to reach it."""

from dataclasses import dataclass, field
from urllib.parse import quote


@dataclass(frozen=True)
class Database:
    """Host, port, name and credentials; the password is kept out of `repr` and so out of logs."""

    host: str
    port: int
    name: str
    user: str
    password: str = field(repr=False)

    def url(self, scheme: str = "postgresql") -> str:
        credentials = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        return f"{scheme}://{credentials}@{self.host}:{self.port}/{self.name}"
