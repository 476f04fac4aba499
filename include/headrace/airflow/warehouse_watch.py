"""A watch over the warehouses' files: which feeds have others to go to since it last looked."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from headrace import warehouse

Seen = tuple[int, int]
"""When a file was changed, and how long it is."""


@dataclass
class WarehouseWatch:
    """Remembers what each file said; a DAG processor that starts anew parses every DAG in any case."""

    folder: Path
    _seen: dict[str, Seen] | None = None
    _named: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def changed(self) -> frozenset[str]:
        """The feeds that files name which came, went or changed; nothing is read while no file has."""
        seen = dict(_states(self.folder))
        if seen == self._seen:
            return frozenset()
        before, first = self._named, self._seen is None
        declared, _ = warehouse.declared(self.folder)
        self._seen, self._named = seen, {name: frozenset(each.feeds) for name, each in declared.items()}
        if first:
            return frozenset()
        # The same feeds may be named with other columns, so a file that is there counts whatever it said before.
        return frozenset().union(*before.values(), *self._named.values())


def _states(folder: Path) -> Iterator[tuple[str, Seen]]:
    for path in warehouse.files(folder):
        with suppress(FileNotFoundError):
            state = path.stat()
            yield path.name, (state.st_mtime_ns, state.st_size)
