"""Rules: what a declaration may say about the fields of its schema; each rule is pure and tells every fault it finds.

Paths are relative to the declaration, and the file is left open: who reads the file knows both.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from headrace import layout
from headrace.declaration import ROW_FORMS, Check, Declaration, Mask, Sharing
from headrace.fault import Fault, nearest
from headrace.field import Field, Kind
from headrace.values import unfit

Fields = Mapping[str, Field]
Rule = Callable[[Declaration, Fields], Iterator[Fault]]

TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
STREAM = re.compile(r"[A-Za-z0-9._-]{1,128}")
DEFAULT_SCHEDULE = Declaration.model_fields["schedule"].default
PRESETS = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
MAIL = re.compile(r"[^@\s]+@[^@\s]+")
# Java, which runs the expression, knows these classes and Python does not.
JAVA_CLASS = re.compile(r"\\[pP](\{\w+\}|\w)")
JAVA_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")

EXACT: tuple[Kind, ...] = ("boolean", "integer", "decimal", "string", "uuid", "bytes", "date", "time", "timestamp")
SCALAR: tuple[Kind, ...] = (*EXACT, "float")
MOMENTS: tuple[Kind, ...] = ("date", "timestamp")
NUMBERS: tuple[Kind, ...] = ("integer", "decimal", "float")
MASKED: Mapping[Mask, tuple[Sequence[Kind] | None, str]] = {
    "hash": (None, ""),
    "last4": (("string", "integer"), "only a text or a whole number has last four characters"),
    "year": (MOMENTS, "only a date or a timestamp has a year"),
    "null": (None, ""),
}


def faults(declared: Declaration, fields: Fields) -> Iterator[Fault]:
    """Everything that the rules find."""
    for rule in RULES:
        yield from rule(declared, fields)


def _fault(path: str, message: str, fix: str = "", *, value: object = None) -> Fault:
    return Fault("", path, message, fix, value)


@dataclass(frozen=True)
class Use:
    """A field that is named somewhere, and the kinds that it may have there."""

    path: str
    name: str
    kinds: Sequence[Kind] | None = None
    needs: str = ""


def uses(declared: Declaration) -> Iterator[Use]:
    """Every field that a declaration names, with what is asked of it there."""
    yield from (Use("key", name, EXACT, "a key needs an exact, single value") for name in declared.key)
    yield from (Use("order", name, SCALAR, "an order needs values that can be compared") for name in declared.order)
    yield from (Use("sort", name, SCALAR, "rows are sorted by single values") for name in declared.sort)
    yield from (Use("correctness.sum", name, NUMBERS, "a sum needs numbers") for name in declared.correctness.sum)
    if delete := declared.delete:
        yield Use("delete.field", delete.field, SCALAR, "a delete needs a single value")
    if partition := declared.partition:
        yield Use("partition.field", partition.field, MOMENTS, "a partition needs a date or a timestamp")
    if drains := declared.topic.drains:
        yield from (Use("topic.drains.fields", name) for name in drains.fields)
    for number, check in enumerate(declared.checks):
        if check.column:
            yield Use(f"checks.{number}.column", check.column, *_checked(check))
        for name in check.unique if isinstance(check.unique, list) else ():
            yield Use(f"checks.{number}.unique", name, SCALAR, "this check needs single values")
    for warehouse, share in declared.warehouses.items():
        path = f"warehouses.{warehouse}"
        yield from (Use(f"{path}.keep", name) for name in share.keep)
        yield from (Use(f"{path}.drop", name) for name in share.drop)
        yield from (Use(f"{path}.mask", name, *MASKED[mask]) for name, mask in share.mask.items())
        yield from (Use(f"{path}.flatten", name, ("struct",), "only a record has fields") for name in share.flatten)


def _checked(check: Check) -> tuple[Sequence[Kind] | None, str]:
    """The kinds that a check's column may have."""
    if check.between is not None:
        return (*NUMBERS, *MOMENTS), "between needs numbers, dates or timestamps"
    if check.length is not None:
        return ("string",), "length needs a text"
    return (None, "") if check.not_null or check.expect else (SCALAR, "this check needs a single value")


