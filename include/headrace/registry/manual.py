"""The page at `/docs`: every route in one table, made here, so that a browser fetches nothing from elsewhere."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from starlette.responses import HTMLResponse

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em }}
table {{ border-collapse: collapse; width: 100% }}
td, th {{ border-bottom: 1px solid #ddd; padding: .3em .6em; text-align: left; vertical-align: top }}
</style></head><body><h1>{title}</h1><p>{description} <a href="openapi.json">As OpenAPI</a>.</p>
<table><tr><th>route</th><th>what it does</th><th>queries</th></tr>
{rows}
</table></body></html>"""


def manual(described: Mapping[str, Any]) -> HTMLResponse:
    """The page of an application, from its own description in OpenAPI."""
    told = {name: escape(described["info"][name]) for name in ("title", "description")}
    return HTMLResponse(PAGE.format(**told, rows="\n".join(_rows(described["paths"]))))


def _rows(paths: Mapping[str, Any]) -> Iterator[str]:
    for path, operations in paths.items():
        for method, operation in operations.items():
            queries = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
            cells = (f"<code>{method.upper()} {escape(path)}</code>", escape(operation["summary"]), ", ".join(queries))
            yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
