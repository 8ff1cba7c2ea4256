"""BFQ of the simulated machine beside the real one, where a drive's every time is known."""

import pytest
from support.simulated import run

pytestmark = pytest.mark.usefixtures("state_dir", "here")

ONE_READER_PER_GROUP = """\
machine = "model:known-latency"
rounds = 1

[workloads.shares]
kind = "iostest"
job = "drr"
groups = 5
jobs_per_group = 1
file_size = "32MiB"
block_size = "16KiB"
warm_up = "250ms"
duration = "2s"

[settings.bfq]
scheduler = { name = "bfq", low_latency = 0 }
nr_requests = 256
machine = { "drives.0.device.queue_depth" = 16 }
"""


def test_readers_of_groups_take_turns_by_weight_before_a_drive_that_takes_many_commands() -> None:
    """Debian's 6.1.0-56 in a guest, before a null_blk of 2 ms: 7.70 MiB/s by weight, Jain's index 0.986. Completions do
    not run the hardware queue, so that nothing is injected between one and the reader's next call."""
    done = run(ONE_READER_PER_GROUP)
    value = {key: done.values(key, "shares")["bfq"][0] for key in ("rate_bytes_per_s", "fairness_jain_weighted")}
    assert value["rate_bytes_per_s"] == pytest.approx(7.70 * 2**20, rel=0.05)
    assert value["fairness_jain_weighted"] == pytest.approx(0.986, abs=0.03)
