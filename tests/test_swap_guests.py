"""What is kept off a swap area: a machine that is short of memory, and groups that may be forbidden to swap."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from iolab.base.errors import MachineError
from iolab.machines.system import swap, swap_guests
from iolab.machines.system.cgroup import Hierarchy

MIB = 1 << 20


def test_a_limit_that_leaves_the_machine_short_of_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  512000 kB\nMemAvailable:  204800 kB\n")
    monkeypatch.setattr(swap_guests, "MEMINFO", meminfo)
    swap_guests.check_memory(136 * MIB)
    with pytest.raises(MachineError, match=r"leave the machine less than 64MiB of the 200MiB .* lower memory_limit"):
        swap_guests.check_memory(137 * MIB)


@pytest.mark.parametrize("others", [[], [("/dev/sda2", 0)]])
def test_groups_of_version_2_may_not_swap_unless_they_could_before(
    others: list[tuple[str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, limit in {"a.slice": "max", "b.slice": "4096", "c.slice": "0"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "memory.swap.max").write_text(f"{limit}\n")
    monkeypatch.setattr(swap, "areas", lambda: others)
    journaled: list[Any] = []
    undo: Any = SimpleNamespace(before=journaled.append)
    notes = swap_guests.keep_off(Hierarchy(2, "memory", tmp_path, tmp_path), undo)
    limits = [file.read_text().strip() for file in sorted(tmp_path.glob("*/memory.swap.max"))]
    before = [(Path(action.path).parent.name, action.previous) for action in journaled]
    if others:
        assert (limits, before, len(notes)) == (["max", "4096", "0"], [], 1)
    else:
        assert (limits, before, notes) == (["0"] * 3, [("a.slice", "max"), ("b.slice", "4096")], [])


def test_version_1_says_what_it_cannot_forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swap, "areas", list)
    (note,) = swap_guests.keep_off(Hierarchy(1, "memory", Path("/"), Path("/")), SimpleNamespace())  # type: ignore[arg-type]
    assert "version 1" in note
