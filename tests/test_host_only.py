"""A build for hosts alone: the extension without cargo's feature `model`, and so without all of crates/model."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from iolab import _native
from iolab.domain.control.queue import TUNABLE_UNIT_NS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python/iolab"
OF_THE_MODEL = ("Model", "drive_sizes", "time_tunables_ns", "unread_keys")
WITHOUT = f"""\
import runpy
from iolab import _native

for name in {OF_THE_MODEL}:
    delattr(_native, name)
runpy.run_module("iolab", run_name="__main__")
"""
EXPERIMENT = """\
title = "Two depths"
machine = "model:nvme"
rounds = 3
workloads.reads = { pattern = "random", file_size = "64MiB", duration = "10ms" }
settings.one = { workload = { queue_depth = 1 } }
settings.two = { workload = { queue_depth = 2 } }
"""


def crates(*features: str) -> set[str]:
    """The folders of what the extension is made of, below crates/."""
    tree = ["cargo", "tree", "--locked", "--package", "iolab-bindings", "--edges", "normal", "--prefix", "none"]
    done = subprocess.run([*tree, *features], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    own = [line.partition(f"({ROOT}/crates/")[2] for line in done.stdout.splitlines()]
    return {line.partition(")")[0] for line in own if line}


@pytest.mark.skipif(shutil.which("cargo") is None, reason="no cargo")
def test_nothing_of_the_model_is_in_a_build_for_hosts() -> None:
    for_hosts = crates("--no-default-features")
    assert {"base", "bindings", "measure/engine"} <= for_hosts
    assert not [crate for crate in for_hosts if crate.startswith("model/")]
    assert "model/stack" in crates()


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "experiment.toml"),
        ("reproduce",),
        ("replay", str(ROOT / "crates/measure/trace/tests/fixtures/block.txt"), "--on", "model:nvme"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_whoever_asks_it_for_a_simulated_machine_reads_what_is_missing(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments],
        cwd=tmp_path,
        env={"IOLAB_STATE_DIR": str(tmp_path / "state"), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("\n") == 1
    assert "simulated machines are not in this build of iolab" in done.stderr
    assert "; compile it with cargo's default features" in done.stderr


def test_one_module_alone_asks_the_extension_for_a_simulated_machine() -> None:
    asking = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "_native"
        and node.func.attr in OF_THE_MODEL
    }
    assert asking == {"domain/native_model.py"}


def test_a_host_knows_the_units_of_tunables_that_the_model_knows() -> None:
    assert json.loads(_native.time_tunables_ns()) == TUNABLE_UNIT_NS
