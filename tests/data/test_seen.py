import contextlib

from docjax.data.seen import Seen


def test_a_name_is_new_once_however_many_there_are():
    with contextlib.closing(Seen()) as names:
        long = [f"{number}-{'x' * 1000}" for number in range(4_000)]  # over the cache
        assert all(names.add(name) for name in long)
        assert not any(names.add(name) for name in long[::1000])


def test_names_differ_by_every_character():
    with contextlib.closing(Seen()) as names:
        assert all(
            names.add(name) for name in ("a", "A", "a ", "a\0b", "a\0c", "ä", "1")
        )
        assert not names.add("a\0b")