def named_fields(declared: Declaration, fields: Fields) -> Iterator[Fault]:
    for use in dict.fromkeys(uses(declared)):
        field = fields.get(use.name)
        if field is None:
            message = f'names "{use.name}", which is not a field.'
            yield _fault(use.path, message, nearest(use.name, list(fields)), value=use.name)
        elif use.kinds and field.kind not in (*use.kinds, "unknown"):
            yield _fault(use.path, f'names "{use.name}", a field of kind {field.kind}; {use.needs}.', value=use.name)


def owner(declared: Declaration, fields: Fields) -> Iterator[Fault]:
    if not declared.owner.strip():
        yield _fault("owner", "is empty.", "Name the team that answers for the feed.", value=declared.owner)


def repeated_names(declared: Declaration, fields: Fields) -> Iterator[Fault]:
    lists = {
        "key": declared.key,
        "order": declared.order,
        "sort": declared.sort,
        "correctness.sum": declared.correctness.sum,
    }
    for path, names in lists.items():
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield _fault(path, f'names "{name}" more than once.', value=name)


def merge(declared: Declaration, fields: Fields) -> Iterator[Fault]:
    if declared.merge == "patch" and declared.topic.drains:
        message = "does not go with patch: a row's fields would come from two topics without an order between them."
        yield _fault("topic.drains", message, "Import the old topic's records instead: headrace import.")
    if declared.merge != "append":
        return
    if declared.order:
        yield _fault("order", "does not go with append, which keeps the first record of a key.", "Leave order out.")
    if declared.delete:
        yield _fault("delete", "does not go with append, which has no deletes.", 'Leave it out, or merge by "latest".')


def delete(declared: Declaration, fields: Fields) -> Iterator[Fault]:
    wanted = declared.delete
    field = fields.get(wanted.field) if wanted else None
    if not wanted or not field or field.kind not in SCALAR:
        return
    if "one_of" not in wanted.model_fields_set and field.kind != "boolean":
        message = f'is missing: "{wanted.field}" is of kind {field.kind}, and only a boolean deletes by being true.'
        yield _fault("delete.one_of", message, "Name the values that delete.")
        return
    for value in wanted.one_of:
        if reason := unfit(value, field):
            yield _fault("delete.one_of", *reason, value=value)


def partition(declared: Declaration, fields: Fields) -> Iterator[Fault]:
    wanted = declared.partition
    if wanted and wanted.by == "hour" and wanted.field in fields and fields[wanted.field].kind == "date":
        yield _fault("partition.by", f'is "hour", but "{wanted.field}" is a date.', 'Use "day".', value="hour")


def partition_name(declared: Declaration, fields: Fields) -> Iterator[Fault]:
    """The clean table calls the partition by its field and width, and Iceberg takes no two things of one name."""
    wanted = declared.partition
    if wanted and (name := f"{wanted.field}_{wanted.by}") in fields:
        message = f'makes a partition that is called "{name}", and so is a field.'
        yield _fault("partition", message, "Rename the field, or choose another partition.", value=name)


def topic(declared: Declaration, fields: Fields) -> Iterator[Fault]:
    drains = declared.topic.drains
    names = {"topic.name": declared.topic.name, "topic.drains.topic": drains.topic if drains else None}
    for path, name in names.items():
        if name is not None and not TOPIC.fullmatch(name):
            message = f'is "{name}"; a topic has letters, digits, ".", "_" and "-", at most 249, in its name.'
            yield _fault(path, message, value=name)


def stream(declared: Declaration, fields: Fields) -> Iterator[Fault]:
    wanted = declared.kinesis
    if wanted is None:
        return
    if "topic" in declared.model_fields_set:
        fix = "Leave topic out: a stream's shards and retention are set in AWS."
        yield _fault("topic", "does not go with kinesis, from which this feed reads instead.", fix)
    if declared.extract.spark_from is not None:
        message = "does not go with kinesis, whose shards are always read in the task."
        yield _fault("extract.spark_from", message, "Leave it out.", value=declared.extract.spark_from)
    if wanted.stream is not None and not STREAM.fullmatch(wanted.stream):
        message = f'is "{wanted.stream}"; a stream has letters, digits, ".", "_" and "-", at most 128, in its name.'
        yield _fault("kinesis.stream", message, value=wanted.stream)


