"""Layers between a target's device and its drives: what an experiment may give, and the stack that comes of it."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.base.errors import InputError, IolabError, MachineError
from iolab.domain import control, layer
from iolab.domain.layer import Array, CacheSet, LayerDevice, MappedDevice, bcache
from iolab.files.experiment import loads
from iolab.machines.guest import layers as guest_layers
from iolab.machines.guest import plan
from iolab.machines.guest.modules import Modules
from iolab.machines.host import doctor
from iolab.machines.host import port as host_port
from iolab.machines.system import action, block, kernel_module, layers, stacked
from iolab.machines.system.action import CannotUndo, RemoveMapping, StopArray
from iolab.studies.run.plan import Plan

MIB = 1 << 20


@dataclass
class Paper:
    """Makes devices on paper, and remembers their sizes."""

    drive_bytes: int
    sizes: dict[str, int] = field(default_factory=dict)
    held: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Which bytes of a device others lie on."""
    tables: list[str] = field(default_factory=list)
    queues: dict[str, dict[str, str]] = field(default_factory=dict)
    arrays: list[Array] = field(default_factory=list)
    number: Any = field(default_factory=count)

    def drive(self) -> LayerDevice:
        return self._made("drive", self.drive_bytes)

    def mapping(self, made: MappedDevice) -> LayerDevice:
        self.tables.append(made.table)
        words = made.arguments.split()
        # dm-delay names its device for reads, writes and flushes.
        for node in dict.fromkeys(word for word in words if word in self.sizes):
            start = int(words[1]) << 9 if made.target == "linear" else 0
            end = start + made.bytes if made.target == "linear" else self.sizes[node]
            self._hold(node, start, end)
        device = self._made("dm", made.bytes)
        if made.queue:
            self.queues[device.name] = dict(made.queue)
        return device

    def message(self, device: LayerDevice, text: str) -> None:
        assert device.node in self.sizes

    def array(self, made: Array, members: Sequence[LayerDevice]) -> LayerDevice:
        self.arrays.append(made)
        for member in members:
            self._hold(member.node, 0, self.sizes[member.node])
        of_member = {name: int(value) for name, value in made.of_member}
        before = dict(made.before)
        for member in members:
            assert (of_member["offset"] << 9) + (of_member["size"] << 10) <= self.sizes[member.node]
        whole = of_member["size"] << 10
        copies = {"raid0": len(members), "raid1": 1, "raid5": len(members) - 1, "raid6": len(members) - 2}
        data = copies.get(before["level"], len(members) / 2)
        return self._made("md", int(whole * data))

    def cache_set(self, made: CacheSet) -> LayerDevice:
        (cache, of_cache), (backing, of_backing) = made.superblocks
        buckets, _, bucket_sectors = struct.unpack_from("<QHH", of_cache, 184)
        assert buckets * bucket_sectors << 9 <= self.sizes[cache.node]
        assert of_cache[56:72] == of_backing[56:72], "the set's identity"
        for device in (cache, backing):
            self._hold(device.node, 0, self.sizes[device.node])
        return self._made("bcache", self.sizes[backing.node] - 8192)

    def _hold(self, node: str, start: int, end: int) -> None:
        assert end <= self.sizes[node]
        assert all(end <= first or last <= start for first, last in self.held.get(node, []))
        self.held.setdefault(node, []).append((start, end))

    def _made(self, kind: str, size: int) -> LayerDevice:
        name = f"{kind}{next(self.number)}"
        self.sizes[f"/dev/{name}"] = size
        return LayerDevice(name, f"/dev/{name}")


def stack(*tables: dict[str, Any], size: int = 64 * MIB) -> Paper:
    layers = layer.read(tables)
    paper = Paper(layer.drive_bytes(layers, size))
    layer.build(layers, size, paper)
    return paper


def _of_a_cache(size: str) -> str:
    return size.replace("KiB", "MiB")


