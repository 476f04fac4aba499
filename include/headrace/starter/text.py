"""JSON as people write it: what fits on a line stands on one."""

import json
from typing import Any

WIDTH = 118


def pretty(value: Any) -> str:
    """The whole file, its outermost object opened up."""
    return _laid_out(value, before=0, depth=0) + "\n"


def _laid_out(value: Any, *, before: int, depth: int) -> str:
    """The value on one line if that is short enough after what stands before it, else one part per line."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or (before + len(flat) <= WIDTH and not _listed(value, depth)):
        return flat
    inner, outer = "  " * (depth + 1), "  " * depth
    if isinstance(value, dict):
        names = {key: f"{json.dumps(key, ensure_ascii=False)}: " for key in value}
        parts = [
            name + _laid_out(value[key], before=len(inner) + len(name), depth=depth + 1) for key, name in names.items()
        ]
    else:
        parts = [_laid_out(each, before=len(inner), depth=depth + 1) for each in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + "\n" + ",\n".join(inner + part for part in parts) + "\n" + outer + closing


def _listed(value: Any, depth: int) -> bool:
    """Whether it is the file itself or the list of its fields, which stand one below the other however short."""
    parts = value.values() if isinstance(value, dict) else value
    return depth == 0 or (depth == 1 and all(isinstance(part, dict) for part in parts))
