"""NFS counters: reading /proc/self/mountstats, and the probe that takes the difference."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.base.mountstats import COUNTERS, Snapshot, per_operation, snapshots
from iolab.domain.observation import Observation
from iolab.domain.probe import PROBES
from iolab.machines.host import nfs
from iolab.machines.host.site import Site, TargetPlace
from iolab.machines.system.beneath import Directory
from iolab.machines.system.facts import FactAbsent
from iolab.machines.system.mounts import Mount

HEAD = """device tmpfs mounted on /run with fstype tmpfs
device {source} mounted on {mount} with fstype nfs4 statvers={version}
	opts:	rw,vers=4.2,rsize=1048576,wsize=1048576,proto=tcp
	age:	{age}
	events:	0 0 0
	RPC iostats version: {version}  p/v: 100003/4 (nfs)
	xprt:	tcp 800 1 1 0 0 9 9 0 9 0 2 0 0
	per-op statistics
"""
WRITES = {
    "ops": 25161863,
    "sent": 1172,
    "received": 136,
    "backlog_ms": 0.094913,
    "rtt_ms": 0.048245,
    "execute_ms": 0.213270,
}
"""What a published run printed of its WRITEs: calls, and means of each."""


def text(mount: str, *operations: str, version: str = "1.1", age: int = 100) -> str:
    return HEAD.format(source="server:/export", mount=mount, version=version, age=age) + "".join(
        f"\t       {operation}\n" for operation in operations
    )


def write_line(since: int = 0, *, errors: str = " 0") -> str:
    """The kernel's sums behind `WRITES`, on top of `since` of each."""
    n = WRITES["ops"]
    sums = [n, n + 3, 1, n * 1172, n * 136, *(round(n * WRITES[key]) for key in ("backlog_ms", "rtt_ms", "execute_ms"))]
    return f"WRITE: {' '.join(str(int(value) + since) for value in sums)}{errors}"


