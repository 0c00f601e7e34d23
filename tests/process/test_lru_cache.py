"""What a bounded cache keeps and forgets."""

from parquet_sink.process.lru_cache import LruCache


def test_it_forgets_by_count_and_by_weight() -> None:
    """The item used longest ago goes first; one that is too heavy alone stays until the next."""
    items: LruCache[str, str] = LruCache(3, weigh=len, max_weight=10)
    for key in "abcd":
        items.put(key, key)
    assert [items.get(key) for key in "abcd"] == [None, "b", "c", "d"]
    items.put("e", "x" * 9)
    assert [items.get(key) for key in "bcde"] == [None, None, "d", "x" * 9]
    items.put("e", "y")
    items.put("f", "z" * 8)
    assert len(items) == 3
    items.put("g", "x" * 20)
    assert (len(items), items.get("g")) == (1, "x" * 20)


def test_it_finds_what_fits() -> None:
    """Of those that fit the one used last is found, and then counts as used."""
    items: LruCache[str, int] = LruCache(3)
    for number, key in enumerate("abc"):
        items.put(key, number)
    assert items.first(lambda number: number < 2) == 1
    assert items.first(lambda number: number > 9) is None
    items.put("d", 3)
    items.put("e", 4)
    assert [items.get(key) for key in "abcde"] == [None, 1, None, 3, 4]
