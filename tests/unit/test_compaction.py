"""How many small files the next piece of compaction takes."""

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from headrace.stages import compaction
from headrace.stages.compaction import INPUTS, PIECE_BYTES, PIECE_FILES, piece

TARGET = 128 * 2**20


def files(count: int, *, size: int = 1000, partition: int = 0) -> list[DataFile]:
    made = [
        DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"{partition}-{number}",
            file_format=FileFormat.PARQUET,
            partition=Record(partition),
            record_count=1,
            file_size_in_bytes=size,
        )
        for number in range(count)
    ]
    for file in made:
        file.spec_id = 0
    return made


def test_a_partition_with_few_small_files_stays() -> None:
    assert piece(files(INPUTS - 1), target=TARGET) == 0
    assert piece([*files(INPUTS - 1), *files(INPUTS - 1, partition=1)], target=TARGET) == 0
    assert piece([*files(INPUTS), *files(1, partition=1)], target=TARGET) == INPUTS


def test_large_files_stay() -> None:
    assert piece(files(100, size=int(compaction.SMALL * TARGET)), target=TARGET) == 0


def test_a_piece_is_bounded_in_bytes_and_in_files() -> None:
    size = 64 * 2**20
    assert piece(files(200, size=size), target=TARGET) == PIECE_BYTES // size
    assert piece(files(PIECE_FILES + 5), target=TARGET) == PIECE_FILES
