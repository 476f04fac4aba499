"""The signals that ask a stack command to stop: Ctrl-C, a polite kill, and a closed terminal."""

import signal


class Interrupted(Exception):
    """A person or the system asked us to stop."""


def stopping() -> list[signal.Signals]:
    """Those that this process heeds: nohup has it ignore a closed terminal.

    SIGINT counts even where it was ignored before, as in a script's background job: who sends it means us.
    """
    hangup = [] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGINT, signal.SIGTERM, *hangup]


def raise_interrupted() -> None:
    """From now on let each of them raise Interrupted, wherever the program is."""
    for number in stopping():
        signal.signal(number, _interrupt)


def ignore() -> None:
    """From now on heed none of them: an orderly stop that is cut short leaves half of it running."""
    for number in stopping():
        signal.signal(number, signal.SIG_IGN)


def _interrupt(*_: object) -> None:
    raise Interrupted
