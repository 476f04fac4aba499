"""A forget in one process, each of its commits and deletes a door of its own."""

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
        from headrace import forgotten
        from headrace.airflow import forgetting
        from headrace.stages import forget, publish, purge

        for module, name in ((forgotten, "hold"), (publish, "switch"), (forget, "replace"), (purge, "delete")):
            setattr(module, name, doors.around(f"forget.{name}", getattr(module, name)))
        done = forgetting.forget(feeds.parse(*self.feed), self.keys, by="test")
        return int(done is not None and done.is_whole)
