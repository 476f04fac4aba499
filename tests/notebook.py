"""A notebook run cell by cell, with the outputs that Jupyter would show: of Jupyter itself nothing is needed for that.

`WRITE_NOTEBOOK=1 pytest tests/integration/test_read_pages.py` writes them into the notebook.
"""

import ast
import base64
import contextlib
import io
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Cell = dict[str, Any]


def load(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def save(path: Path, notebook: dict[str, Any]) -> None:
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with its code run in order, in one namespace."""
    import matplotlib

    matplotlib.use("agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    numbers = itertools.count(1)
    return {**notebook, "cells": [_ran(cell, names, numbers) for cell in notebook["cells"]]}


def _ran(cell: Cell, names: dict[str, Any], numbers: Iterator[int]) -> Cell:
    if cell["cell_type"] != "code":
        return cell
    number = next(numbers)
    return {**cell, "execution_count": number, "outputs": _outputs(cell, names, number)}


def _outputs(cell: Cell, names: dict[str, Any], number: int) -> list[Cell]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        value = _value("".join(cell["source"]), names)
    streams = [{"output_type": "stream", "name": "stdout", "text": _lines(said.getvalue())}] if said.getvalue() else []
    return [*streams, *_figures(), *([_result(value, number)] if value is not None else [])]


def _value(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; what its last line is worth, if that is an expression."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None


def _result(value: Any, number: int) -> Cell:
    data = {"text/plain": _lines(repr(value))}
    if hasattr(value, "_repr_html_"):
        data = {"text/html": _lines(value._repr_html_()), **data}
    return {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data}


def _figures() -> list[Cell]:
    """What was plotted, as plt.show() shows it in a notebook."""
    from matplotlib import pyplot

    shown = []
    for figure in map(pyplot.figure, pyplot.get_fignums()):
        png = io.BytesIO()
        figure.savefig(png, format="png", dpi=72, metadata={"Software": None})
        data = {"image/png": base64.b64encode(png.getvalue()).decode(), "text/plain": [repr(figure)]}
        shown.append({"output_type": "display_data", "metadata": {}, "data": data})
    pyplot.close("all")
    return shown


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
