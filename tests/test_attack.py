"""A small part of the attack kit, so that the kit itself stays alive; `make attack` is all of it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

KIT = Path(__file__).parents[1] / "attack" / "run.py"
TIME_LIMIT_S = 900.0


def attack(*arguments: str) -> dict[str, tuple[int, int]]:
    """Attacks and wrong ones of each family; fails when anything is wrong."""
    done = subprocess.run(
        [sys.executable, KIT, "--quick", "--locked", "--seed", "1", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIME_LIMIT_S,
    )
    rows = re.findall(r"^(\w+) +([\d,]+) +[\d.]+ +([\d,]+)$", done.stdout, re.M)
    counts = {name: (int(attacks.replace(",", "")), int(wrong.replace(",", ""))) for name, attacks, wrong in rows}
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return counts


@pytest.mark.long
@pytest.mark.machine
def test_damaged_stores_changed_inputs_lies_read_back_and_guests_that_lie() -> None:
    counts = attack("stores", "inputs", "readback", "gits", "guests")
    assert counts["stores"][0] >= 25
    assert counts["inputs"][0] >= 200
    assert counts["readback"][0] >= 60
    assert counts["guests"][0] >= 200


@pytest.mark.long
@pytest.mark.root
@pytest.mark.machine
def test_kills_devices_plants_and_hangs() -> None:
    counts = attack("planted", "others", "devices", "hung", "kills", "servers")
    assert counts["kills"][0] >= 5
    assert all(attacks for attacks, _ in counts.values())


@pytest.mark.machine
def test_a_case_is_made_again_by_its_number_and_a_broken_iolab_is_found_out(tmp_path: Path) -> None:
    """The oracle itself: a command line that ends in a traceback, or shows another number, is wrong."""
    broken = tmp_path / "broken.py"
    broken.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(KIT.parent)!r})\n"
        f"sys.path.insert(0, {str(KIT.parent.parent / 'tests')!r})\n"
        "import stores\n"
        "from stores import Cases, Damage\n"
        "sound = {'1': {'trial': '1', 'rate': '5'}}\n"
        "case = Cases.__new__(Cases)\n"
        "case.rows = sound\n"
        "assert not case._compared({'1': {'trial': '1', 'rate': '5'}}, Damage())\n"
        "assert 'wrong number' in case._compared({'1': {'trial': '1', 'rate': '6'}}, Damage())[0]\n"
        "assert 'not shown' in case._compared({}, Damage())[0]\n"
        "assert not case._compared({}, Damage({1}))\n"
        "assert 'never were' in case._compared({**sound, '9': {}}, Damage())[0]\n"
    )
    done = subprocess.run([sys.executable, broken], capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
