"""The page of a trace: its sentence, its tables, and in a real browser its zoom down to single requests."""

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from iolab.presentation.cli.invoke import invoke
from iolab.presentation.report.heat import HEAT
from iolab.presentation.report.over_time import Counts
from iolab.presentation.table.trace_conclusion import TaskInFront, _tasks, conclusion, in_front, shares
from iolab.studies.trace import study, trace_of
from iolab.studies.trace.explain import explain_slow
from support.browser import BROWSER, BROWSERS

SAMPLE = Path(__file__).resolve().parents[1] / "docs" / "samples" / "trace-cmd-7.dat"
PLOT = "trace-over-time"
REQUESTS = 20_000
LINES = """([id, name]) => {
  const line = document.getElementById(id).data.find((one) => one.name === name || one.type === name);
  return [line.x.length, line.x[1] - line.x[0], line.y[line.y.length - 1]];
}"""
COUNTS = """(id) => document.getElementById(id).data.filter((one) => one.type === "heatmap")
  .map((one) => one.z.flat().reduce((sum, value) => sum + value, 0))"""
SINGLE = """(id) => document.getElementById(id).data.filter((one) => one.meta).map((one) => one.x.length)"""
ZOOM = """([id, low, high]) => Plotly.relayout(document.getElementById(id), {"xaxis.range": [low, high]})"""
WHOLE = """(id) => Plotly.relayout(document.getElementById(id), {"xaxis.autorange": true})"""
FINER = """([id, step]) => { const [map] = document.getElementById(id).data; return map.x[1] - map.x[0] < step; }"""
AS_BEFORE = """([id, length]) => document.getElementById(id).data[0].x.length === length"""
RANGES = """(id) => Object.entries(document.getElementById(id)._fullLayout)
  .filter(([name]) => /^xaxis\\d*$/.test(name)).map(([, axis]) => axis.range.join())"""


def test_a_sentence_concludes_and_names_who_was_in_front() -> None:
    figures = study(trace_of([SAMPLE]))
    assert conclusion(figures) == (
        "99 % of the time is in the device, 585.9 µs a request; "
        "8 of the slowest 10 waited behind their own process, fio-27465."
    )
    assert sum(bool(slow["ahead"]) for slow in figures["slowest"]) == 8
    assert [one.stage for one in shares(figures)] == ["queue", "scheduler", "device"]
    assert sum(one.share for one in shares(figures)) == pytest.approx(1)
    first = in_front(figures)[0]
    assert first.requests == sum(
        ahead["requests"] for slow in figures["slowest"] for ahead in slow["ahead"] if ahead["pid"] == 27465
    )


def beside_a_neighbour(path: Path) -> Path:
    """Reads of 8 KiB of postgres that are slow only while tar reads 512 KiB in two stretches of 2 s."""
    random, rows, at_s = Random(1), [], 0.0
    while at_s < 10:
        at_s += random.expovariate(200)
        busy = 2 <= at_s < 4 or 6 <= at_s < 8
        rows.append((at_s, "postgres", 812, 8192, random.lognormvariate(0, 0.3) * (20 if busy else 0.8)))
    rows += [(since + 0.02 * n, "tar", 999, 524288, random.uniform(15, 25)) for since in (2, 6) for n in range(100)]
    ended = sorted((at_s + ms / 1e3, comm, pid, size, ms) for at_s, comm, pid, size, ms in rows)
    lines = [
        f"{at_s:<11.6f} {comm:<14} {pid:<6} sda     R {1 + place * 4096:<10} {size:<6} {ms:7.2f}"
        for place, (at_s, comm, pid, size, ms) in enumerate(ended)
    ]
    head = "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)"
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


def test_the_slowest_wait_behind_the_neighbour_and_not_behind_those_in_front_of_all(tmp_path: Path) -> None:
    trace = trace_of([beside_a_neighbour(tmp_path / "biosnoop.txt")])
    figures = study(trace)
    assert {slow["pid"] for slow in figures["slowest"]} == {812}
    assert conclusion(figures).endswith("; the slowest 10 waited behind tar-999.")
    neighbour, victim = in_front(figures)
    assert (neighbour.task, victim.task) == ("tar-999", "postgres-812")
    assert neighbour.requests < victim.requests, "the victim's own are more, and as many as in front of all others"
    assert not neighbour.own
    assert victim.own
    first, *_ = explain_slow(trace).traits
    assert first.what == "came when a request of tar was in flight"


