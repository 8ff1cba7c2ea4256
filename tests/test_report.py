"""The report, opened by a browser without a network."""

import json
import re
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path

import iolab
import pytest
from iolab.base.errors import InputError
from iolab.files.importer.run_import import open_run
from iolab.files.store import RunData
from iolab.presentation.report import write
from iolab.presentation.table import render
from support.browser import BROWSER, BROWSERS, opened
from support.command_line import CommandLine
from support.stored import TWO_SETTINGS, stored_run

PLOTS = ["differences-0", "rounds-0-0", "time-0-0", "latency-0-0", "latency-map-0-0", "latency-map-0-1"]
BYTES_MAX = 2_000_000
OVER_TIME = """\
machine = "model:nvme"
rounds = 2
seed = 1
[workloads.reads]
pattern = "random"
file_size = "16MiB"
warm_up = "100ms"
duration = "300ms"
cut_transient = false
queue_depth = 8
[settings.plain]
[settings.deeper]
workload = { queue_depth = 16 }
"""
SWEEP = """\
rounds = 2
seed = 7
[target]
kind = "directory"
path = "."
[workloads.reads]
file_size = "1MiB"
duration = "1s"
queue_depth = [1, 2, 4]
[settings.plain]
[settings.fast]
"""


class Addresses(HTMLParser):
    """What the page would load: every src and href outside its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name in ("src", "href", "srcset", "data") and value]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return stored_run(tmp_path_factory.mktemp("report") / "run", faster={"fast": 1.2})


@pytest.fixture(scope="module")
def page(run: RunData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write(run, path)
    return path


def without_plotting_library(page: Path) -> str:
    """The page as iolab wrote it: the second script is its own."""
    return re.sub(r"<script>.*?</script>", "", page.read_text(), count=1, flags=re.S)


def test_it_asks_for_nothing_outside_itself(page: Path) -> None:
    addresses = Addresses()
    addresses.feed(without_plotting_library(page))
    assert addresses.found
    assert all(address.startswith(("#", "data:")) for address in addresses.found)
    style = re.findall(r"<style>(.*?)</style>", page.read_text(), flags=re.S)[0]
    assert "url(" not in style and "@import" not in style


def test_it_has_the_verdicts_the_table_the_machine_and_the_exact_experiment(page: Path) -> None:
    text = without_plotting_library(page)
    assert "fast is faster than plain: on both, rate is" in text
    assert "<caption>both</caption>" in text
    assert "6.1.0-test" in text
    escaped = TWO_SETTINGS.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&#34;")
    assert escaped in text
    assert "polling was refused" in text, "a note of the trials"


def test_names_are_text_and_never_markup(page: Path) -> None:
    text = without_plotting_library(page)
    assert "<h1>Is &lt;fast&gt; faster than slow &amp; steady?</h1>" in text
    assert "A &lt;model&gt;" in text and "<model>" not in text


def test_its_plots_hold_the_numbers_of_the_run(page: Path, run: RunData) -> None:
    plots = dict(re.findall(r'data-plot="([\w-]+)">(.*?)</script>', page.read_text(), flags=re.S))
    assert set(plots) == set(PLOTS)
    rounds = json.loads(plots["rounds-0-0"])["data"]
    fast = next(trace for trace in rounds if trace["name"] == "fast" and trace["yaxis"] == "y")
    rates = run.values("read.rate_bytes_per_s", "both")["fast"].to_list()
    assert [y / fast["y"][0] for y in fast["y"]] == pytest.approx([rate / rates[0] for rate in rates])
    assert fast["x"] == list(range(1, 9))


def test_the_conclusion_comes_first_and_then_why(page: Path) -> None:
    text = without_plotting_library(page)
    order = ["Conclusion</h2>", "Why</h2>", "Results</h2>", "How large, how sure</h2>", "Latency heat map</h2>"]
    places = [text.index(heading) for heading in order]
    assert places == sorted(places)
    why = text[places[1] : places[2]]
    assert "moved" in why, "what iolab explain prints"
    open_part, folded = why.split("<details>")
    first = re.findall(r"<p>(.*?)</p>", open_part)[0]
    assert first and first.split(".")[0].split()[:3] == folded.split("<code>")[1].split()[:3]


def test_the_cause_that_explain_names_stands_open_in_the_report(tmp_path: Path) -> None:
    experiment = """
