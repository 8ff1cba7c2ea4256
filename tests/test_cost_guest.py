"""`iolab cost` on a real kernel in a guest machine, and what it makes of a directory that is there."""

from pathlib import Path
from typing import Any, cast

import pytest
from iolab.base.errors import InputError
from iolab.files.store import read
from iolab.studies.cost import kernels, suite
from support.command_line import CommandLine
from support.guests import kernel_or_skip


def opened(out: Path, tip: str = "b", **effort: Any) -> None:
    """As the command opens a directory before it counts."""
    nobody = cast(Any, None)
    asked = suite.Effort(**{"rounds": 3, **effort})
    suite.measure(kernels.named("a", tip), [], asked, out, executor=nobody, progress=nobody)


def test_a_directory_is_continued_by_the_same_question_alone(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "cost"
    opened(out)
    opened(out)
    opened(out, rounds=5)
    for changed in ({"tip": "c"}, {"memory": True}, {"seed": 3}, {"config": "/a/config"}):
        with pytest.raises(InputError, match="holds the counts of other kernels"):
            opened(out, **changed)
    with pytest.raises(InputError, match="exists already"):
        opened(tmp_path)


@pytest.mark.long
def test_a_kernel_costs_as_much_as_itself(iolab: CommandLine) -> None:
    kernel = kernel_or_skip()
    same = ("cost", kernel, kernel, "--paths", "null-read,null-read-polled", "--rounds", "2", "--out", "same")
    found = iolab(*same, "--json", "--fail-on", "kernel > 0.1 %").json()
    for path in found["paths"]:
        assert path["outcome"] == "same" and path["functions"] == []
        boots = suite.observations(read(iolab.cwd / "same" / path["path"]))
        counts = [one["total"] - one["user"] for rounds in boots.values() for one in rounds.values()]
        # Rounds differ by where memory lies. A search for a free tag that starts elsewhere would be 0.18 %.
        assert len(counts) == 4 and max(counts) == pytest.approx(min(counts), rel=1e-3)
        of_kernel = path["per_operation"]["kernel"]
        assert of_kernel["base"] == pytest.approx(of_kernel["tip"], rel=2e-4)
    assert found["base"]["built"] and found["counted_by"].startswith("QEMU")
    # The same command reads what was counted, and a condition that holds ends it with status 1.
    again = iolab(*same, "--mail", "--fail-on", "kernel > -50 %", status=1)
    assert "as many on 2" in again.stdout and "--fail-on holds: null-read" in again.stderr
    shown = iolab("show", "same/null-read", "--as", "symbols").stdout
    assert "blk_mq_submit_bio" in shown
