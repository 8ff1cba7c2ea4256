"""Whatever a file holds, importing it ends in a run or in one clear error, for every format."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.files.importer.formats import FORMATS
from iolab.files.importer.run_import import open_run
from iolab.files.store import RunData
from iolab.presentation.table import render

SAMPLES = sorted((Path(__file__).parent / "imported").glob("*.*"))
TEXTS = [sample.read_text() for sample in SAMPLES]
WORDS = sorted(
    {word for text in TEXTS for word in text.split()} | {word for one in FORMATS.values() for word in one.words}
)
EXTREMES = [
    "nan",
    "-1",
    "1e999",
    "0",
    "9" * 30,
    "1.2.3",
    "",
    "-",
    "%",
    "{",
    "}",
    "[",
    '"',
    ",",
    "\t",
    "\n",
    "\x00",
    "é",
]

MANY = settings(
    max_examples=settings().max_examples // 3,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def read(content: bytes, name: str | None, file_name: str = "any.txt") -> None:
    """Reads it all, so that nothing stays unread lazily. Any exception but InputError fails the test."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / file_name
        path.write_bytes(content)
        try:
            run = open_run(path, name)
        except InputError as error:
            assert "\n" not in str(error)
            return
        look_at(run)


def look_at(run: RunData) -> None:
    assert run.trials.height
    assert run.metrics.filter(run.metrics["value"].is_infinite()).is_empty()
    assert run.metrics.filter(run.metrics["value"].is_nan()).is_empty()
    assert set(run.experiment.workloads) == set(run.workloads)
    run.histograms(), run.intervals(), run.remarks()
    try:
        render(run, "json")
    except InputError as error:
        pytest.fail(f"imported, and can't be shown: {error}")


mutations = st.lists(
    st.tuples(
        st.sampled_from(["cut", "drop", "swap", "insert", "repeat", "indent"]),
        st.integers(0, 10**6),
        st.sampled_from(WORDS + EXTREMES),
    ),
    max_size=6,
)


def mutated(text: str, changes: list[tuple[str, int, str]]) -> str:
    for kind, place, word in changes:
        at = place % (len(text) + 1)
        lines = text.split("\n")
        line = place % len(lines)
        if kind == "cut":
            text = text[:at]
        elif kind == "insert":
            text = text[:at] + word + text[at:]
        elif kind == "swap":
            words = lines[line].split(" ")
            words[place % len(words)] = word
            text = "\n".join([*lines[:line], " ".join(words), *lines[line + 1 :]])
        elif kind == "drop":
            text = "\n".join([*lines[:line], *lines[line + 1 :]])
        elif kind == "repeat":
            text = "\n".join([*lines[: line + 1], *lines[line:]])
        else:
            text = "\n".join(f"> {one}" for one in lines)
    return text


@pytest.mark.parametrize("name", [None, *FORMATS])
@MANY
@given(content=st.binary(max_size=2000))
def test_any_bytes(name: str | None, content: bytes) -> None:
    read(content, name)


@pytest.mark.parametrize("name", [None, *FORMATS])
@MANY
@given(lines=st.lists(st.lists(st.sampled_from(WORDS + EXTREMES), max_size=12).map(" ".join), max_size=20))
def test_lines_of_their_own_words(name: str | None, lines: list[str]) -> None:
    read("\n".join(lines).encode(), name)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
@MANY
@given(changes=mutations)
def test_samples_with_changes(sample: Path, changes: list[tuple[str, int, str]]) -> None:
    read(mutated(sample.read_text(), changes).encode(), None, sample.name)


@pytest.mark.parametrize("name", FORMATS)
@MANY
@given(text=st.sampled_from(TEXTS), changes=mutations)
def test_samples_in_the_wrong_format(name: str, text: str, changes: list[tuple[str, int, str]]) -> None:
    read(mutated(text, changes).encode(), name)
