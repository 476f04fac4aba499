"""The one error of the local stack: a line for people, made at the place that knows the cause."""

import errno

_OUT_OF_SPACE = {errno.ENOSPC, errno.EDQUOT}
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}


class StackError(Exception):
    """What went wrong, where, and what to type; `details` (a log's last lines) follow below it."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details

    def __str__(self) -> str:
        return f"{self.args[0]}\n{self.details}" if self.details else str(self.args[0])


def from_os_error(error: OSError) -> StackError:
    """Say what an operating system error means for the person at the keyboard."""
    where = error.filename or "a file of the stack"
    if error.errno in _OUT_OF_SPACE:
        return StackError(f"No disk space left while writing {where}. Free some space, then run the command again.")
    if error.errno in _NOT_ALLOWED:
        return StackError(
            f"No permission to write {where}. Give yourself write access to it, then run the command again."
        )
    return StackError(f"{where}: {error.strerror or error}")