@pytest.fixture
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An NFS mount as the kernel would show it; the file with its counters."""
    mounts = [
        Mount((0, 40), "/srv/my data", "nfs4", "server:/export", "rw"),
        Mount((0, 40), "/again", "nfs4", "server:/export", "rw"),
        Mount((8, 1), "/", "ext4", "/dev/sda1", "rw"),
    ]
    monkeypatch.setattr(nfs, "mounts", lambda: mounts)
    monkeypatch.setattr(nfs, "mount_of", lambda path: mounts[2])
    monkeypatch.setattr(nfs, "MOUNTSTATS", tmp_path / "mountstats")
    return tmp_path / "mountstats"


def site() -> Site:
    return Site("target", [TargetPlace("target", None, directory=Directory(Path("/data"), 0, 0))])


def metrics_of(observation: dict[str, Any]) -> dict[str, float | None]:
    record = {"groups": [], "probes": {"nfs": observation}}
    seen = Observation(None, record, {}, {})  # type: ignore[arg-type]
    return {entry.name: entry.of(seen) for entry in PROBES["nfs"].metrics}


@pytest.mark.parametrize(("version", "errors"), [("1.0", ""), ("1.1", " 0")])
def test_the_difference_gives_what_mountstats_prints(mounted: Path, version: str, errors: str) -> None:
    points = (r"/srv/my\040data", "/again")
    before = "".join(
        text(point, f"WRITE: {' '.join(['1000'] * 8)}{errors}", f"READ: {' '.join(['5'] * 8)}{errors}", version=version)
        for point in points
    )
    after = "".join(
        text(point, write_line(1000, errors=errors), f"READ: {' '.join(['5'] * 8)}{errors}", version=version)
        for point in points
    )
    mounted.write_text(before)
    reader = nfs.Mountstats({}, site())
    mounted.write_text(after)
    seen = reader.stop()
    ((point, mount),) = seen["mounts"].items()
    assert point in ("/srv/my data", "/again"), "the two are one filesystem"
    assert mount["source"] == "server:/export"
    assert set(mount["operations"]) == {"write"}, "operations that were not called are left out"
    found = metrics_of({**seen, "elapsed_ns": 496 * 10**9})
    assert found["rpc_write_bytes_sent_per_op"] == WRITES["sent"]
    assert found["rpc_write_bytes_received_per_op"] == WRITES["received"]
    for name, key in (("backlog_wait", "backlog_ms"), ("rtt", "rtt_ms"), ("execute", "execute_ms")):
        assert found[f"rpc_write_{name}_ns_mean"] == pytest.approx(WRITES[key] * 1e6, rel=1e-6)
        assert found[f"rpc_{name}_ns_mean"] == found[f"rpc_write_{name}_ns_mean"]
        assert found[f"rpc_read_{name}_ns_mean"] is None
    assert found["rpc_ops_per_s"] == pytest.approx(WRITES["ops"] / 496)
    assert (found["rpc_retransmissions"], found["rpc_timeouts"]) == (3, 1)


def test_rdma_tells_the_bytes_that_it_pulled_up_and_tcp_does_not(mounted: Path) -> None:
    def over(transports: str) -> str:
        both = "".join(text(point, write_line()) for point in (r"/srv/my\040data", "/again"))
        return both.replace("\txprt:\ttcp 800 1 1 0 0 9 9 0 9 0 2 0 0\n", transports)

    def connection(pulled_up: int) -> str:
        return f"\txprt:\trdma 0 0 1 0 0 9 9 0 9 0 1 2 3 4 5 {pulled_up} 7 8 9 10 11\n"

    mounted.write_text(over(connection(1024) + connection(10)))
    reader = nfs.Mountstats({}, site())
    mounted.write_text(over(connection(3072) + connection(30)))
    seen = reader.stop()
    assert [mount.get("pulled_up_bytes") for mount in seen["mounts"].values()] == [2068]
    assert metrics_of({**seen})["rpc_pulled_up_bytes"] == 2068
    assert snapshots(text("/again", write_line()))[0].pulled_up_bytes is None
    of_tcp = {"source": "server:/export", "operations": {}}
    assert metrics_of({"elapsed_ns": 1, "mounts": {"/again": of_tcp}})["rpc_pulled_up_bytes"] is None


def test_a_mount_that_is_new_gone_or_another_is_absent(mounted: Path) -> None:
    points = (r"/srv/my\040data", "/again")
    whole = "".join(text(point, "READ: 5 5 0 5 5 5 5 5 0") for point in points)
    for after, why in (
        ("", "mounted or unmounted"),
        ("".join(text(point, "READ: 1 1 0 1 1 1 1 1 0") for point in points), "mounted anew"),
    ):
        mounted.write_text(whole)
        reader = nfs.Mountstats({}, site())
        mounted.write_text(after)
        with pytest.raises(FactAbsent, match=why):
            reader.stop()


def test_the_targets_mount_is_taken_alone(mounted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Mount((0, 41), "/mine", "nfs", "other:/x", "rw")
    others = nfs.mounts()
    monkeypatch.setattr(nfs, "mounts", lambda: [*others, own])
    monkeypatch.setattr(nfs, "mount_of", lambda path: own)
    mounted.write_text(text("/mine", "READ: 5 5 0 5 5 5 5 5 0") + text("/again", "READ: 5 5 0 5 5 5 5 5 0"))
    assert list(nfs.Mountstats({}, site()).stop()["mounts"]) == ["/mine"]


def test_without_nfs_the_probe_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nfs, "mounts", list)
    with pytest.raises(FactAbsent, match="no NFS is mounted"):
        nfs.Mountstats({}, site())


COUNTER_LISTS = st.lists(st.integers(0, 10**15), min_size=8, max_size=8)
OPERATIONS = st.dictionaries(st.from_regex(r"[A-Z][A-Z0-9_]{0,12}", fullmatch=True), COUNTER_LISTS, min_size=1)


@given(OPERATIONS, st.text(st.characters(codec="ascii", exclude_characters="\n\r"), max_size=30))
def test_what_the_kernel_writes_is_read_back(operations: dict[str, list[int]], noise: str) -> None:
    lines = (f"{name}: {' '.join(map(str, counters))} 0" for name, counters in operations.items())
    (read,) = snapshots(text("/mnt", *lines) + f"# {noise}\n")
    assert (read.mount, read.age_s, read.operations) == ("/mnt", 100, operations)


@given(st.text(max_size=300))
def test_any_text_is_read_without_failing(anything: str) -> None:
    for snapshot in snapshots(HEAD + anything):
        assert all(len(counters) == len(COUNTERS) for counters in snapshot.operations.values())


@given(OPERATIONS, OPERATIONS)
def test_differences_add_up(first: dict[str, list[int]], more: dict[str, list[int]]) -> None:
    before = Snapshot("/mnt", 1, operations=first)
    sums = {
        name: [a + b for a, b in zip(first.get(name, [0] * 8), more.get(name, [0] * 8), strict=True)]
        for name in {**first, **more}
    }
    difference = Snapshot("/mnt", 9, operations=sums).since(before)
    assert not difference.went_backwards
    for name, counters in difference.operations.items():
        assert counters == more.get(name, [0] * 8)
        if counters[0]:
            found = per_operation(dict(zip(COUNTERS, map(float, counters), strict=True)))
            assert all(value >= 0 for value in found.values())


def test_the_models_mountstats_are_read_back() -> None:
    """The text that `nfs` is tested against: 12 threads that each write and then read 1000 records of 1 KiB."""
    golden = Path(__file__).parent / "golden" / "mountstats" / "nfs-rdma.txt"
    (read,) = snapshots(golden.read_text())
    assert (read.mount, len(read.operations)) == ("/mnt", 22)
    for name, sent, received in (("WRITE", 1172, 136), ("READ", 140, 1152)):
        counters = dict(zip(COUNTERS, map(float, read.operations.pop(name)), strict=True))
        assert counters["ops"] == 12_000
        found = per_operation(counters)
        assert (found["rpc_bytes_sent_per_op"], found["rpc_bytes_received_per_op"]) == (sent, received)
        waits = found["rpc_backlog_wait_ns_mean"] + found["rpc_rtt_ns_mean"]
        assert 0 < waits < found["rpc_execute_ns_mean"]
        assert (found["rpc_retransmissions"], found["rpc_timeouts"]) == (0, 0)
    assert not any(any(counters) for counters in read.operations.values())
