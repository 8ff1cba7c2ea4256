"""What a trace says of I/Os, beside what the engine timed of each: benches/trace_truth.py with fewer of them."""

import os
import sys
from pathlib import Path

import pytest
from iolab.machines.system import tracefs

sys.path.append(str(Path(__file__).parents[1] / "benches"))
import trace_truth

NO_TRACEFS = tracefs.root() is None or os.geteuid() != 0


@pytest.mark.skipif(NO_TRACEFS, reason="needs root and a mounted tracefs")
def test_no_time_of_a_recorded_io_lies_outside_of_the_engines(loop_device: Path, tmp_path: Path) -> None:
    nomerges = Path("/sys/block") / loop_device.name / "queue" / "nomerges"
    before = nomerges.read_text()
    nomerges.write_text("2")
    try:
        found = trace_truth.compared(loop_device, tmp_path, 5000)
    finally:
        nomerges.write_text(before)
    assert found.ios == 5000
    assert (found.outside, found.missing) == (0, 0)
    assert found.unknown < 250