QUEUED_BEHIND_A_WRITE = """\
  8,0    0        1     0.000000000  501  Q   R 1000 + 8 [pg]
  8,0    0        2     0.000002000  501  I   R 1000 + 8 [pg]
  8,0    0        3     0.000003000  501  D   R 1000 + 8 [pg]
  8,0    0        4     0.000503000    0  C   R 1000 + 8 [0]
  8,0    0        5     0.001000000  502  Q   W 9000 + 1024 [cp]
  8,0    0        6     0.001002000  502  I   W 9000 + 1024 [cp]
  8,0    0        7     0.001003000  502  D   W 9000 + 1024 [cp]
  8,0    0        8     0.001100000  501  Q   R 2000 + 8 [pg]
  8,0    0        9     0.001102000  501  I   R 2000 + 8 [pg]
  8,0    0       10     0.041102000    0  C   W 9000 + 1024 [0]
  8,0    0       11     0.041103000    0  D   R 2000 + 8 [pg]
  8,0    0       12     0.041603000    0  C   R 2000 + 8 [{}]
"""


def test_of_few_requests_the_sentence_is_about_the_slowest_alone(tmp_path: Path) -> None:
    (tmp_path / "few.txt").write_text(QUEUED_BEHIND_A_WRITE.format(0))
    found = conclusion(study(trace_of([tmp_path / "few.txt"])))
    assert found.endswith("; the slowest took 40,503 µs, 99 % of it in the scheduler, behind cp-502.")
    # Of the write and the first read alone, nothing was in flight when the write was.
    lines = QUEUED_BEHIND_A_WRITE.splitlines(keepends=True)
    (tmp_path / "fewer.txt").write_text("".join(lines[:7]) + lines[9].replace("10 ", " 8 ", 1))
    found = conclusion(study(trace_of([tmp_path / "fewer.txt"])))
    assert found.endswith("; the slowest took 40,102 µs, 100 % of it in the device, and nothing completed meanwhile.")


def test_tasks_that_a_trace_does_not_name_are_not_called_unknown(tmp_path: Path) -> None:
    nobody = re.sub(r"  50\d  ", "    0  ", QUEUED_BEHIND_A_WRITE.format(0))
    nobody = re.sub(r"\[\w\w\]", "[(null)]", nobody)
    (tmp_path / "few.txt").write_text(nobody)
    figures = study(trace_of([tmp_path / "few.txt"]))
    assert conclusion(figures).endswith("; the slowest took 40,503 µs, 99 % of it in the scheduler, behind 1 request.")
    ahead = [
        TaskInFront(name, slow, requests, 0, weight, own=False)
        for name, slow, requests, weight in (("unknown", 4, 9, 0.6), ("cp-502", 2, 5, 0.3), ("dd-7", 1, 1, 0.1))
    ]
    assert _tasks(ahead[:1]) == "other requests"
    assert _tasks(ahead[:2]) == "cp-502 and tasks that the trace does not name"
    assert _tasks(ahead) == "cp-502 and dd-7 most"
    assert _tasks(ahead[1:]) == "cp-502"


def test_the_sentence_begins_with_what_failed(tmp_path: Path) -> None:
    (tmp_path / "failed.txt").write_text(QUEUED_BEHIND_A_WRITE.format(-5))
    found = conclusion(study(trace_of([tmp_path / "failed.txt"])))
    assert found.startswith("1 of 3 requests failed (read, EIO (-5)); ")
    assert "the slowest took 40,503 µs and failed (EIO (-5)), 99 % of it in the scheduler" in found


def test_the_last_partial_interval_is_no_outage() -> None:
    counts = Counts.of([[10, 10, 10, 1]], "rate")
    assert counts.drawn(1.0, 3.1) == [[10, 10, 10, None]]
    assert counts.drawn(1.0, 4.0) == [[10, 10, 10, 1]]
    assert Counts.of([[3]], "rate").drawn(1.0, 0.5) == [[3]], "all there is"
    assert Counts.of([[1, 2]], "count").drawn(1.0, 1.5) == [[1, 2]], "a count is lost nowhere"


