"""Kinesis: streams, and the records in their shards."""
