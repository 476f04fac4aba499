"""Sizes as people write them: a number of bytes, or `16 MiB`."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "MB": 10**6, "GB": 10**9}
PATTERN = rf"([1-9][0-9]{{0,8}}) ?({'|'.join(UNITS)})"


def parse(size: Any) -> int:
    """The bytes of a size."""
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    if isinstance(size, str) and (written := re.fullmatch(PATTERN, size)):
        return int(written[1]) * UNITS[written[2]]
    raise ValueError(f"a size is a number of bytes, or a number and a unit ({', '.join(UNITS)}), such as 16 MiB")


Size = Annotated[
    int,
    BeforeValidator(parse),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": f"^{PATTERN}$"}]}),
]
