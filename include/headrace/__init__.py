"""Headrace turns a schema file into a running, checked, reconciled pipeline."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.airflow.reader import read

__all__ = ["__version__", "read"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`headrace.read`, imported when it is first asked for: DAG parsing must not pay for it."""
    if name == "read":
        from headrace.airflow.reader import read

        return read
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
