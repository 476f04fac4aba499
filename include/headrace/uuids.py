"""UUIDs: sixteen bytes and the text of them, a whole column at once."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Octets = npt.NDArray[np.uint8]

DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
PLACES = np.array([place for place in range(36) if place not in (8, 13, 18, 23)])
"""Where the digits stand in a text; dashes stand between."""
VALUES = np.zeros(256, np.uint8)
VALUES[DIGITS] = np.arange(16)
VALUES[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)


def texts(values: pa.Array) -> pa.Array:
    """The texts of sixteen bytes each; null where there is none. Spark gives texts, in the case that they came in."""
    if pa.types.is_string(values.type):
        return pc.utf8_lower(values)
    stored = values.storage if isinstance(values, pa.ExtensionArray) else values
    octets = _dense(stored.cast(pa.binary()), 16)
    written = np.full((len(octets), 36), ord("-"), np.uint8)
    written[:, PLACES[0::2]] = DIGITS[octets >> 4]
    written[:, PLACES[1::2]] = DIGITS[octets & 15]
    return _again(written, stored).cast(pa.string())


def octets(values: pa.Array) -> pa.Array:
    """The sixteen bytes of texts; null where there is none."""
    written = VALUES[_dense(values.cast(pa.binary()), 36)[:, PLACES]]
    joined = (written[:, 0::2] << 4 | written[:, 1::2]).astype(np.uint8)
    return _again(joined, values).cast(pa.binary())


def _dense(values: pa.Array, width: int) -> Octets:
    """The bytes of all values that there are, one row each."""
    there = values.drop_null().cast(pa.binary(width))
    start, buffer = there.offset * width, there.buffers()[1]
    if not len(there) or buffer is None:
        return np.zeros((0, width), np.uint8)
    return np.frombuffer(buffer, np.uint8)[start : start + len(there) * width].reshape(-1, width)


def _again(rows: Octets, values: pa.Array) -> pa.Array:
    """Rows of bytes as an array, with nulls where the values have them."""
    width = rows.shape[1]
    made = pa.Array.from_buffers(
        pa.binary(width), len(rows), [None, pa.py_buffer(np.ascontiguousarray(rows, np.uint8))]
    )
    if not values.null_count:
        return made
    places = np.cumsum(values.is_valid().to_numpy(zero_copy_only=False)) - 1
    return made.take(pa.array(places, mask=~values.is_valid().to_numpy(zero_copy_only=False)))
