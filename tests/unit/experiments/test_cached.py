"""Cached results: within a bound in bytes, the least recently used go first, and what somebody kept stays."""

import os
import time

import pytest

from experiments.runs import cached, sealed


def result(root, name, size=1000, used=None):
    """A stored result of about `size` bytes; `used`: nobody has kept it, and then it was used."""
    with sealed.under_way(root) as part, sealed.as_cached():
        (part / "data").write_bytes(bytes(size))
        sealed.seal(part)
        sealed.settle(part, root / name)
    if used is None:
        cached.keep(root / name)
    else:
        os.utime(root / name / sealed.CACHED, (used, used))
    return root / name


def there(root):
    return {path.name for path in root.iterdir() if not path.name.startswith(".")}


def test_results_that_nobody_kept_make_room_and_the_least_recently_used_go_first(tmp_path):
    for used, name in enumerate(("a", "b", "c", "d")):
        result(tmp_path, name, used=used)
    cached.use(tmp_path / "a")  # now
    assert cached.trim(tmp_path, 2500) <= 2500
    assert there(tmp_path) == {"a", "d"} and not sealed.altered_files(tmp_path / "a")
    assert not [*tmp_path.glob(f"{sealed.PART}*")]


def test_what_somebody_kept_is_never_removed_and_if_it_is_too_much_nothing_more_is_begun(tmp_path, monkeypatch):
    monkeypatch.setenv(cached.VARIABLE, "2500")
    for name in ("a", "b", "c"):
        result(tmp_path, name)
    result(tmp_path, "d", used=0)
    for _ in range(2):  # and again, though it was looked at just now
        with pytest.raises(ValueError, match=r"kept runs take.*LOCKSTEP_RUNS_BYTES"):
            cached.make_room(tmp_path)
    assert there(tmp_path) == {"a", "b", "c"}
    monkeypatch.setenv(cached.VARIABLE, "1e9")
    cached.make_room(tmp_path)


def test_a_result_that_is_kept_while_it_is_being_removed_comes_back(tmp_path, monkeypatch):
    kept, rename = result(tmp_path, "a", used=0), os.rename

    def meanwhile(self, target):
        if self == kept:
            cached.keep(kept)
        rename(self, target)

    monkeypatch.setattr(type(kept), "rename", meanwhile)
    cached.trim(tmp_path, 0)
    assert there(tmp_path) == {"a"} and not sealed.altered_files(kept)


def test_what_nobody_has_used_for_days_goes_although_there_is_room_unless_it_is_kept(tmp_path, monkeypatch):
    monkeypatch.delenv(cached.VARIABLE, raising=False)
    monkeypatch.setenv(cached.AGE, "90")
    now = time.time()
    for name, days in (("old", 91), ("young", 89)):
        result(tmp_path, name, used=now - days * cached.DAY)
    os.utime(result(tmp_path, "kept"), (0, 0))
    cached.make_room(tmp_path)
    assert there(tmp_path) == {"young", "kept"}
    monkeypatch.setenv(cached.AGE, "three months")
    with pytest.raises(ValueError, match=r"LOCKSTEP_RUNS_DAYS.*three months.* 90"):
        cached.is_bounded()


def test_without_a_bound_nothing_is_removed_and_a_bound_that_is_no_number_is_a_sentence(tmp_path, monkeypatch):
    for variable in (cached.VARIABLE, cached.AGE):
        monkeypatch.delenv(variable, raising=False)
    result(tmp_path, "a", used=0)
    cached.make_room(tmp_path)
    assert there(tmp_path) == {"a"} and cached.bound() == float("inf")
    for text in ("20 GB", "-1", "nan", "1e"):
        monkeypatch.setenv(cached.VARIABLE, text)
        with pytest.raises(ValueError, match="20e9"):
            cached.bound()
