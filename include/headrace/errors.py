"""Every error that Headrace raises, in one tree.

HeadraceError
├── FeedError            a feed file is wrong: mend the file
├── SettingsError        the environment lacks something: set it
│   └── ServiceRefused   Kafka, S3 or the catalog does not let us: mend the connection
├── ServiceAway          Kafka, S3 or the catalog does not answer              (a retry helps)
├── RegistryError        the schema registry does not know a schema yet        (a retry helps)
├── RegistryFault        the schema registry refuses a request: it has Confluent's code
├── InvalidSchema        a text is no schema of its type
├── TopicError           the topic is not what the archive remembers
│   ├── TopicSilent      records that are there cannot be had now             (a retry helps)
│   ├── Overtaken        the broker deleted what was planned: plan again      (a retry helps)
│   ├── TopicMissing     the broker has no such topic: register the feed      (a retry helps)
│   ├── TopicDamaged     records fail their checksum: let another replica lead (a retry helps)
│   └── RecordsLost      the broker deleted records before they were archived
├── MovedError           somebody else committed first: plan again             (a retry helps)
│   └── BranchMoved      a run's branch no longer fits: transform again
├── TurnTaken            somebody else works on the table: wait for the turn   (a retry helps)
├── SparkFailed          Spark did not bring a job to its end                  (a retry helps)
├── PlanExpired          a plan is older than a run may be: plan again         (a retry helps)
├── DeliveryError        records could not be published: it goes on later      (a retry helps)
│   ├── DeliveryRefused  the topic does not take a record: change the topic
│   └── DeliveryFenced   the same delivery was started somewhere else
├── SliceError           a slice of an archive is not told so that it can be found
├── ForgedError          a record's provenance is not signed with our key
├── HistoryError         history and a feed do not fit, or counts differ in the end
│   └── SourceSilent     a source of history does not answer                   (a retry helps)
├── HeadsError           a table has snapshots but no heads
├── UpkeepError          S3 did not delete what upkeep asked it to              (a retry helps)
├── ForeignTable         files of a table that the catalog does not know lie where upkeep would remove some
├── ReadError            what a reader asks for is not there: mend the call
│   └── PersonalRefused  a reader asks for personal columns that may not be read here
├── RebuildNeeded        the clean table was made by other rules: rebuild it, or put them back
├── RebuildRefused       a clean table made anew would lack rows, or cannot be made: say that it may, or put things back
├── JobError             a team's own job does not give what its feed declares: mend the job
├── QuarantineFull       more records are bad than the feed allows in one run
├── CheckError           a check stopped the run
├── BranchMissing        a clean table has no such branch: name one that is there
├── WarehouseError       a warehouse does not take what is loaded: mend what it says
│   ├── WarehouseBusy    somebody's lock is in the way                         (a retry helps)
│   └── TableRefused     a warehouse's table would lose values: say that it shall be made anew
└── ReconcileError       two stores disagree
    └── WarehouseBehind  a warehouse does not hold what it could be held against: load first

An error says what, where, the value it got and what to do. `retry` says whether the same call may succeed later.
"""

from collections.abc import Iterable

from headrace.fault import Fault


class HeadraceError(Exception):
    """The root: catch this at an edge (a task, a route, the command line) and nowhere else."""

    retry = False


class FeedError(HeadraceError):
    """A feed file is wrong; where its reader found them, each single fault is at hand."""

    def __init__(self, message: str, faults: Iterable[Fault] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)

    @classmethod
    def of(cls, faults: Iterable[Fault]) -> "FeedError":
        """One error for all faults, told one per line."""
        every = tuple(faults)
        return cls("\n".join(str(fault) for fault in every), every)


class SettingsError(HeadraceError):
    """The environment lacks a setting or a connection."""


class ServiceRefused(SettingsError):
    """Kafka, S3 or the catalog does not let us in, or do what we need."""


