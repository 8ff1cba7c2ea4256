"""Every example in README.md and docs/ is tried: see support/examples.py for how one is marked."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet
from support import prepared
from support.examples import Example, chains, examples

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
TIME_LIMIT_S = 600


def cases(document: Path) -> Iterator[ParameterSet]:
    """A test for each chain of examples."""
    for chain in chains([example for example in examples(document, ROOT) if example.is_run]):
        marks = [pytest.mark.machine] if any(example.needs_the_machine for example in chain) else []
        # What root makes, such as a mount, is not to be copied into a mount namespace of a test that is alone.
        shares_the_machine = os.geteuid() == 0 and any(example.needs_root for example in chain)
        marks += [pytest.mark.root] if shares_the_machine else []
        marks += [pytest.mark.long] if any(example.is_long for example in chain) else []
        yield pytest.param(chain, id=chain[0].where, marks=marks)


@pytest.mark.parametrize("chain", [case for document in DOCUMENTS for case in cases(document)])
def test_examples_work(chain: list[Example], tmp_path: Path, leftovers: None) -> None:
    for name in ("experiments", "docs", "machines", "published"):
        (tmp_path / name).symlink_to(ROOT / name)
    left_out = []
    for example in chain:
        if example.needs_root and os.geteuid() != 0:
            left_out.append(example.where)
        else:
            TRY[example.language](example, tmp_path)
    if left_out:
        pytest.skip(f"needs root: {', '.join(left_out)}")


def try_console(example: Example, directory: Path) -> None:
    for command, shown in example.commands:
        output = run(["bash", "-c", command], example, directory)
        if example.compares_output:
            assert output.rstrip() == shown.rstrip(), f"{example.where}: `{command}` prints something else"


def try_experiment(example: Example, directory: Path) -> None:
    from iolab.base.errors import InputError
    from iolab.files import experiment

    assert example.file_name
    path = directory / example.file_name
    path.write_text(example.text)
    if "[workloads" not in example.text:
        return  # a machine's file: the experiments that name it read it
    try:
        experiment.load(path)
    except InputError as error:
        pytest.fail(f"{example.where}: {error}")


def try_python(example: Example, directory: Path) -> None:
    run([sys.executable, "-c", example.text], example, directory)


TRY = {"console": try_console, "toml": try_experiment, "python": try_python}


def run(command: list[str], example: Example, directory: Path) -> str:
    programs = [prepared.program().parent, Path(sys.executable).parent]
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, f"{example.where}: {command[-1]}\n{done.stdout}{done.stderr}"
    return done.stdout