_CHUNKS = st.sampled_from(["4KiB", "64KiB", "512KiB", "4MiB"])
_LAYERS = st.one_of(
    st.fixed_dictionaries({"kind": st.sampled_from(["linear", "delay", "flakey", "crypt"])}),
    st.fixed_dictionaries({"kind": st.just("crypt"), "sector_size": st.just(4096)}),
    st.fixed_dictionaries({"kind": st.just("thin"), "chunk": st.sampled_from(["64KiB", "1MiB"])}),
    st.fixed_dictionaries({"kind": st.sampled_from(["writecache", "cache"]), "cache_size": _CHUNKS.map(_of_a_cache)}),
    st.fixed_dictionaries({"kind": st.just("bcache"), "cache_size": st.sampled_from(["32MiB", "256MiB"])}),
    st.fixed_dictionaries({"kind": st.just("integrity"), "hash": st.sampled_from(["crc32c", "sha256"])}),
    st.fixed_dictionaries({"kind": st.just("striped"), "members": st.integers(2, 4), "chunk": _CHUNKS}),
    st.fixed_dictionaries(
        {
            "kind": st.just("raid"),
            "level": st.sampled_from([0, 1, 5, 6, 10]),
            "members": st.integers(4, 5),
            "chunk": _CHUNKS,
        }
    ),
    st.fixed_dictionaries(
        {"kind": st.just("dm_raid"), "members": st.integers(3, 5), "chunk": _CHUNKS},
        optional={"journal": st.sampled_from(["writethrough", "writeback"])},
    ),
    st.fixed_dictionaries(
        {"kind": st.just("dm_raid"), "journal": st.just("writeback"), "journal_size": st.sampled_from(["4MiB", "1GiB"])}
    ),
)


@given(st.lists(_LAYERS, max_size=3), st.integers(16 * MIB, 1 << 40))
def test_a_stack_of_any_depth_holds_what_it_should_and_uses_no_byte_twice(tables: list[Any], size: int) -> None:
    size -= size % 4096
    layers = layer.read(tables)
    paper = Paper(layer.drive_bytes(layers, size))
    top = layer.build(layers, size, paper)
    assert size <= paper.sizes[top.node] <= 2 * size + 512 * MIB
    drives = [node for node in paper.sizes if "drive" in node]
    assert len(drives) == layer.drives(layers)
    assert {*paper.held, top.node} == {*paper.sizes}
    assert top.node not in paper.held
    for one in paper.tables:
        sectors, nodes = int(one.split()[1]), [word for word in one.split() if word in paper.sizes]
        assert sectors << 9 <= sum(paper.sizes[node] for node in nodes)


def test_tables_are_those_of_device_mapper() -> None:
    assert stack({"kind": "linear"}).tables == ["0 131072 linear /dev/drive0 0"]
    assert stack({"kind": "striped", "members": 2, "chunk": "64KiB"}).tables == [
        "0 131072 striped 2 128 /dev/drive0 0 /dev/drive1 0"
    ]
    assert stack({"kind": "delay", "delay": "5ms", "write_delay": "7ms"}).tables == [
        "0 131072 delay /dev/drive0 0 5 /dev/drive0 0 7 /dev/drive0 0 7"
    ]
    assert stack({"kind": "flakey", "up": "3s", "down": "1s", "when_down": "drop_writes"}).tables == [
        "0 131072 flakey /dev/drive0 0 3 1 1 drop_writes"
    ]
    assert stack({"kind": "crypt", "cipher": "cipher_null-ecb", "no_read_workqueue": True}).tables == [
        "0 131072 crypt cipher_null-ecb - 0 /dev/drive0 0 1 no_read_workqueue"
    ]
    assert stack({"kind": "integrity", "mode": "direct", "block": 4096}).tables == [
        "0 131072 integrity /dev/drive0 0 - D 3 internal_hash:crc32c block_size:4096 recalculate"
    ]
    assert stack({"kind": "dm_raid", "members": 3, "chunk": "64KiB"}).tables == [
        "0 131072 raid raid5_ls 4 128 nosync stripe_cache 256 3 - /dev/drive0 - /dev/drive1 - /dev/drive2"
    ]
    (of_aes,) = stack({"kind": "crypt"}).tables
    key = of_aes.split()[4]
    assert len(key) == 2 * 64 and key[:64] != key[64:]


def test_an_array_is_made_without_a_superblock_and_in_step() -> None:
    (made,) = stack({"kind": "raid", "level": 5, "members": 4, "chunk": "64KiB", "bitmap": "1MiB"}).arrays
    assert ("metadata_version", "none") in made.before
    assert ("chunk_size", "65536") in made.before
    assert made.start[-2:] == [("resync_start", "none"), ("array_state", "active")]
    assert ("bitmap/location", "+8") in made.start


