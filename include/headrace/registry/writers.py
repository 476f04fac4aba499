"""The schemas that a subject's records may have been written with, by everything that may name one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, eq=False)
class Writers(Mapping[int, str]):
    """Schemas by id, the oldest version first, each standing alone; deleted versions too."""

    texts: Mapping[int, str] = field(default_factory=dict)
    guids: Mapping[str, int] = field(default_factory=dict)
    """The ids by guid, in hex as a record's header holds it, in capitals."""
    versions: Mapping[int, int] = field(default_factory=dict)
    """The ids by version."""
    latest: int | None = None
    """The id of the last version that is not deleted."""

    def __getitem__(self, id_: int) -> str:
        return self.texts[id_]

    def __iter__(self) -> Iterator[int]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)
