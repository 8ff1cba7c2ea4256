"""What a kernel of a tree is configured as, and how that is named."""

import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from iolab.base.errors import InputError
from iolab.domain import layer
from iolab.files.experiment import loads
from iolab.machines.guest import configuration, describe, guest, kernel, modules, plan, tree
from iolab.machines.guest.limit import Deadline
from iolab.presentation.table.symbols import counted_by
from iolab.studies.run.plan import Plan

WHOLE = '#\n# Automatically generated file; DO NOT EDIT.\n#\nCONFIG_CC_VERSION_TEXT="gcc 12.2.0"\nCONFIG_SLUB=y\n'


def test_the_default_is_what_distributions_run(tmp_path: Path) -> None:
    found = configuration.find(None, tmp_path)
    assert (found.name, found.is_whole) == ("plain", False)
    options = found.options.decode().splitlines()
    for one in ("SLUB", "CC_OPTIMIZE_FOR_PERFORMANCE", "BLK_CGROUP", "BLK_WBT_MQ", "SERIAL_8250_CONSOLE"):
        assert f"CONFIG_{one}=y" in options
    assert not re.search("SLOB|FOR_SIZE", found.options.decode())
    assert configuration.find("plain", tmp_path) == found


def test_lines_of_a_file_change_it_and_a_whole_configuration_stands_for_itself(tmp_path: Path) -> None:
    lines, whole = tmp_path / "debug", tmp_path / ".config"
    lines.write_text("CONFIG_DEBUG_INFO=y\n# CONFIG_BTRFS_FS is not set\n")
    whole.write_text(WHOLE)
    plain = configuration.find(None, tmp_path)
    changed, own = (configuration.find(str(path), tmp_path) for path in (lines, whole))
    assert (changed.name, changed.is_whole) == (str(lines), False)
    assert b"CONFIG_BLK_WBT=y\n" in changed.options and b"# CONFIG_BTRFS_FS is not set\n" in changed.options
    assert own.is_whole and own.options.startswith(WHOLE.encode()) and b"CONFIG_BLK_WBT=" not in own.options
    # What a guest needs is added to each, after what it replaces.
    assert {one.options.endswith(b"CONFIG_DEBUG_INFO_BTF=n\n") for one in (plain, changed, own)} == {True}
    assert len({one.digest for one in (plain, changed, own)}) == 3
    assert configuration.compiler(whole) == "gcc 12.2.0"
    assert configuration.compiler(tmp_path / "none") is None


def test_the_trees_own_file_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "iolab-guest.config").write_text("CONFIG_DEBUG_INFO=y\n")
    assert configuration.find(None, tmp_path).name == str(tmp_path / "iolab-guest.config")
    assert configuration.find("plain", tmp_path).name == "plain"


def test_lines_may_end_as_another_system_ends_them(tmp_path: Path) -> None:
    unix, other = tmp_path / "unix", tmp_path / "other"
    unix.write_bytes(WHOLE.encode())
    other.write_bytes(WHOLE.replace("\n", "\r\n").encode())
    one, two = (configuration.find(str(path), tmp_path) for path in (unix, other))
    assert one.options == two.options and two.is_whole