def test_a_superblock_of_bcache_has_the_checksum_that_the_kernel_compares() -> None:
    """The check value of CRC-64/WE in the catalogue of parametrised CRC algorithms (G. Cook, reveng)."""
    assert bcache.crc64(b"123456789") == 0x62EC59E3F1A4F00A
    made = bcache.superblock(1, b"a" * 16, b"s" * 16, flags=1, geometry=bytes(16), first_bucket=0)
    (checksum,) = struct.unpack_from("<Q", made)
    assert (len(made), checksum) == (4096, bcache.crc64(made[8:208]))


def test_a_journal_is_a_device_beside_the_members() -> None:
    made = stack({"kind": "dm_raid", "level": 4, "members": 3, "journal": "writeback"})
    assert made.tables == [
        "0 65536 linear /dev/drive3 0",
        "0 131072 raid raid4 8 1024 nosync stripe_cache 512 journal_dev /dev/dm4 journal_mode writeback "
        "3 - /dev/drive0 - /dev/drive1 - /dev/drive2",
    ]
    assert made.queues == {"dm4": {"discard_max_bytes": "0"}}
    assert made.sizes["/dev/drive3"] == made.sizes["/dev/drive0"] == 32 * MIB
    sized = stack({"kind": "dm_raid", "members": 3, "journal": "writethrough", "journal_size": "8MiB"})
    assert sized.tables[0] == "0 16384 linear /dev/drive3 0"
    assert "journal_dev /dev/dm4 journal_mode writethrough" in sized.tables[1]


EXPERIMENT = """\
machine = "guest:6.1.0-1-cloud"
[target]
kind = "scratch"
size = "64MiB"
filesystem = "none"
{}
[workloads.reads]
operations = 10
file_size = "8MiB"
{}
"""


def problems(layers: str, settings: str = "") -> list[str]:
    with pytest.raises(InputError) as error:
        loads(EXPERIMENT.format(layers, settings), "e.toml")
    return str(error.value).splitlines()


@pytest.mark.parametrize(
    ("table", "where", "what"),
    [
        ('{ kind = "cript" }', "kind", "did you mean crypt?"),
        ('{ cipher = "x" }', "", 'expected a table with its kind, such as { kind = "crypt" }'),
        ('{ kind = "crypt", cipher = "aes xts" }', "cipher", 'such as "aes-xts-plain64"'),
        ('{ kind = "crypt", no_read_workqeue = true }', "no_read_workqeue", "did you mean no_read_workqueue?"),
        ('{ kind = "raid", level = 7 }', "level", "expected 0, 1, 5, 6 or 10"),
        ('{ kind = "raid", level = 5, members = 2 }', "members", "RAID 5 has at least 3"),
        ('{ kind = "raid", level = 0, bitmap = "64KiB" }', "bitmap", "RAID 0 has none"),
        ('{ kind = "raid", level = 1, members = 2, threads = 2 }', "threads", "levels 5 and 6 have"),
        ('{ kind = "raid", chunk = "100KiB" }', "chunk", "expected a power of two"),
        ('{ kind = "dm_raid", level = 6 }', "level", "expected 4 or 5"),
        ('{ kind = "dm_raid", journal = "write-back" }', "journal", "did you mean writeback?"),
        ('{ kind = "dm_raid", journal_size = "8MiB" }', "journal_size", "there is no journal"),
        ('{ kind = "dm_raid", journal = "writeback", journal_size = "1MiB" }', "journal_size", "from 4MiB"),
        ('{ kind = "dm_raid", stripe_cache = 256 }', "stripe_cache", "a chunk of 512 KiB takes as many"),
        ('{ kind = "bcache", cache_size = "8MiB" }', "cache_size", "256 buckets; bcache takes at least 513"),
        ('{ kind = "bcache", bucket = "48KiB" }', "bucket", "expected a power of two"),
        ('{ kind = "delay", delay = "1us" }', "delay", "not a whole number of milliseconds"),
        ('{ kind = "flakey", up = "0s" }', "up", "expected one of the two to be a second or more"),
        ('{ kind = "linear", chunk = 3 }', "chunk", "unknown option"),
        (
            '{ kind = "striped", members = 40 }, { kind = "striped" }',
            None,
            "80 drives at the bottom; expected at most 64",
        ),
    ],
)
def test_a_layer_that_can_not_be_is_refused_on_its_line(table: str, where: str | None, what: str) -> None:
    (line,) = problems(f"layers = [\n  {{ kind = 'linear' }},\n  {table},\n]")
    place = "e.toml:6: target.layers" if where is None else "e.toml:8: target.layers.1" + (f".{where}" if where else "")
    assert line.startswith(f"{place}: ")
    assert what in line


