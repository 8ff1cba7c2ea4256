"""The first screen of a page with verdicts: a sentence, and a plot of the ratios with their intervals."""

from pathlib import Path

import pytest
from iolab.domain.comparison import Pair, compare_pairs
from iolab.presentation.cli.invoke import invoke
from iolab.presentation.report.forest import ROWS_MAX, forest
from support.browser import BROWSER, opened
from support.stored import stored_run

EVEN = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01]


def pair(metric: str, factor: float) -> Pair:
    spread = (1, 1.01, 0.99, 1.02, 0.98, 1.01, 1, 0.99)
    return Pair(metric, "w", "a", "b", EVEN, [one * factor * more for one, more in zip(EVEN, spread, strict=True)])


def test_an_interval_lies_around_its_ratio_on_the_right_side_of_one() -> None:
    found = forest(compare_pairs([pair("lead_s", 1.0), pair("x_s", 1.5), pair("y_s", 0.7)], same_within=0.02))
    assert found is not None and found.left_out == 0
    even, above, below = found.lines
    assert even.low < 50 < even.high
    assert 50 < above.low < above.at < above.high <= 100 and above.verdict == "slower"
    assert 0 <= below.low < below.at < below.high < 50 and below.verdict == "faster"
    assert found.same_from < 50 < found.same_to
    assert (50.0, "0 %") in found.ticks


def test_what_leads_has_a_line_and_then_what_differs_most() -> None:
    many = [pair("lead_s", 1.0), *(pair(f"m{number}_s", 1 + number / 10) for number in range(1, 15))]
    found = forest(compare_pairs(many, same_within=0.02))
    assert found is not None and len(found.lines) == ROWS_MAX and found.left_out == 15 - ROWS_MAX
    names = [line.what for line in found.lines]
    assert names[0].startswith("b: lead") and names[-1].startswith("b: m14") and "b: m1, w" not in names


def test_ticks_are_written_as_changes_are() -> None:
    found = forest(compare_pairs([pair("x_s", 15.0), pair("y_s", 0.5)], same_within=0.02))
    assert found is not None
    assert [text for _, text in found.ticks] == ["-93.8 %", "-75 %", "0 %", "4x", "16x"]
    assert found.lines[0].high < 100


def test_without_a_ratio_there_is_no_plot() -> None:
    assert forest(compare_pairs([Pair("m_s", None, "a", "b", [1.0], [2.0])], same_within=0.02)) is None


def test_the_plot_follows_the_first_sentence_of_both_pages(tmp_path: Path) -> None:
    stored_run(tmp_path / "run")
    assert invoke(["report", str(tmp_path / "run"), "-o", str(tmp_path / "report.html")]) == 0
    assert invoke(["compare", str(tmp_path / "run"), "-o", str(tmp_path / "compare.html")]) == 0
    for name in ("report.html", "compare.html"):
        page = (tmp_path / name).read_text()
        sentence, plot = page.index('class="badge'), page.index('<figure class="forest">')
        assert page.index('id="verdicts"') < sentence < plot < page.index("<table")
        assert page.index('class="badge', sentence + 1) > plot or page.count('class="badge') == 1


@pytest.mark.skipif(BROWSER is None, reason="needs a browser")
def test_the_plot_is_in_the_first_screen(tmp_path: Path) -> None:
    stored_run(tmp_path / "run")
    assert invoke(["report", str(tmp_path / "run"), "-o", str(tmp_path / "report.html")]) == 0
    measure = """<script>addEventListener("load", () => {
      const box = document.querySelector(".forest li").getBoundingClientRect();
      document.body.dataset.within = String(box.bottom < 800 && box.right <= innerWidth);
    });</script></body>"""
    page = tmp_path / "measured.html"
    page.write_text((tmp_path / "report.html").read_text().replace("</body>", measure))
    assert 'data-within="true"' in opened(page, tmp_path / "profile").dom
