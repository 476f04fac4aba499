"""Java patterns: a JSON Schema's regular expression as Java, which runs the checks, reads the same; or none.

JSON Schema's patterns are ECMAScript's. Most mean the same to Java; what does not is rewritten here, and what cannot be
is given up: a check that nobody declared must not cry wolf.
"""

import re
from collections.abc import Iterator

TOKEN = re.compile(
    r"""
    (?P<escape>\\(?:u\{[0-9A-Fa-f]+\}|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|c[A-Za-z]|[pP]\{\w+(?:=\w+)?\}|k<\w+>|.))
  | (?P<quantifier>\{[0-9]+(?:,[0-9]*)?\})
  | (?P<group>\(\?(?::|=|!|<[A-Za-z]\w*>))
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
SAME = set("dDwWbBnrtf123456789")
"""Letters and digits that mean the same to both behind a backslash."""
REWRITTEN = {r"\v": r"\x0B", r"\-": r"\-"}
SPACES = r"\t\n\x0B\f\r \xA0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF"


def java_pattern(pattern: str) -> str | None:
    """The same pattern for Java; None where it has none that surely means the same."""
    try:
        return "".join(_translated(pattern))
    except ValueError:
        return None


def _translated(pattern: str) -> Iterator[str]:
    inside = first = False  # of a class, and at its very beginning: an empty one means nothing to Java
    for found in TOKEN.finditer(pattern):
        text, kind = found[0], found.lastgroup
        if kind == "escape":
            yield _escape(text, inside=inside)
        elif inside:
            if text == "]" and first:
                raise ValueError("an empty class")
            # Java has classes within classes, and intersections of them.
            yield "".join(rf"\{letter}" if letter in "[&" else letter for letter in text)
            inside = text != "]"
            first = first and text == "^"
            continue
        elif kind == "other" and text == "[":
            inside = first = True
            yield text
            continue
        elif kind == "other" and (text in "{}" or (text == "(" and pattern[found.end() : found.end() + 1] == "?")):
            raise ValueError("a brace that is none, or a group that only one of the two knows")
        else:
            # Java's own $ also matches before a line's end.
            yield r"\z" if text == "$" else text
        first = False
    if inside:
        raise ValueError("a class without an end")


def _escape(text: str, *, inside: bool) -> str:
    letter = text[1:2]
    if text in REWRITTEN:
        return REWRITTEN[text]
    if letter == "s":
        return SPACES if inside else f"[{SPACES}]"
    if letter == "S" and not inside:
        return f"[^{SPACES}]"
    if letter == "u" and text[2:3] == "{":
        return rf"\x{text[2:]}"
    if len(text) > 2 or not letter.isalnum():
        return text
    if letter in SAME and not (inside and letter in "bB123456789"):
        return text
    raise ValueError(f"{text} means something else to Java")
