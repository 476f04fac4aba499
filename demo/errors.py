"""The demo's errors: what went wrong, where, and what to do about it.

DemoError
├── FeedError         a feed file cannot be read as a demo feed
├── TopicError        the topic does not hold what the generator published
├── PublishError      Kafka did not take a record
├── SettingError      a setting of the local stack is missing or cannot be read
├── StoreError        a store does not answer
└── RunError          a feed's DAG is missing, its run failed or did not end in time
"""


class DemoError(Exception):
    """Anything that ends the demo with one clear message."""


class FeedError(DemoError):
    """A feed file cannot be read as a demo feed."""


class TopicError(DemoError):
    """The topic does not hold what the generator published."""


class PublishError(DemoError):
    """Kafka did not take a record."""


class SettingError(DemoError):
    """A setting of the local stack is missing or cannot be read."""


class StoreError(DemoError):
    """A store does not answer."""


class RunError(DemoError):
    """A feed's DAG is missing, its run failed or did not end in time."""
