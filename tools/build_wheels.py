"""Builds iolab's wheels, looks whether each is whole, and tries the one for this machine. `make wheel` calls it.

Zig links for both processors, against an old glibc: a wheel runs on any distribution since MANYLINUX. What is built in
is compared with the checkout, file by file. The wheel for this machine is installed into an empty environment and has
to list, simulate, compare and be imported there, with no Rust and no checkout in reach.
"""

import argparse
import base64
import hashlib
import json
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import man_page

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "iolab"
OUT = ROOT / "target" / "wheels"
MANYLINUX = "manylinux_2_28"
"""Debian 11, RHEL 8, Ubuntu 20.04 and later. numpy and polars ask for no older one."""
PYTHON_TAG = "cp311-abi3"
"""One wheel for Python 3.11 and every later one."""
MACHINES = {"x86_64": 62, "aarch64": 183}
"""By processor: e_machine of its ELF files."""
LICENSES = ("LICENSE-APACHE", "LICENSE-MIT")
EXPERIMENT = """\
machine = "model:nvme"
rounds = 3
seed = 1

[workloads.reads]
pattern = "random"
file_size = "64MiB"
duration = "20ms"

[settings.one]
workload = { queue_depth = 1 }

[settings.sixteen]
workload = { queue_depth = 16 }
"""
PROGRAM = """\
import iolab, iolab._native
from pathlib import Path
assert "site-packages" in iolab.__file__, iolab.__file__
run = iolab.load("out")
assert [one.judgement.verdict for one in iolab.compare(run, metrics=["iops"])] == ["faster"]
assert run.figures("latency") and "<pre" in run._repr_html_()
iolab.report(run, Path("again.html"))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the wheels and try them.")
    parser.add_argument("processor", nargs="*", help=f"only for these: {', '.join(MACHINES)}")
    wanted = parser.parse_args().processor or list(MACHINES)
    for processor in wanted:
        if processor not in MACHINES:
            return _fail(f"{processor}: unknown processor; there are: {', '.join(MACHINES)}")
        if why := _prepare(f"{processor}-unknown-linux-gnu"):
            return _fail(why)
    for processor in wanted:
        wheel = build(processor)
        if wrong := [*missing_from(wheel), *wrong_in(wheel, processor)]:
            return _fail(f"{wheel.name}: {'; '.join(wrong)}")
        tried = "not run here, this machine has another processor"
        if processor == platform.machine():
            try_out(wheel)
            tried = "installed in an empty environment, and works there"
        print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.1f} MB, whole; {tried}")
    return 0


def build(processor: str) -> Path:
    """The wheel, made anew."""
    shutil.rmtree(OUT / processor, ignore_errors=True)
    maturin = ("build", "--release", "--strip", "--zig", "--compatibility", MANYLINUX)
    where = ("--target", f"{processor}-unknown-linux-gnu", "--out", OUT / processor)
    # By its path, so that maturin's build has no trace of this environment.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(
        ["maturin", *maturin, *where, "--interpreter", sys.executable],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        check=True,
    )
    (wheel,) = (OUT / processor).glob("*.whl")
    add(wheel, man_page.INSTALLED, man_page.render().encode())
    return wheel


def of_what_is_built() -> Path:
    """A wheel for this machine's own tests, without a compiler: the package as it is, with the extension that is built
    in it, which may have assertions and needs a libc as new as this machine's."""
    place = OUT / "built"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="iolab-wheel-") as made:
        written = ["maturin", "pep517", "write-dist-info", "--metadata-directory", made, "--interpreter"]
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        subprocess.run(
            [*written, sys.executable], cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, check=True
        )
        (information,) = Path(made).iterdir()
        tag = f"{PYTHON_TAG}-linux_{platform.machine()}"
        wheel = place / f"{information.name.removesuffix('.dist-info')}-{tag}.whl"
        guest = [str(file.relative_to(PACKAGE.parent)) for file in PACKAGE.glob("guest/*")]
        files = {name: PACKAGE.parent / name for name in (*expected(), *guest)}
        files |= {str(file.relative_to(made)): file for file in information.rglob("*") if file.is_file()}
        record = f"{information.name}/RECORD"
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as opened:
            for name, file in files.items():
                opened.write(file, name)
            lines = (_record_line(name, file.read_bytes()) for name, file in files.items())
            opened.writestr(record, "".join((*lines, f"{record},,\n")))
    return wheel


