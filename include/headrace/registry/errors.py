"""What the registry refuses: Confluent's codes in one enum, and Confluent's texts for them."""

from enum import IntEnum

from headrace.errors import HeadraceError


class Code(IntEnum):
    """Confluent's error codes, and one of our own; the first three digits are the HTTP status."""

    SUBJECT_NOT_FOUND = 40401
    VERSION_NOT_FOUND = 40402
    SCHEMA_NOT_FOUND = 40403
    SUBJECT_SOFT_DELETED = 40404
    SUBJECT_NOT_SOFT_DELETED = 40405
    VERSION_SOFT_DELETED = 40406
    VERSION_NOT_SOFT_DELETED = 40407
    CONFIG_NOT_SET = 40408
    MODE_NOT_SET = 40409
    # Ours: Confluent's registry knows no feeds.
    FEED_NOT_FOUND = 40480
    INCOMPATIBLE_SCHEMA = 40901
    INVALID_SCHEMA = 42201
    INVALID_VERSION = 42202
    INVALID_COMPATIBILITY = 42203
    INVALID_MODE = 42204
    NOT_PERMITTED = 42205
    REFERENCE_EXISTS = 42206
    INVALID_SUBJECT = 42208
    INVALID_RULE_SET = 42210
    CONTEXT_NOT_EMPTY = 42211
    STORE_FAILED = 50001
    TIMED_OUT = 50002

    @property
    def status(self) -> int:
        return self // 100


class RegistryFault(HeadraceError):
    """A request that the registry refuses, with Confluent's code and text."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def subject_not_found(subject: str) -> RegistryFault:
    return RegistryFault(Code.SUBJECT_NOT_FOUND, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> RegistryFault:
    return RegistryFault(Code.VERSION_NOT_FOUND, f"Version {version} not found.")


def schema_not_found(id_: int | str | None = None) -> RegistryFault:
    return RegistryFault(Code.SCHEMA_NOT_FOUND, "Schema not found" if id_ is None else f"Schema {id_} not found")


# The missing space after the full stop is Confluent's own.
def subject_soft_deleted(subject: str) -> RegistryFault:
    text = f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"
    return RegistryFault(Code.SUBJECT_SOFT_DELETED, text)


def subject_not_soft_deleted(subject: str) -> RegistryFault:
    text = f"Subject '{subject}' was not deleted first before being permanently deleted"
    return RegistryFault(Code.SUBJECT_NOT_SOFT_DELETED, text)


def version_soft_deleted(subject: str, version: int) -> RegistryFault:
    text = f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently"
    return RegistryFault(Code.VERSION_SOFT_DELETED, text)


def version_not_soft_deleted(subject: str, version: int) -> RegistryFault:
    text = f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    return RegistryFault(Code.VERSION_NOT_SOFT_DELETED, text)


def config_not_set(subject: str) -> RegistryFault:
    text = f"Subject '{subject}' does not have subject-level compatibility configured"
    return RegistryFault(Code.CONFIG_NOT_SET, text)


def mode_not_set(subject: str) -> RegistryFault:
    return RegistryFault(Code.MODE_NOT_SET, f"Subject '{subject}' does not have subject-level mode configured")


def invalid_subject(subject: str) -> RegistryFault:
    return RegistryFault(Code.INVALID_SUBJECT, f"The specified subject '{subject}' is not a valid.")


def invalid_version(version: str) -> RegistryFault:
    text = (
        f"The specified version '{version}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"'
    )
    return RegistryFault(Code.INVALID_VERSION, text)


def invalid_schema(why: str) -> RegistryFault:
    return RegistryFault(Code.INVALID_SCHEMA, why)


def reference_exists(subject: str, version: int) -> RegistryFault:
    key = f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
    return RegistryFault(Code.REFERENCE_EXISTS, f"One or more references exist to the schema {key}.")


def not_permitted(why: str) -> RegistryFault:
    return RegistryFault(Code.NOT_PERMITTED, why)


def context_not_empty(context: str) -> RegistryFault:
    return RegistryFault(Code.CONTEXT_NOT_EMPTY, f"The specified context '{context}' is not empty.")