class ServiceAway(HeadraceError):
    """Kafka, S3 or the catalog does not answer."""

    retry = True


class RegistryError(HeadraceError):
    """The schema registry does not know a schema; a feed file may be seen a moment before it is registered."""

    retry = True


class TopicError(HeadraceError):
    """The topic is not the one that the archive remembers."""


class TopicMissing(TopicError):
    """The broker has no such topic; a feed file may be seen a moment before it is registered."""

    retry = True


class TopicSilent(TopicError):
    """Records that are there cannot be had now: the broker gives none, or another's open transaction hides them."""

    retry = True


class Overtaken(TopicError):
    """The broker deleted records between the plan and their turn; the next plan tells which."""

    retry = True


class TopicDamaged(TopicError):
    """Records came that fail the checksum which their producer gave them."""

    retry = True


class RecordsLost(TopicError):
    """The broker deleted records before they were archived."""


class MovedError(HeadraceError):
    """The table moved on since it was planned from: plan again."""

    retry = True


class BranchMoved(MovedError):
    """A run's branch no longer stands on what is published: only its transform, run again, helps."""

    retry = False


class TurnTaken(HeadraceError):
    """Somebody else works on the table; the error says who, and until when at least."""

    retry = True


class DeliveryError(HeadraceError):
    """A batch of records could not be published; started again, the delivery goes on where it stopped."""

    retry = True


class DeliveryRefused(DeliveryError):
    """The topic, as it is set, does not take a record; once it does, the delivery goes on where it stopped."""

    retry = False


class DeliveryFenced(DeliveryError):
    """The same delivery was started somewhere else, which shut this one out; a retry would shut out that one."""

    retry = False


class SliceError(HeadraceError):
    """A slice of an archive is not told so that it can be found."""


class ForgedError(HeadraceError):
    """A record says that it was replayed or imported, but is not signed with our key."""


class SparkFailed(HeadraceError):
    """Spark did not bring a job to its end."""

    retry = True


class PlanExpired(HeadraceError):
    """A plan is older than a run may be: upkeep may have removed its files already."""

    retry = True


class HeadsError(HeadraceError):
    """A table holds snapshots but none of them says how far it has come."""


class UpkeepError(HeadraceError):
    """S3 did not delete what upkeep asked it to."""

    retry = True


class ForeignTable(HeadraceError):
    """Files of a table that the catalog does not know lie where upkeep would remove some."""


class ReadError(HeadraceError):
    """A reader asks for a feed, a column, a row or a moment that is not there."""


class PersonalRefused(ReadError):
    """A reader asks for personal columns that may not be read in this environment."""


class RebuildNeeded(HeadraceError):
    """A clean table's rows were made by other rules than its feed declares now."""


class RebuildRefused(HeadraceError):
    """A clean table made anew would lack rows whose records are gone, or cannot be made by the rules of now."""


class JobError(HeadraceError):
    """A team's own job is not there, or does not give what its feed declares."""


class QuarantineFull(HeadraceError):
    """More of a run's records would be rejected than its feed allows."""


class CheckError(HeadraceError):
    """A check stopped the run before anybody saw its rows."""


class BranchMissing(HeadraceError):
    """A clean table has no branch of that name, or no longer."""


class WarehouseError(HeadraceError):
    """A warehouse does not take what is loaded."""


class WarehouseBusy(WarehouseError):
    """Somebody's lock on a warehouse's table is in the way."""

    retry = True


class TableRefused(WarehouseError):
    """A warehouse's table would have to change in a way that loses values, or that we may not."""


class ReconcileError(HeadraceError):
    """Two stores that must agree do not."""


class WarehouseBehind(ReconcileError):
    """A warehouse holds nothing yet, or by other words than today's: it has to be loaded first."""


class HistoryError(HeadraceError):
    """History cannot be imported as it is asked for, or not all of it arrived."""


class SourceSilent(HistoryError):
    """A source of history does not answer."""

    retry = True
