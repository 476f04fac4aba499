"""What our requests to S3 carry: the encryption that the connection asks for, on every write and by everybody.

S3Proxy knows no encryption and refuses it, which shows that it was asked for.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from forwarder import Forwarder
from workshop import Record, Workshop

from headrace.errors import ServiceRefused, SparkFailed
from headrace.storage import Encryption

Make = Callable[..., Workshop]
KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd"
REFUSAL = "Server-side encryption is not supported"


def test_every_write_of_boto3_asks_for_encryption(workshop: Make) -> None:
    shop, sent = workshop(), list[dict[str, Any]]()
    storage = replace(shop.lake.storage, encryption=Encryption("aws:kms", KEY))
    shop = replace(shop, lake=replace(shop.lake, storage=storage))
    shop.lake.s3.meta.events.register(
        "before-send.s3", lambda request, **_: sent.append({"method": request.method, **request.headers})
    )
    shop.publish(Record(b"one"))
    with pytest.raises(ServiceRefused, match=REFUSAL):
        shop.extract()
    (put,) = [each for each in sent if each["method"] == "PUT"]
    assert put["x-amz-server-side-encryption"] == b"aws:kms"
    assert put["x-amz-server-side-encryption-aws-kms-key-id"] == KEY.encode()
    # The signature covers what was asked for, so nobody on the way can take it off.
    assert b"x-amz-server-side-encryption" in put["Authorization"]


def test_spark_asks_for_the_same_encryption(workshop: Make) -> None:
    shop = workshop()
    shop.publish(Record(b"not a row"))
    shop.extract()
    forwarder, sent = Forwarder(int(shop.lake.storage.endpoint.rpartition(":")[2])), list[bytes]()
    forwarder.listen(sent.append)
    endpoint = f"http://127.0.0.1:{forwarder.port}"
    storage = replace(shop.lake.storage, encryption=Encryption("AES256"), endpoint=endpoint)
    with pytest.raises(SparkFailed, match="S3Exception"):
        replace(shop, lake=replace(shop.lake, storage=storage)).transform("encrypted")
    forwarder.cut()
    asking = [each for each in sent if b"x-amz-server-side-encryption: aes256" in each.lower()]
    assert asking
    assert all(each.startswith(b"PUT /headrace/") for each in asking)
