"""How many files a compaction of an Iceberg table would save, by what its commits say of themselves."""

from __future__ import annotations

from floodmark.targets.iceberg.care import small_files
from floodmark.targets.iceberg.snapshots import IcebergLog, Snapshot
from floodmark.targets.small_files import SMALL


def log(*commits: tuple[str, int, int], deletes: int = 0) -> IcebergLog:
    """Each an operation, the files that it added, and their size in all."""
    snapshots, total = {}, 0
    for number, (operation, files, size) in enumerate(commits):
        total = files if operation == "replace" else total + files
        told = {"added-data-files": files, "added-files-size": size, "total-data-files": total}
        told["total-delete-files"] = deletes
        summary = {"operation": operation, **{name: str(value) for name, value in told.items()}}
        snapshots[number] = Snapshot(number, number - 1 if number else None, number + 1, summary)
    main = len(commits) - 1 if commits else None
    return IcebergLog("t", snapshots, main, tuple(snapshots), {}, {}, {})


def test_an_empty_table_has_none() -> None:
    assert small_files(log()) == 0


def test_the_files_of_a_large_load_are_no_small_ones() -> None:
    assert small_files(log(("append", 40, 40 * SMALL), ("append", 40, 41 * SMALL))) == 0


def test_small_loads_leave_small_files() -> None:
    assert small_files(log(("append", 40, 40 * SMALL), *[("append", 1, 1000)] * 7)) == 6


def test_files_that_mark_deleted_rows_count_as_well() -> None:
    assert small_files(log(("append", 1, SMALL), ("overwrite", 1, 1000), ("overwrite", 1, 1000), deletes=2)) == 3


def test_what_was_compacted_is_not_counted_again() -> None:
    assert small_files(log(*[("append", 1, 1000)] * 7, ("replace", 1, 7000), ("append", 1, 1000))) == 0
