"""Cells of the A x Q x C matrix: the CPUs that they mean, what of it a kernel can do, and how an experiment says it."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.domain import control
from iolab.domain.control import UnsupportedSetting
from iolab.domain.control.cell import LETTERS, Cell, resolve
from iolab.files.experiment import loads
from iolab.machines.host.control import AppliedValue, Context, apply, place
from iolab.machines.system import interrupt
from iolab.machines.system.block import device_at
from iolab.machines.system.undo import UndoJournal
from support.experiments import SCRATCH, experiment
from support.trials import io_trial, scratch_target

MATRIX = 'affinity = { application = ["X", "I"], queue = ["X", "A", "I"], completion = ["X", "A", "I"] }'
CELLS = [" ".join(letters) for letters in product("XI", "XAI", "XAI")]
ON_TWO_CPUS = {
    "X A A": Cell(0, 0, 0, 1),
    "X A I": Cell(0, 0, 1, 1),
    "X I I": Cell(0, 1, 1, 1),
    "I X A": Cell(1, 0, 1, 1),
    "I X I": Cell(1, 0, 1, 1),
    "I A A": Cell(1, 1, 1, 1),
    "I A I": Cell(1, 1, 1, 1),
    "I I A": Cell(1, 1, 1, 1),
    "I I I": Cell(1, 1, 1, 1),
}
ONLY_ON_THREE_CPUS = {"X X I": Cell(0, 2, 1, 1)}


def asked(letters: str) -> dict[str, Any]:
    application, queue, completion = (LETTERS[letter] for letter in letters.split())
    return {"application": application, "queue": queue, "completion": completion}


@pytest.mark.parametrize("letters", CELLS)
@pytest.mark.parametrize(
    ("cpus", "possible"), [([0, 1], ON_TWO_CPUS), ([0, 1, 2, 3], ON_TWO_CPUS | ONLY_ON_THREE_CPUS)], ids=["two", "four"]
)
def test_what_the_kernel_can_do_of_the_matrix(letters: str, cpus: list[int], possible: dict[str, Cell]) -> None:
    if letters in possible:
        assert resolve(asked(letters), cpus, interrupt=1) == possible[letters]
    else:
        with pytest.raises(UnsupportedSetting):
            resolve(asked(letters), cpus, interrupt=1)


@given(
    cpus=st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True),
    interrupt=st.integers(0, 9),
    parts=st.tuples(*(st.one_of(st.sampled_from(sorted(LETTERS.values())), st.integers(0, 9)) for _ in range(3))),
)
def test_a_cell_that_resolves_is_one_that_the_kernel_does(
    cpus: list[int], interrupt: int, parts: tuple[Any, Any, Any]
) -> None:
    application, queue, completion = parts
    if application == "application":
        return
    table = {"application": application, "queue": queue, "completion": completion}
    try:
        cell = resolve(table, cpus, interrupt)
    except UnsupportedSetting:
        return
    assert {cell.application, cell.queue, cell.completion} <= set(cpus)
    assert cell.completion == (cell.interrupt if cell.rq_affinity == 0 else cell.queue)
    if queue == "other":
        assert cell.queue not in (cell.application, cell.interrupt)


def test_a_matrix_has_the_posted_order_and_names() -> None:
    text = experiment(SCRATCH, settings=f"[settings.cell]\n{MATRIX}\n")
    names = list(loads(text, "x.toml").settings)
    assert names == [f"cell[A={a},Q={q},C={c}]" for a, q, c in (letters.split() for letters in CELLS)]


def test_words_letters_and_numbers_are_one() -> None:
    words = {"application": "other", "queue": "application", "completion": 3}
    assert control.validate("affinity", {"application": "X", "queue": "A", "completion": 3}) == words
    text = 'affinity = { application = ["other", 2], queue = "A", completion = "I" }'
    names = list(loads(experiment(SCRATCH, settings=f"[settings.cell]\n{text}\n"), "x.toml").settings)
    assert names == ["cell[A=X]", "cell[A=2]"]


def test_it_decides_what_other_controls_would() -> None:
    text = 'affinity = { application = "X", queue = "A", completion = "A" }'
    with pytest.raises(InputError, match="cpus and rq_affinity given too"):
        loads(experiment(SCRATCH, settings=f"[settings.cell]\n{text}\ncpus = [0]\nrq_affinity = 1\n"), "x.toml")


@pytest.fixture
def placed() -> dict[str, AppliedValue]:
    cpus = {"application": 0, "queue": 1, "completion": 1, "interrupt": 1}
    return {"affinity": AppliedValue(None, cpus)}


def test_queueing_elsewhere_is_done_by_the_ring_s_thread(placed: dict[str, AppliedValue]) -> None:
    trial = io_trial(scratch_target())
    layout, main = place(trial.phases, placed)
    (group,) = main.load["groups"]  # type: ignore[union-attr]
    assert (group["cpus"], group["sqpoll"], group["sqpoll_cpu"]) == ([0], True, 1)
    assert not layout.load["groups"][0]["sqpoll"]  # type: ignore[union-attr]


def test_another_engine_cannot_queue_elsewhere(placed: dict[str, AppliedValue]) -> None:
    with pytest.raises(UnsupportedSetting, match="io_uring") as raised:
        place(io_trial(scratch_target(), engine="libaio").phases, placed)
    assert raised.value.control == "affinity"


@pytest.mark.root
@pytest.mark.machine
def test_a_loop_device_s_threads_are_its_interrupt_and_are_let_go(loop_device: Path, state_dir: Path) -> None:
    mask = interrupt.workqueue_mask().read_text()
    device = device_at(loop_device)
    affinity = (device.queue / "rq_affinity").read_text()
    value = control.validate("affinity", {"application": "I", "queue": "A", "completion": "I"})
    with UndoJournal.open() as undo:
        applied = apply({"affinity": value}, Context("loop", device, undo))["affinity"].applied
        assert len({applied[name] for name in ("application", "queue", "completion", "interrupt")}) == 1
        assert applied["rq_affinity"] == "0" == (device.queue / "rq_affinity").read_text().strip()
    assert (device.queue / "rq_affinity").read_text() == affinity
    assert interrupt.workqueue_mask().read_text() == mask