def test_a_heat_map_has_one_hue() -> None:
    assert len({str(colour).rpartition(",")[0] for _, colour in HEAT}) == 1


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if BROWSER is None:
        pytest.skip(f"no browser to open the page with: none of {', '.join(BROWSERS)}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"], timeout=120_000)
        yield started
        started.close()


def opened(browser: Any, file: Path, errors: list[Any], width: int = 1280) -> Any:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.set_default_timeout(60_000)
    page.on("pageerror", lambda error: errors.append(error))
    page.goto(file.as_uri())
    return page


@pytest.mark.long
def test_zooming_draws_finer_intervals_and_then_single_requests(browser: Any, tmp_path: Path) -> None:
    random = Random(1)
    table = tmp_path / "trace.csv"
    lines = (
        f"{number * 500_000},{'RW'[number % 2]},{random.randrange(2**20) * 4096},4096,{random.randrange(10**7)}"
        for number in range(REQUESTS)
    )
    table.write_text("\n".join(lines) + "\n")
    file = tmp_path / "page.html"
    assert (
        invoke(["trace", str(table), "--columns", "time:ns,operation,offset:B,size:B,latency:ns", "-o", str(file)]) == 0
    )
    errors: list[Any] = []
    page = opened(browser, file, errors)
    page.wait_for_function("(id) => document.getElementById(id).data", arg=PLOT)
    assert page.evaluate(COUNTS, PLOT) == [REQUESTS, REQUESTS]
    assert page.evaluate(SINGLE, PLOT) == [0, 0], "too many"
    assert len(set(page.evaluate(RANGES, PLOT))) == 1, "time axes agree"
    length, step_s, last = page.evaluate(LINES, [PLOT, "read"])
    assert length <= 1024 and last is None
    page.evaluate(ZOOM, [PLOT, 2.0, 2.5])
    page.wait_for_function(FINER, arg=[PLOT, step_s * 0.51])
    finer_length, finer_s, last = page.evaluate(LINES, [PLOT, "read"])
    assert finer_length == pytest.approx(0.5 / finer_s, abs=2) and last is not None
    assert page.evaluate(COUNTS, PLOT)[1] == pytest.approx(1000, abs=4)
    page.evaluate(ZOOM, [PLOT, 2.0, 2.01])
    # 20 arrive then, and as many as arrived in the 10 ms before may be under way.
    page.wait_for_function(f"(id) => ({SINGLE})(id).every((count) => count >= 20 && count <= 41)", arg=PLOT)
    page.evaluate(WHOLE, PLOT)
    page.wait_for_function(AS_BEFORE, arg=[PLOT, length])
    page.close()
    assert not errors


def test_tables_are_sorted_by_their_headings_and_fit_a_phone(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    assert invoke(["trace", str(SAMPLE), "-o", str(file)]) == 0
    errors: list[Any] = []
    page = opened(browser, file, errors, width=390)
    assert page.locator("pre").count() == 0 and "─" not in page.inner_text("main")
    titles = page.locator("caption").all_inner_texts()
    assert titles[0] == "In front of the slowest 10" and titles[1].startswith("The slowest requests")
    assert page.locator(".stages .bar span").count() == 3
    page.wait_for_function("document.documentElement.scrollWidth <= 390")
    heading = page.locator("table").nth(1).locator("thead button", has_text="sector")
    cells = page.locator("table").nth(1).locator("tbody td:nth-child(4)")
    heading.click()
    sectors = [int(text) for text in cells.all_inner_texts()]
    assert sectors == sorted(sectors, reverse=True)
    heading.click()
    assert [int(text) for text in cells.all_inner_texts()] == sectors[::-1]
    page.close()
    assert not errors


def test_a_request_that_has_much_of_all_time_is_named() -> None:
    """Of a stall of two seconds, a mean of 700 µs is no description."""
    figures = study(trace_of([SAMPLE]))
    whole = figures["all"]["whole_ns"]
    assert whole is not None
    usual = whole["mean"] * whole["count"]
    whole["max"] = round(usual)
    whole["mean"] = 2 * usual / whole["count"]
    assert "; one request, at " in conclusion(figures)
    assert "50 % of all the time; 8 of the slowest 10 waited" in conclusion(figures)
