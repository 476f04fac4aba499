"""The part of Redshift's SQL that we use, transcribed from the syntax in Amazon Redshift's Database Developer Guide.

Every statement has to be one of these forms as a whole, and has to be parsed by sqlglot in its Redshift dialect. What
is looser here than in the guide is an expression; what the guide allows and we never write is left out.
"""

import re

from sqlglot import ErrorLevel, exp, parse

NAME = r'(?:"(?:[^"]|"")+"|[a-z_][a-z0-9_]*)'
TABLE = rf"{NAME}(?:\.{NAME})?"
COLUMN = rf"{NAME}(?:\.{NAME})*"
TEXT = r"'(?:[^'\\]|''|\\.)*'"
NAMES = rf"{NAME}(?:, {NAME})*"
COLUMNS = rf"{COLUMN}(?:, {COLUMN})*"
TYPE = (
    r"(?:boolean|integer|bigint|real|double precision|decimal\(\d+, \d+\)|varchar\(\d+\)|char\(\d+\)|date|time|"
    r"timestamp|timestamptz|super|varbyte\(\d+\))"
)
DEFINED = rf"{NAME} {TYPE}(?: not null)?"
LAID_OUT = rf"diststyle (?:auto|even|all|key distkey \({NAME}\))(?: sortkey \({NAMES}\))?"
ROLE = rf"iam_role (?:default|{TEXT})"
EQUAL = rf"{COLUMN} = {COLUMN}"

FORMS = {
    # r_CREATE_SCHEMA, r_CREATE_TABLE_NEW, r_CREATE_VIEW
    "create schema": rf"create schema(?: if not exists)? {NAME}",
    "create table": rf"create (?:temporary )?table(?: if not exists)? {TABLE} "
    rf"\({DEFINED}(?:, {DEFINED})*(?:, primary key \({NAMES}\))?\)(?: {LAID_OUT})?",
    "create view": rf"create or replace view {TABLE} as select .+",
    # r_ALTER_TABLE: one column at a time, and no change of a type
    "rename column": rf"alter table {TABLE} rename column {NAME} to {NAME}",
    "rename table": rf"alter table {TABLE} rename to {NAME}",
    "add column": rf"alter table {TABLE} add column {NAME} {TYPE}",
    "drop table": rf"drop table(?: if exists)? {TABLE}(?: cascade)?",
    # r_COMMENT: tables, columns, constraints, databases and views
    "comment": rf"comment on (?:table {TABLE}|view {TABLE}|column {COLUMN}) is {TEXT}",
    # r_GRANT
    "grant usage": rf"grant usage on schema {NAME} to role {NAME}",
    "grant select": rf"grant select on {TABLE} to role {NAME}",
    # r_REVOKE
    "revoke usage": rf"revoke usage on schema {NAME} from role {NAME}",
    "revoke select": rf"revoke select on {TABLE} from role {NAME}",
    # r_LOCK, r_SET, r_RESET
    "lock": rf"lock table {TABLE}",
    "set": r"set (?:statement_timeout to \d+|enable_case_sensitive_identifier to true)",
    "reset": r"reset statement_timeout",
    # r_COPY, with only what copy-usage_notes-copy-from-columnar allows: no REGION, no MAXERROR
    "copy": rf"copy {TABLE} from 's3://[^']+' {ROLE} format as parquet manifest",
    # r_UNLOAD
    "unload": rf"unload \({TEXT}\) to 's3://[^']+' {ROLE} format as parquet maxfilesize \d+ mb"
    rf"(?: kms_key_id {TEXT} encrypted)?",
    # r_MERGE: no alias of the target, a table as source, both branches, no names of tables before columns that are set
    "merge": rf"merge into {TABLE} using {TABLE} on {EQUAL}(?: and {EQUAL})* "
    rf"when matched then update set {NAME} = {COLUMN}(?:, {NAME} = {COLUMN})* "
    rf"when not matched then insert \({NAMES}\) values \({COLUMNS}\)",
    # r_DELETE, r_UPDATE, r_INSERT_30
    "delete": rf"delete from {TABLE}(?: using {TABLE})? where .+",
    "update": rf"update {TABLE} set {NAME} = null where .+",
    "insert": rf"insert into {TABLE} \({NAMES}\) (?:values \(.+\)|select .+ from {TABLE})",
    "select": r"select .+",
    # r_VACUUM_command
    "vacuum": rf"vacuum delete only {TABLE} to 100 percent",
}
ABSENT = (
    "on conflict", "for update", "returning", "jsonb", "bytea", "is distinct from", "filter (", "on commit",
    "truncate", "to_regclass", "now()", "create index", "alter column", "array_position", "current_timestamp",
)  # fmt: skip
"""What Postgres has and Redshift does not, or what would end the transaction there."""


def form(statement: str) -> str:
    """Which form a statement has; raises where it is none that Redshift is documented to take."""
    text = " ".join(statement.split()).replace("( ", "(").replace(" )", ")")
    for absent in ABSENT:
        assert absent not in _bare(text), f"Redshift has no {absent}: {text}"
    found = [name for name, pattern in FORMS.items() if re.fullmatch(pattern, text)]
    assert len(found) == 1, f"{found or 'no form'}: {text}"
    _parse(text, found[0])
    return found[0]


def _parse(text: str, name: str) -> None:
    if name == "unload":  # sqlglot takes it for a command as a whole; what it holds is a query
        assert form(unquoted(re.fullmatch(rf"unload \(({TEXT})\).+", text)[1])) == "select"  # type: ignore[index]
        return
    if name in ("lock", "reset", "comment", "vacuum"):
        return
    (parsed,) = parse(text.replace("%s", "0"), dialect="redshift", error_level=ErrorLevel.RAISE)
    assert parsed is not None
    assert not isinstance(parsed, exp.Command), f"not parsed: {text}"


def unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'").replace("\\\\", "\\")


def _bare(text: str) -> str:
    """A statement without its texts."""
    return re.sub(TEXT, "''", text).lower()
