"""A version as a request names it: a number, or `latest`."""

from headrace.registry.errors import invalid_version

LATEST = -1
MOST = 2**31 - 1


def version_of(text: str) -> int:
    """Read a version; -1 is another word for the latest one."""
    if text.strip().lower() == "latest":
        return LATEST
    try:
        number = int(text)
    except ValueError as error:
        raise invalid_version(text) from error
    if number != LATEST and not 1 <= number <= MOST:
        raise invalid_version(text)
    return number
