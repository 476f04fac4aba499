"""A whole run in one process, from the topic to readers, each stage a door of its own."""

from dataclasses import dataclass, replace

from interception import Interception, note
from nursery import errand
from workshop import Workshop

STAGES = ("extract", "transform", "check", "publish")


@dataclass(frozen=True)
class WholeRun:
    """All stages of one run, by its id; once more is the same."""

    shop: Workshop
    run: str
    checks: bool = True

    def sent(self) -> "WholeRun":
        """As it can be sent to another process."""
        return replace(self, shop=replace(self.shop, lake=errand(self.shop).lake))

    def __call__(self, doors: Interception) -> int:
        records = doors.around("stage.extract", self.shop.extract)().records
        merged = doors.around("stage.transform", self.shop.transform)(self.run)
        if merged and self.checks:
            doors.around("stage.check", self.shop.check)(self.run)
        doors.around("stage.publish", self.shop.publish_run)(self.run)
        return int(records)

    def go(self) -> None:
        """Do it in this process, which nobody watches."""
        self(Interception(note))
