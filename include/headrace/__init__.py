"""Headrace turns a schema file into a running, checked, reconciled pipeline."""

__version__ = "0.1.0"