machine = "model:nvme"
rounds = 3
seed = 1
[workloads.reads]
pattern = "random"
file_size = "64MiB"
duration = "10ms"
[probes]
block = true
[settings.one]
workload = { queue_depth = 1 }
[settings.sixteen]
workload = { queue_depth = 16 }
"""
    iolab.report(iolab.run(experiment, out=tmp_path / "run"), tmp_path / "report.html")
    text = without_plotting_library(tmp_path / "report.html")
    why = text[text.index("Why</h2>") : text.index("Results</h2>")].split("<details>")[0]
    assert "workload.queue_depth is 16 in sixteen, 1 in one: on reads, " in why
    assert "<p>workload.queue_depth → queue depth" in why


def test_it_is_small_and_offers_its_numbers_as_csv(page: Path, run: RunData) -> None:
    assert page.stat().st_size < BYTES_MAX
    (address,) = re.findall(r'download="iolab.csv" href="data:text/csv;charset=utf-8;base64,([^"]*)"', page.read_text())
    assert b64decode(address).decode() == render(run, "csv")


def test_a_sweep_has_its_curves_above_the_tables(tmp_path: Path) -> None:
    write(stored_run(tmp_path / "run", SWEEP, faster={"fast": 1.2}), tmp_path / "sweep.html")
    text = (tmp_path / "sweep.html").read_text()
    assert text.index('id="sweeps-heading"') < text.index('id="table-heading"')
    plots = {
        name: json.loads(plot) for name, plot in re.findall(r'data-plot="([\w-]+)">(.*?)</script>', text, flags=re.S)
    }
    assert [trace["x"] for trace in plots["sweep-0"]["data"][:2]] == [[1, 2, 4], [1, 2, 4]]
    assert {trace["name"] for trace in plots["sweep-0-against"]["data"]} == {"plain", "fast"}
    assert plots["latency-map-0-0"]["data"][0]["x"] == ["1", "2", "4"]
    assert all(plot["data"] for plot in plots.values()), "no empty plots"


def test_the_latencies_of_a_column_of_the_heat_map_are_all_of_them(page: Path) -> None:
    plots = dict(re.findall(r'data-plot="([\w-]+)">(.*?)</script>', page.read_text(), flags=re.S))
    (heat,) = json.loads(plots["latency-map-0-0"])["data"]
    assert heat["x"] == ["plain", "fast", "alike"]
    assert [sum(column) for column in zip(*heat["z"], strict=True)] == pytest.approx([100] * 3, abs=0.01)
    assert "the records hold no latencies over time" in page.read_text()


def test_latencies_over_time_have_a_panel_per_setting(tmp_path: Path) -> None:
    run = iolab.run(OVER_TIME, out=tmp_path / "run")
    page = run.report(tmp_path / "report.html").read_text()
    assert "the records hold no latencies over time" not in page and len(page) < BYTES_MAX
    plots = dict(re.findall(r'data-plot="([\w-]+)">(.*?)</script>', page, flags=re.S))
    panels = json.loads(plots["latency-map-0-0"])["data"]
    assert len(panels) == 2 and [panel["showscale"] for panel in panels] == [True, False]
    for panel in panels:
        assert len(panel["y"]) == len(panel["z"]) + 1 and panel["y"] == sorted(panel["y"])
        assert all(len(panel["x"]) == len(row) + 1 for row in panel["z"])
        assert panel["x"][0] == pytest.approx(0.1) and len(panel["x"]) >= 4
        columns = [sum(column) for column in zip(*panel["z"], strict=True)]
        assert columns[:3] == pytest.approx([100] * 3, abs=1)
    told = run._data.latency_over_time("reads")["count"].sum()
    assert told == run._data.latency_counts("reads")["count"].sum() == run.metrics.filter(key="ops")["value"].sum()


def test_a_page_that_cannot_be_written_is_one_clear_error(run: RunData, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent/report.html: can't be written"):
        write(run, tmp_path / "absent" / "report.html")


def test_numbers_of_a_debug_build_are_not_reported(
    run: RunData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(run.state.sessions[0], "build_profile", "debug")
    with pytest.raises(InputError, match="debug build"):
        write(run, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


@pytest.mark.skipif(BROWSER is None, reason=f"no browser to open the report with: none of {', '.join(BROWSERS)}")
def test_a_browser_draws_every_plot_without_a_network_and_without_an_error(page: Path, tmp_path: Path) -> None:
    opened_page = opened(page, tmp_path / "profile")
    drawn = re.findall(r'<div class="plot[^"]*" id="([\w-]+)".*?</figure>', opened_page.dom, flags=re.S)
    assert drawn == PLOTS
    for figure in re.findall(r"<figure>.*?</figure>", opened_page.dom, flags=re.S):
        assert '<svg class="main-svg"' in figure and ('class="trace scatter' in figure or 'class="hm"' in figure)
    assert not opened_page.console, "\n".join(opened_page.console)


def test_an_imported_file_has_no_date_that_it_does_not_report_and_its_sweep_first(tmp_path: Path) -> None:
    (tmp_path / "loop.csv").write_text("setting,rate_bytes_per_s\n4k,100\n16k,200\n64k,400\n")
    write(open_run(tmp_path / "loop.csv"), tmp_path / "loop.html")
    page = (tmp_path / "loop.html").read_text()
    assert "1970" not in page.partition("<header")[2].partition("</header>")[0]
    conclusion = page.split("Conclusion</h2>")[1]
    assert conclusion.index("over size: rate is highest at 64k") < conclusion.index("One round gives no verdict")


def test_the_page_on_reports_shows_what_its_example_prints(iolab: CommandLine) -> None:
    page = (Path(__file__).parents[1] / "docs" / "read-a-report.md").read_text()
    iolab.write("schedulers.toml", page.partition("```toml\n")[2].partition("```")[0])
    iolab("run", "schedulers.toml", "--out", "schedulers")
    shown = page.partition("```text\nWhich")[2].partition("```")[0]
    assert iolab("show", "schedulers").stdout.rstrip("\n") == f"Which{shown}".rstrip("\n")
    iolab("report", "schedulers", "-o", "schedulers.html")
    sentence = " ".join(page.partition("```text\n● ")[2].partition("```")[0].split())
    report = (iolab.cwd / "schedulers.html").read_text().replace("\N{NO-BREAK SPACE}", " ").replace("&nbsp;", " ")
    assert sentence in report
