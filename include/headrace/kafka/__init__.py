"""Kafka: topics, and the records in their spans."""
