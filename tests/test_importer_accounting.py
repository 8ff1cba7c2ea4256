"""No figure is lost in silence: a line with one is read, or a note names it, in a text of any format."""

from pathlib import Path

import pytest
from iolab.files.importer.formats import formats_of
from iolab.files.importer.run_import import open_run
from iolab.files.importer.source import Source
from test_importer import opened

SAMPLES = [
    path
    for directory in (Path(__file__).parent / "imported", Path(__file__).parents[1] / "docs" / "samples")
    for path in sorted(directory.iterdir())
    if path.is_file() and path.suffix in (".txt", ".md")
]
TEXTS = [path for path in SAMPLES if "layers" not in path.name and formats_of(Source(path))[0].among_text]
ASIDE = "The array that it replaced wrote 77.7 GB/s in the same test."
NOT_READ = "not read: "


def notes(path: Path) -> list[str]:
    return [problem for problem in open_run(path).problems if NOT_READ in problem]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_a_tools_own_output_gets_no_note(path: Path) -> None:
    assert notes(path) == []


@pytest.mark.parametrize("place", ["above", "below"])
@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_a_figure_beside_an_output_is_noted(tmp_path: Path, path: Path, place: str) -> None:
    text = path.read_text()
    (tmp_path / path.name).write_text(f"{ASIDE}\n\n{text}" if place == "above" else f"{text.rstrip()}\n\n{ASIDE}\n")
    noted = notes(tmp_path / path.name)
    assert len(noted) == 1
    assert "1 line with figures was not read" in noted[0]
    assert ASIDE[:40] in noted[0]


def test_the_note_names_all_lines_and_what_repeats_the_figures_is_none(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "post.md",
        "I had 812 MB/s before, on 6.1.\n\n| setup | rate (MB/s) |\n|---|---|\n| old | 1,520 |\n| new | 1,710 |\n\n"
        "So 1.71 GB/s, and 1520 MB/s with the old one.\nReads are 95 us.\nWrites are 41 us.\nThanks!\n",
    )
    assert [one.partition(": ")[2] for one in run.problems] == [
        "3 lines with figures were not read: 1, 9-10 (first: 'I had 812 MB/s before, on 6.1.')"
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Performance measurements are invalid in this mode.", "the text warns: 'Performance measurements are invalid"),
        ("WARNING: Assertions are enabled", "the text warns: 'WARNING: Assertions are enabled'"),
        ("Min IOPS:               -1537890352", "is below zero: a counter of the tool ran over"),
    ],
)
def test_what_a_tool_says_against_its_figures_is_passed_on(tmp_path: Path, line: str, said: str) -> None:
    text = f"{line}\nTotal writes made:      92\nBandwidth (MB/sec):     30\nAverage IOPS:           7\n"
    (problem,) = (one for one in opened(tmp_path / "post.txt", text).problems if "not in" not in one)
    assert said in problem
