"""The registry's store under real concurrency: one id for one schema, whoever asks when."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from headrace.airflow import connections


def test_registering_the_same_and_other_schemas_at_once_gives_each_one_id(stack: Any) -> None:
    store = connections.registry()
    store.prepare()
    subjects, texts = [f"s-{uuid.uuid4()}" for _ in range(3)], [f'"{uuid.uuid4()}"' for _ in range(4)]
    wanted = [(subject, text) for subject in subjects for text in texts] * 3
    with ThreadPoolExecutor(12) as pool:
        done = list(pool.map(lambda each: store.register(each[0], "AVRO", text=each[1]), wanted))
    ids = {text: {got.id for (_, asked), got in zip(wanted, done, strict=True) if asked == text} for text in texts}
    assert all(len(found) == 1 for found in ids.values())
    assert len(set.union(*ids.values())) == len(texts)
    for subject in subjects:
        assert {got.version for got in done if got.subject == subject} == {1, 2, 3, 4}
        assert set(store.writers(subject).values()) == set(texts)