def test_so_is_one_under_a_setting() -> None:
    lines = problems(
        'layers = [{ kind = "raid" }]',
        """
[settings.wrong_option]
layers = [{ kind = "crypt", x = 1 }]
[settings.no_such_layer]
layers.1.chunk = "4KiB"
[settings.of_a_matrix]
layers.0 = { level = [0, 5], bitmap = "4KiB" }
[settings.no_layers]
layers = "crypt"
""",
    )
    assert [line.partition(": ")[0] for line in lines] == ["e.toml:12", "e.toml:14", "e.toml:16", "e.toml:18"]
    assert "settings.wrong_option.layers.0.x: unknown option" in lines[0]
    assert "[target] has no such layer; it has 1, from 0" in lines[1]
    assert "RAID 0 has none" in lines[2]
    assert "expected a list of tables with a kind" in lines[3]


def test_a_target_that_is_not_ours_has_none() -> None:
    text = 'target = { kind = "directory", path = "/tmp" }\n[workloads.r]\noperations = 1\n'
    with pytest.raises(InputError) as error:
        loads(f"{text}[settings.s]\nlayers = [{{ kind = 'linear' }}]\n", "e.toml")
    assert "iolab puts layers on devices of its own only" in str(error.value)


def test_each_option_is_a_setting_of_one_experiment() -> None:
    text = EXPERIMENT.format(
        'layers = [{ kind = "crypt" }, { kind = "linear" }]',
        """
[settings.none]
layers = []
[settings.crypt]
[settings.queues]
layers.0 = { no_read_workqueue = [false, true] }
""",
    )
    plan = Plan(loads(text, "e.toml"), 1)
    found = {}
    for trial in plan.round(0):
        amended = control.amend(trial)
        assert amended.target.kind == "scratch"
        found[trial.setting] = [table.get("no_read_workqueue") for table in amended.target.layers]
    assert found == {
        "none": [],
        "crypt": [None, None],
        "queues[layers.0.no_read_workqueue=false]": [False, None],
        "queues[layers.0.no_read_workqueue=true]": [True, None],
    }


def test_only_names_of_our_own_are_undone() -> None:
    for made in (RemoveMapping("iolab_0123abcd_0"), StopArray("md_iolab_0123abcd_12")):
        assert action.from_json(action.to_json(made)) == made
        assert made.undo() is None, "there is no such device"
    for foreign in (
        RemoveMapping("vg-root"),
        RemoveMapping("md_iolab_0123abcd_0"),
        StopArray("md0"),
        StopArray("../x"),
    ):
        with pytest.raises(CannotUndo):
            action.from_json(action.to_json(foreign))
    assert stacked.NAME.fullmatch("iolab_0123abcd_0/..") is None


def test_a_kernel_that_lacks_a_layer_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(block, "SYS", tmp_path)
    monkeypatch.setattr(kernel_module, "loads", lambda alias: alias == "dm_mod")
    layers.check(layer.read([{"kind": "linear"}]))
    for kind, module, configuration in (
        ("crypt", "dm_crypt", "CONFIG_DM_CRYPT"),
        ("raid", "md_mod", "CONFIG_BLK_DEV_MD"),
    ):
        with pytest.raises(MachineError) as error:
            layers.check(layer.read([{"kind": kind}]))
        assert f"this kernel has no module {module}, which layer {kind} needs" in str(error.value)
        assert f"sudo modprobe {module}" in str(error.value)
        assert configuration in str(error.value)
        with pytest.raises(MachineError) as error:
            guest_layers.modules_of(layer.read([{"kind": kind}]), Modules(tmp_path))
        assert configuration in str(error.value)


def test_a_host_refuses_the_layer_that_guests_have_alone() -> None:
    with pytest.raises(MachineError) as error:
        layers.check(layer.read([{"kind": "bcache"}]))
    assert "layer bcache works on guest machines only" in str(error.value)


