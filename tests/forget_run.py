"""A forget in one process, each of its steps that changes something, and the proof, a door of its own."""

from dataclasses import dataclass

from interception import Interception


@dataclass(frozen=True)
class ForgetRun:
    """Forget some keys of a feed, which is told by its file's name and text."""

    feed: tuple[str, str]
    keys: tuple[str, ...]

    def __call__(self, doors: Interception) -> int:
        """Whether everything was done and proven."""
        from headrace import feed as feeds
        from headrace import forgotten, results
        from headrace.airflow import forgetting
        from headrace.stages import absence, forget, load, publish, purge

        for owner, name in (
            (forgotten, "hold"), (forget._Work, "quarantine"), (publish, "switch"), (results, "mend"),
            (forget, "replace"), (purge, "delete"), (load, "load"), (absence, "prove"),
        ):  # fmt: skip
            setattr(owner, name, doors.around(f"forget.{name}", getattr(owner, name)))
        done = forgetting.forget(feeds.parse(*self.feed), self.keys, by="test")
        return int(done is not None and done.is_whole)