def schedule(declared: Declaration, fields: Fields) -> Iterator[Fault]:
    wanted = declared.schedule
    # What reads cron is slow to import, and the schedule that most feeds have is known to be good.
    if wanted not in (*PRESETS, DEFAULT_SCHEDULE) and (reason := _unreachable(wanted)):
        fix = 'Write five fields, such as "*/5 * * * *", or one of ' + ", ".join(PRESETS) + "."
        yield _fault("schedule", f'is "{wanted}", {reason}.', fix, value=wanted)


def _unreachable(schedule: str) -> str | None:
    """Why a cron expression never runs anything."""
    from croniter import CroniterBadDateError, croniter

    # A sixth field would be seconds, last for one reader and first for another.
    if len(schedule.split()) != 5 or not croniter.is_valid(schedule):
        return "which is not a cron expression"
    if any(part.upper().startswith("R") for part in schedule.split()):
        return "which is another time whenever it is read"
    try:
        croniter(schedule, datetime(2026, 1, 1, tzinfo=UTC)).get_next()
    except CroniterBadDateError:
        return "a date that never comes"
    return None


def checks(declared: Declaration, fields: Fields) -> Iterator[Fault]:
    for number, check in enumerate(declared.checks):
        path, field = f"checks.{number}", fields.get(check.column or "")
        for form, values in (("between", check.between), ("one_of", check.one_of)):
            for value in values or ():
                if field and (reason := unfit(value, field)):
                    yield _fault(f"{path}.{form}", *reason, value=value)
        if check.between and _backwards(*check.between, kind=field.kind if field else "unknown"):
            fix = "Write the smaller value first."
            yield _fault(f"{path}.between", "has its larger value first.", fix, value=list(check.between))
        for form, span in (("length", check.length), ("row_count", check.row_count)):
            if span == (None, None):
                yield _fault(f"{path}.{form}", "has no limit.", "Give one, or leave the check out.", value=list(span))
            elif span and _backwards(*span):
                fix = "Write the smaller number first."
                yield _fault(f"{path}.{form}", "has its larger number first.", fix, value=list(span))
        if isinstance(check.unique, list) and len(set(check.unique)) < len(check.unique):
            yield _fault(f"{path}.unique", "names a field more than once.", value=check.unique)
        if check.severity == "quarantine" and check.mostly is not None:
            message = "does not go with quarantine, which judges each record alone."
            yield _fault(f"{path}.mostly", message, "Leave it out.", value=check.mostly)
        if check.matches is not None and (broken := _broken(check.matches)):
            yield _fault(f"{path}.matches", f"is not a regular expression: {broken}.", value=check.matches)


def _backwards(low: object, high: object, *, kind: Kind = "unknown") -> bool:
    if kind == "decimal":  # may be given as texts, which would be compared letter by letter
        try:
            return Decimal(str(low)) > Decimal(str(high))
        except InvalidOperation:  # the field cannot hold one of them, which is told already
            return False
    number = (int, float)
    if (isinstance(low, number) and isinstance(high, number)) or (isinstance(low, str) and isinstance(high, str)):
        return low > high  # type: ignore[operator]
    return False


def _broken(pattern: str) -> str | None:
    """Why Java, which runs the expression, would not take it, as far as Python can tell."""
    if "(?P" in pattern:
        return "(?P is Python's; Java writes a named group as (?<name>…)"
    try:
        re.compile(JAVA_GROUP.sub("(?P<", JAVA_CLASS.sub(r"\\w", pattern)))
    except re.error as error:
        return str(error)
    return None


