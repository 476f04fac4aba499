"""Avro's limits: how long what a record says of itself may be, as options of the Java machines that decode it.

A corrupt length must fail to decode, not take the whole heap.
"""

LONGEST = 17 * 2**20
"""A little more than the largest message that a broker takes: nothing in a record is longer than a record."""

OPTIONS = tuple(
    f"-Dorg.apache.avro.limits.{kind}.maxLength={LONGEST}" for kind in ("string", "bytes", "collectionItems")
)
