"""What probes saw, in the report: plots of their series, and their tables."""

import json
import re

import polars as pl
import pytest
from iolab.presentation.report.probes import over_rounds
from support.command_line import CommandLine
from support.experiments import experiment

pytestmark = pytest.mark.disk
SECOND = 10**9


def points(**values: list[float]) -> pl.DataFrame:
    """A point per half second, `job=[first, second, ...]`: of one round of the setting a, and doubled, of another."""
    rows = [
        {
            "trial": trial,
            "round": trial,
            "setting": "a",
            "job": job,
            "metric": metric,
            "at_ns": at * SECOND / 2,
            "value": value,
        }
        for trial in (0, 1)
        for job, of_job in values.items()
        for at, level in enumerate(of_job)
        for metric, value in (("length_s", 0.5), ("level", level * (trial + 1)))
    ]
    return pl.DataFrame(rows)


def test_a_point_has_the_median_and_the_range_of_the_rounds() -> None:
    found = over_rounds(points(all=[1.0, 10.0], cpu0=[7.0, 7.0]), "level").select("start_s", "value", "low", "high")
    assert found.rows() == [(0.0, 1.5, 1.0, 2.0), (0.5, 15.0, 10.0, 20.0)]


def test_devices_are_added_up() -> None:
    found = over_rounds(points(loop0=[1.0], loop1=[2.0]), "level")
    assert found.select("value", "low", "high").rows() == [(4.5, 3.0, 6.0)]


def test_what_was_not_seen_has_no_points() -> None:
    assert over_rounds(points(all=[1.0]), "other").is_empty()


def test_the_page_has_a_plot_of_each_series_and_each_table(iolab: CommandLine) -> None:
    target = 'kind = "directory"\npath = "."'
    iolab.write("watched.toml", experiment(target, settings="[settings.a]\n[settings.b]\n", rounds=1))
    iolab("run", "watched.toml", "--probe", "memory", "--probe", "extents", "--probe", "switches", "--out", "run")
    iolab("report", "run", "-o", "page.html")
    page = (iolab.cwd / "page.html").read_text()
    assert "What the probes saw over time" in page
    assert re.search("<figcaption>[^<]*: memory</figcaption>", page)
    (plot,) = re.findall(r'data-plot="probes-0-main-memory">(.*?)</script>', page)
    titles = [axis["title"]["text"] for name, axis in json.loads(plot)["layout"].items() if name.startswith("yaxis")]
    assert titles[0].startswith("dirty bytes")
    assert {trace["name"] for trace in json.loads(plot)["data"]} == {"a", "b"}
    assert "<summary>Extents: " in page
    assert "<summary>Profile: " not in page


def test_a_probes_table_has_its_json(iolab: CommandLine) -> None:
    target = 'kind = "directory"\npath = "."'
    iolab.write("watched.toml", experiment(target, settings="[settings.a]\n", rounds=1))
    iolab("run", "watched.toml", "--probe", "extents", "--out", "run")
    (seen,) = json.loads(iolab("show", "run", "--as", "extents", "--json").stdout)["seen"]
    assert (seen["setting"], len(seen["rounds"])) == ("a", 1)
    assert seen["rounds"][0]["files"]
    iolab("show", "run", "--as", "switches", "--json", status=2).assert_one_clear_line(2, "the probe switches was off")
    iolab("show", "run", "--as", "extends", "--json", status=2).assert_one_clear_line(2, "extents")
