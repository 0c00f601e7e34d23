"""What raw files are together: ranges of topic-partitions, groups that share offsets, gaps."""

from dataclasses import replace

from parquet_sink.addons.reshape.marks import Mark, why_mixed
from parquet_sink.addons.reshape.spans import RawFile, RawRange, ranges_of
from tests.messages import assert_says


def file(first: int, last: int, topic: str = "orders", partition: int = 0, path: str = "") -> RawFile:
    """Of consecutive records."""
    return RawFile(path or f"{first}-{last}", topic, partition, first, last, last - first + 1)


def one_range(*files: RawFile) -> RawRange:
    """Of the files of one topic-partition."""
    (found,) = ranges_of(files)
    return found


def test_files_are_brought_into_order() -> None:
    """By topic, topic-partition and offset; those that share offsets are read together."""
    files = [file(10, 19), file(0, 9), file(5, 12), file(30, 39), file(0, 4, "audit"), file(3, 4, partition=2)]
    found = ranges_of(files)
    assert [(one.topic, one.partition, one.first, one.last, one.rows) for one in found] == [
        *[("audit", 0, 0, 4, 5), ("orders", 0, 0, 39, 38), ("orders", 2, 3, 4, 2)],
    ]
    assert [[one.path for one in group] for group in found[1].groups] == [["0-9", "5-12", "10-19"], ["30-39"]]
    assert (found[1].covered, found[1].gaps) == (((0, 19), (30, 39)), ((20, 29),))


def test_a_large_file_holds_small_ones() -> None:
    """What comes after a file that ends early may still be within one that began before."""
    found = one_range(file(0, 99), file(5, 6), file(50, 60), file(100, 101))
    assert [len(group) for group in found.groups] == [3, 1]
    assert (found.last, found.gaps) == (101, ())


def test_the_digest_is_of_what_files_span() -> None:
    """Resent files and other cuts are the same; a gap is not."""
    whole = one_range(file(0, 19))
    assert one_range(file(0, 9), file(10, 19)).digest == one_range(file(0, 19), file(3, 5)).digest == whole.digest
    assert one_range(file(0, 8), file(10, 19)).digest != whole.digest


def test_what_would_mix_is_refused() -> None:
    """Other settings, and other files of shared offsets; the same again, and what is apart, may join."""
    there = Mark.of("s1", one_range(file(0, 19)))
    assert Mark.read(there.name) == there
    assert Mark.read(replace(there, topic="a_b").name).topic == "a_b"
    assert why_mixed([there], [there, Mark.of("s1", one_range(file(20, 29)))]) is None
    assert why_mixed([there], [Mark.of("s1", one_range(file(0, 19, partition=1)))]) is None
    assert "other settings" in (why_mixed([there], [Mark.of("s2", one_range(file(20, 29)))]) or "")
    for other in (one_range(file(0, 29)), one_range(file(0, 5), file(7, 19)), one_range(file(19, 20))):
        why = why_mixed([there], [Mark.of("s1", other)])
        assert_says(why, "topic orders", "topic-partition 0", "offsets 0 to 19", "other raw files", "twice")