def test_what_is_no_configuration_is_told_with_its_line(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("CONFIG_SLUB=y\nSLUB: yes\n")
    with pytest.raises(InputError, match="'SLUB: yes' is no line of a kernel's configuration") as error:
        configuration.find(str(wrong), tmp_path)
    assert error.value.where == f"{wrong}:2"
    with pytest.raises(InputError, match="no such configuration"):
        configuration.find("tiny", tmp_path)


def test_plain_has_every_layer() -> None:
    options = set(configuration.find("plain", Path("/")).options.decode().splitlines())
    named = {name for kind in layer.KINDS.values() for name in re.findall(r"CONFIG_\w+", kind.configuration)}
    assert {f"{name}=y" for name in named} <= options


MAKEFILE = """\
allnoconfig: ; cp $(KCONFIG_ALLCONFIG) $(O)/.config; echo 'CONFIG_CC_VERSION_TEXT="gcc 1"' >> $(O)/.config
olddefconfig: ; echo CONFIG_MADE_OLD=y >> $(O)/.config
bzImage: ; mkdir -p $(O)/arch/x86/boot; cp $(O)/.config $(O)/arch/x86/boot/bzImage
\tcp System.map $(O)
\tmkdir -p $(O)/tools/objtool; echo $(O) >> $(O)/tools/objtool/.main.o.cmd
\ttest -e $(O)/main.o || echo $(O) > $(O)/main.o
"""
SYSTEM_MAP = """\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T startup_64
ffffffff81000100 t local
ffffffff82000000 D data
"""


@pytest.fixture
def commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tree that is no kernel's, but is made like one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tree, "_check_tools", lambda name: None)
    made = tmp_path / "linux"
    made.mkdir()
    (made / "Makefile").write_text(MAKEFILE)
    (made / "System.map").write_text(SYSTEM_MAP)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost", "-C", str(made)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    return f"{made}@HEAD"


def test_one_commit_is_a_kernel_for_each_of_its_configurations(commit: str, tmp_path: Path) -> None:
    whole = tmp_path / ".config"
    whole.write_text(WHOLE)
    plain, own = kernel.find(commit), kernel.find(commit, config=str(whole))
    assert plain.image != own.image and plain == kernel.find(commit, config="plain")
    assert b"CONFIG_BLK_WBT=y" in plain.image.read_bytes() and b"MADE_OLD" not in plain.image.read_bytes()
    assert b"CONFIG_BLK_WBT=y" not in own.image.read_bytes() and b"MADE_OLD" in own.image.read_bytes()
    assert (plain.configuration, own.configuration) == ("plain", str(whole))
    # Each keeps its objects, so that the next commit takes seconds under either; what does not depend on the options
    # that differ is compiled once.
    compiled = {path: path.read_text() for path in plain.image.parent.glob("build-*/main.o")}
    assert len(compiled) == 2 and len(set(compiled.values())) == 1
    for path in compiled:
        assert set((path.parent / "tools/objtool/.main.o.cmd").read_text().split()) == {str(path.parent)}


def test_settings_compare_one_commit_under_several_configurations_with_other_keys_beside_them(
    commit: str, tmp_path: Path
) -> None:
    whole = tmp_path / ".config"
    whole.write_text(WHOLE)
    experiment = loads(
        f"""machine = "guest:{commit}"
target = {{ kind = "scratch", size = "64MiB", filesystem = "none" }}
[workloads.reads]
operations = 100
file_size = "16MiB"
[settings.plain]
[settings.own]
machine = {{ config = "{whole}" }}
[settings.own_with_bfq]
machine = {{ config = "{whole}" }}
scheduler = "bfq"
""",
        "configurations.toml",
    )
    images, schedulers = {}, {}
    for trial in Plan(experiment, 1).round(0):
        assert trial.guest is not None
        images[trial.setting] = kernel.find(trial.guest.kernel, trial.guest.modules, trial.guest.config).image
        steps = plan.make(trial, modules.Modules(None)).steps
        schedulers[trial.setting] = [one["value"] for one in steps if str(one.get("path")).endswith("/scheduler")]
    assert images["plain"] != images["own"] == images["own_with_bfq"]
    assert schedulers["own_with_bfq"] == ["bfq"] and "bfq" not in [*schedulers["plain"], *schedulers["own"]]


def test_the_functions_of_a_built_kernel_are_known_without_a_boot(commit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_given: object, **_named: object) -> None:
        raise AssertionError("a guest was booted")

    monkeypatch.setattr(guest.qemu, "run", run)
    found = kernel.find(commit)
    for _ in range(2):
        text = guest.learn(found, Deadline.after(60.0))
        assert text == b"ffffffff81000000 T startup_64\nffffffff81000100 t local\n"


def test_what_decides_about_counts_is_named(commit: str, tmp_path: Path) -> None:
    made = describe.made(kernel.find(commit))
    assert made == {"configuration": "plain", "compiler": "gcc 1"}
    record: Any = SimpleNamespace(observed={"guest": made}, spec=SimpleNamespace(guest=SimpleNamespace(kernel="t@1")))
    emulator = {"qemu": "7.2", "cpu": {"model": "qemu64", "flags": ["fxsr", "sse2"]}}
    trials = {"trial": SimpleNamespace(to_list=lambda: [0, 1])}
    run: Any = SimpleNamespace(machine={"guest": emulator}, trials=trials, record=lambda trial: record)
    assert list(counted_by(run)) == [
        "counted by QEMU 7.2, processor qemu64 (fxsr sse2)\n",
        "t@1: configured as plain, built by gcc 1\n",
    ]


@pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None, reason="QEMU is not installed")
def test_the_flags_of_the_emulated_processor_are_those_that_the_kernel_sees() -> None:
    flags = describe.flags()
    assert {"fxsr", "sse2", "lm"} <= set(flags) and not {"erms", "fsrm", "kvm"} & set(flags)