def test_the_doctor_names_the_layers_that_a_kernel_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def layers_with(modules: set[str], *tools: str) -> dict[str, doctor.Finding]:
        monkeypatch.setattr(kernel_module, "loads", lambda alias: alias in modules)
        monkeypatch.setattr(doctor.command, "find", lambda tool: tool if tool in tools else None)
        return {finding.what: finding for finding in doctor._layers()}

    monkeypatch.setattr(block, "SYS", tmp_path)
    assert {one.state for one in layers_with(set(), "dmsetup").values()} == {"missing"}
    mapped = layers_with({"dm_mod", "dm_crypt"}, "dmsetup")["device mapper"]
    assert mapped.state == "limited"
    assert mapped.detail.startswith("linear, striped, crypt; not ")
    assert "delay (CONFIG_DM_DELAY)" in mapped.detail
    assert layers_with({"dm_mod"})["device mapper"].remedy == "sudo apt-get install dmsetup"
    every = {module for kind in layer.KINDS.values() for module in kind.modules}
    assert {one.state for one in layers_with(every, "dmsetup").values()} == {"ok"}


def test_a_guest_writes_a_superblock_and_registers_the_device_that_it_is_on() -> None:
    (trial,) = Plan(loads(EXPERIMENT.format('layers = [{ kind = "bcache" }]', ""), "e.toml"), 1).round(0)
    steps = plan.make(trial, Modules(None)).steps
    made = [step.get("argv", step.get("value")) for step in steps if "bcache" in str(step)]
    (of_cache, cache), (of_backing, backing) = made[:2], made[2:4]
    assert [of_cache[1], of_cache[2], cache] == ["if=/bcache/nullb1", "of=/dev/nullb1", "/dev/nullb1"]
    assert [of_backing[2], of_backing[4], backing] == ["of=/dev/nullb0", "seek=1", "/dev/nullb0"]


def test_a_guest_makes_layers_from_the_drives_up(tmp_path: Path) -> None:
    text = EXPERIMENT.format('layers = [{ kind = "linear" }, { kind = "raid", level = 1, members = 2 }]', "")
    (trial,) = Plan(loads(text, "e.toml"), 1).round(0)
    steps = plan.make(trial, Modules(None)).steps
    written = [(str(step.get("path")), step.get("value")) for step in steps if step["do"] in ("write", "copy")]
    assert ("/sys/kernel/config/nullb/nullb1/size", "65") in written, "a bitmap has room on each member"
    at = written.index(("/sys/block/md_iolab_0/md/array_state", "active"))
    assert ("/sys/block/md_iolab_0/md/dev-nullb1/slot", "1") in written[:at]
    (mapped,) = (step["argv"] for step in steps if step["do"] == "run")
    assert mapped[-1] == "0 131072 linear /dev/md_iolab_0 0"
    (measured,) = (step["phase"] for step in steps if step["do"] == "load" and step["phase"]["name"] == "main")
    assert measured["files"][0]["path"] == "/dev/dm-0"


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ('[settings.a]\n[settings.b]\nlayers = [{ kind = "crypt" }]\n', "no module dm_mod, which layer crypt needs"),
        (
            '[settings.a]\n[settings.b]\nscheduler = { name = "bfq", low_latncy = 0 }\n',
            "settings.b.scheduler: unknown tunable 'low_latncy' of scheduler bfq.*did you mean low_latency",
        ),
        ('[settings.a]\n[settings.b]\nscheduler = { name = "kyber", read_lat = "1ms" }\n', None),
        ('[settings.a]\n[settings.b]\nscheduler = { name = "bfq", low_latency = 0 }\n', None),
    ],
)
def test_what_a_setting_lacks_is_found_before_the_first_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, refusal: str | None
) -> None:
    """On a machine without device mapper, with one disk whose scheduler is bfq; kyber's files cannot be looked at."""
    iosched = tmp_path / "sys" / "block" / "sda" / "queue" / "iosched"
    iosched.mkdir(parents=True)
    (iosched.parent / "scheduler").write_text("none kyber [bfq]\n")
    (iosched / "low_latency").write_text("1\n")
    monkeypatch.setattr(block, "SYS", tmp_path / "sys")
    monkeypatch.setattr(kernel_module, "loads", lambda _: False)
    monkeypatch.setenv("IOLAB_STATE_DIR", str(tmp_path / "state"))
    text = '[target]\nkind = "scratch"\nsize = "64MiB"\n[workloads.w]\noperations = 9\nfile_size = "1MiB"\n'
    experiment = loads(text + settings, "x.toml")
    if refusal is None:
        host_port.preflight(experiment.target, experiment.settings, (), print)
        return
    with pytest.raises(IolabError, match=refusal):
        host_port.preflight(experiment.target, experiment.settings, (), print)