def add(wheel: Path, name: str, content: bytes) -> None:
    """Puts a file into a wheel, and its line into the wheel's RECORD, which stands last."""
    made = wheel.with_suffix(".part")
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as after:
        *entries, record = sorted(before.infolist(), key=lambda entry: entry.filename.endswith(".dist-info/RECORD"))
        for entry in entries:
            after.writestr(entry, before.read(entry))
        after.writestr(name, content)
        after.writestr(record, before.read(record) + _record_line(name, content).encode())
    made.replace(wheel)


def _record_line(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def missing_from(wheel: Path) -> list[str]:
    """The files that belong into the wheel and are not in it."""
    with zipfile.ZipFile(wheel) as opened:
        inside = set(opened.namelist())
    lacking = [name for name in (*expected(), man_page.INSTALLED) if name not in inside]
    return lacking + [name for name in LICENSES if not any(one.endswith(f"/licenses/{name}") for one in inside)]


def expected() -> list[str]:
    """The names of all that the package consists of, links followed; the extension for one."""
    found = [
        Path(folder, name).relative_to(PACKAGE.parent)
        for folder, _, names in os.walk(PACKAGE, followlinks=True)
        for name in names
        if not name.endswith((".pyc", ".so"))
    ]
    return [*sorted(map(str, found)), "iolab/_native.abi3.so"]


def wrong_in(wheel: Path, processor: str) -> list[str]:
    """What is wrong with the wheel's name and with what its extension was built for."""
    wrong = []
    if not (f"-{PYTHON_TAG}-{MANYLINUX}_{processor}" in wheel.name and wheel.name.startswith("iolab-")):
        wrong.append(f"expected a name with {PYTHON_TAG}-{MANYLINUX}_{processor}")
    with zipfile.ZipFile(wheel) as opened, opened.open("iolab/_native.abi3.so") as extension:
        (machine,) = struct.unpack_from("<H", extension.read(20), 18)
        wrong += [f"{name} names {ROOT}" for name in opened.namelist() if str(ROOT).encode() in opened.read(name)]
    if machine != MACHINES[processor]:
        wrong.append(f"the extension is for ELF machine {machine}, expected {MACHINES[processor]}")
    return wrong


def try_out(wheel: Path) -> None:
    """Installs the wheel into an empty environment and uses it; CalledProcessError or AssertionError if it fails."""
    with tempfile.TemporaryDirectory(prefix="iolab-wheel-") as made:
        place = Path(made)
        subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
        programs = place / "venv" / "bin"
        subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", wheel], cwd=place, check=True)
        assert shutil.which("cargo", path=str(programs)) is None
        (place / "short.toml").write_text(EXPERIMENT)

        def used(*command: str) -> str:
            done = subprocess.run(
                [programs / command[0], *command[1:]],
                cwd=place,
                env={"PATH": str(programs), "IOLAB_STATE_DIR": str(place / "state"), "NO_COLOR": "1"},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            return done.stdout

        machines = json.loads(used("iolab", "list", "machines", "--json"))
        assert len(machines["machines"]) == 1 + len(list((ROOT / "machines").glob("*.toml")))
        assert machines["scorecard"]
        used("iolab", "run", "short.toml", "--out", "out")
        used("iolab", "run", "model", "--rounds", "2", "--out", "supplied")
        used("iolab", "report", "out", "-o", "out.html")
        (verdict,) = json.loads(used("iolab", "compare", "out", "--metric", "iops", "--json"))["comparisons"]
        assert verdict["verdict"] == "faster", verdict
        used("python", "-c", PROGRAM)
        assert (place / "venv" / "share" / "man" / "man1" / "iolab.1").is_file()


def _prepare(target: str) -> str | None:
    """Why wheels for `target` can't be built here; None if they can. Adds what rustup can add."""
    if shutil.which("cargo") is None:
        return "no cargo: install Rust (rustup, or the distribution's cargo)"
    if _has(target):
        return None
    if shutil.which("rustup") is not None:
        print(f"adding Rust's standard library for {target}", file=sys.stderr)
        subprocess.run(["rustup", "target", "add", target], check=False)
    return None if _has(target) else f"Rust's standard library for {target} is missing: rustup target add {target}"


def _has(target: str) -> bool:
    asked = ["rustc", "--print", "target-libdir", "--target", target]
    libraries = subprocess.run(asked, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    return any(Path(libraries).glob("libstd-*"))


def _fail(why: Sequence[str] | str) -> int:
    print(f"wheel: {why}", file=sys.stderr)
    return 3


if __name__ == "__main__":
    sys.exit(main())
