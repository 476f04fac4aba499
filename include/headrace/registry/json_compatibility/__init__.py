"""Compatibility of JSON Schemas: a table of rules by keyword, and the search that puts them together."""
