"""Which changes a subject, a context or the whole registry takes."""

from enum import StrEnum

from headrace.registry.errors import Code, RegistryFault


class Mode(StrEnum):
    """Confluent's modes; in IMPORT a request brings ids and versions along."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"

    @property
    def is_readonly(self) -> bool:
        return self in (Mode.READONLY, Mode.READONLY_OVERRIDE)

    @property
    def brings_ids(self) -> bool:
        return self in (Mode.IMPORT, Mode.FORWARD)


def parse_mode(text: str, *, for_all: bool) -> Mode:
    """Read a mode; forwarding is one of the whole registry only."""
    if text.upper() not in Mode.__members__:
        valid = "Valid values are READWRITE, READONLY, IMPORT and FORWARD."
        raise RegistryFault(Code.INVALID_MODE, f"Invalid mode. {valid}")
    if text == Mode.FORWARD and not for_all:
        raise RegistryFault(Code.INVALID_MODE, "Forward mode only supported on global level")
    return Mode(text.upper())