def warehouses(declared: Declaration, fields: Fields) -> Iterator[Fault]:
    for name, share in declared.warehouses.items():
        path = f"warehouses.{name}"
        if not layout.is_warehouse(name):
            message = (
                "is no name of a warehouse, which has lower-case letters, digits and _, at most 48, first a letter, "
                f"and is none of {', '.join(layout.STORES)}."
            )
            yield _fault(path, message, value=name)
        for field in sorted(set(share.drop) & {*share.mask, *share.keep}):
            yield _fault(path, f'drops "{field}" and also keeps or masks it.', "Choose one.", value=field)
        for field in sorted(set(share.keep) & set(share.mask)):
            yield _fault(path, f'keeps "{field}" as it is and also masks it.', "Choose one.", value=field)
        for field in sorted(set(share.flatten) & {*share.mask, *share.drop}):
            yield _fault(path, f'flattens "{field}" and also masks or drops it.', "Choose one.", value=field)
        yield from _named_columns(f"{path}.index", {name for index in share.index for name in index}, share, fields)
        if (column := share.distribute) is not None:
            yield from _named_columns(f"{path}.distribute", {column}, share, fields)
            if column in share.drop or (column in fields and fields[column].kind not in (*SCALAR, "unknown")):
                message = f'names "{column}", which is dropped or has no single value there.'
                yield _fault(f"{path}.distribute", message, "Name another column.", value=column)


def _named_columns(path: str, columns: Collection[str], share: Sharing, fields: Fields) -> Iterator[Fault]:
    """Columns that are neither a field nor part of a flattened one."""
    for column in sorted(columns):
        inside = any(column.startswith(f"{field}_") for field in share.flatten)
        if column not in fields and not inside:
            yield _fault(path, f'names "{column}", which is not a field.', nearest(column, list(fields)), value=column)


def keys_in_warehouses(declared: Declaration, fields: Fields) -> Iterator[Fault]:
    """A key goes to every warehouse, as it is or hashed: rows are merged and compared by it."""
    for name, share in declared.warehouses.items():
        for key in dict.fromkeys(declared.key):
            path, hashed = f"warehouses.{name}", f'"mask": {{"{key}": "hash"}}'
            if key in share.drop:
                message = f'names "{key}", which is part of the key, and every warehouse needs that.'
                yield _fault(f"{path}.drop", message, f"Hash it instead: {hashed}.", value=key)
            elif share.mask.get(key, "hash") != "hash":
                message = f'is "{share.mask[key]}", but "{key}" is part of the key, and rows would fall together.'
                yield _fault(f"{path}.mask.{key}", message, f"Hash it instead: {hashed}.", value=share.mask[key])
            elif key in fields and fields[key].pii and key not in {*share.keep, *share.mask, *share.drop}:
                message = f'does not say what becomes of "{key}", which is part of the key and personal.'
                yield _fault(path, message, f'Name it in "keep", or hash it: {hashed}.', value=key)


def alerts(declared: Declaration, fields: Fields) -> Iterator[Fault]:
    for address in declared.alerts.to:
        if not MAIL.fullmatch(address):
            yield _fault("alerts.to", f'names "{address}", which is not a mail address.', value=address)


def quarantining(declared: Declaration, fields: Fields) -> Iterator[Fault]:
    """A record is rejected before it is merged, when no other row is known: only for what it says itself."""
    for number, check in enumerate(declared.checks):
        if check.severity == "quarantine" and not any(getattr(check, form) is not None for form in ROW_FORMS):
            message = f'is "quarantine", which goes with {", ".join(ROW_FORMS)}: they judge one record alone.'
            yield _fault(f"checks.{number}.severity", message, 'Use "stop" or "warn".', value="quarantine")


def job(declared: Declaration, fields: Fields) -> Iterator[Fault]:
    """What a job gives is the state of now: whatever it gave before is superseded, by the place in the topic."""
    if declared.job is None:
        return
    if declared.merge != "latest":
        yield _fault(
            "merge", f'is "{declared.merge}", but each row of a job takes the last one\'s place.', "Leave it out."
        )
    if declared.order:
        fix = "Leave it out: the row that was computed last counts."
        yield _fault("order", "is not for a feed that a job makes.", fix, value=declared.order)
    if declared.kinesis:
        yield _fault("kinesis", "is not for a feed that a job makes: its records go to a topic.", "Leave it out.")


RULES: tuple[Rule, ...] = (
    owner,
    named_fields,
    repeated_names,
    merge,
    delete,
    partition,
    partition_name,
    topic,
    stream,
    job,
    schedule,
    checks,
    warehouses,
    keys_in_warehouses,
    alerts,
    quarantining,
)
