"""A producer of what no ordinary client writes: a header whose name is any bytes; by librdkafka's own functions."""

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import confluent_kafka

PRODUCER, COPY = 0, 2
END, TOPIC, PARTITION, VALUE, FLAGS, HEADERS = 0, 1, 3, 4, 7, 10
"""How rd_kafka_producev tells its arguments apart."""


def produce_with_header(kafka: Mapping[str, Any], topic: str, name: bytes, *, value: bytes) -> None:
    """Publish one record to partition zero."""
    packages = Path(confluent_kafka.__file__).parent.parent
    (found,) = (packages / "confluent_kafka.libs").glob("librdkafka*")
    library = ctypes.CDLL(str(found))
    for function in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_headers_new"):
        getattr(library, function).restype = ctypes.c_void_p
    config = ctypes.c_void_p(library.rd_kafka_conf_new())
    library.rd_kafka_conf_set(config, b"bootstrap.servers", kafka["bootstrap.servers"].encode(), None, 0)
    client = ctypes.c_void_p(library.rd_kafka_new(PRODUCER, config, None, 0))
    headers = ctypes.c_void_p(library.rd_kafka_headers_new(1))
    library.rd_kafka_header_add(headers, name, len(name), b"v", 1)
    told = (TOPIC, topic.encode(), PARTITION, 0, VALUE, value, ctypes.c_size_t(len(value)), FLAGS, COPY)
    assert library.rd_kafka_producev(client, *told, HEADERS, headers, END) == 0
    assert library.rd_kafka_flush(client, 30_000) == 0
    library.rd_kafka_destroy(client)
