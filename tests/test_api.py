"""What `import iolab` offers: a run, its frames, verdicts, explanations, figures and report, and errors of one line."""

import os
import subprocess
import sys
from pathlib import Path

import iolab
import iolab.presentation.api as api
import pandas
import polars as pl
import pytest
from conftest import CommandLine
from iolab.presentation.side_by_side import ComparisonResult
from test_compare_runs import fio

SHORT = """\
title = "What do <sixteen> buy & cost?"
machine = "model:nvme"
rounds = 4
seed = 1

[workloads.reads]
pattern = "random"
file_size = "64MiB"
duration = "100ms"

[settings.one]
workload = { queue_depth = 1 }

[settings.sixteen]
workload = { queue_depth = 16 }

[compare]
metrics = ["iops", "latency_ns_p99"]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> iolab.Run:
    where = tmp_path_factory.mktemp("api")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IOLAB_STATE_DIR", str(where / "state"))
        return iolab.run(SHORT, out=where / "out")


def test_a_run_has_frames_in_both_libraries(run: iolab.Run) -> None:
    assert (run.workloads, run.settings, run.problems) == (["reads"], ["one", "sixteen"], [])
    assert run.trials.height == 8 and set(run.trials["status"]) == {"ok"}
    assert {"iops", "latency_ns_p99"} < set(run.keys)
    assert run.values("iops").columns == ["round", "one", "sixteen"]
    assert run.values("iops", "reads").height == 4
    wide = run.wide(["iops", "latency_ns_p99"])
    assert wide.height == 8 and wide.columns[-2:] == ["iops", "latency_ns_p99"]
    as_pandas = wide.to_pandas()
    assert isinstance(as_pandas, pandas.DataFrame) and list(as_pandas["iops"]) == wide["iops"].to_list()
    assert set(run.latency_counts()["setting"]) == {"one", "sixteen"}
    assert not run.intervals().is_empty()
    assert run.remarks().columns[-1] == "text"
    assert run.series().columns[-2:] == ["at_ns", "value"]


def test_verdicts_are_those_of_the_command_line(run: iolab.Run, iolab_: CommandLine) -> None:
    told = iolab_("compare", run.path, "--json").json()["comparisons"]
    compared = iolab.compare(run)
    assert [one.as_dict() for one in compared] == told
    assert [(one.metric, one.judgement.verdict) for one in compared] == [
        ("iops", "faster"),
        ("latency_ns_p99", "slower"),
    ]
    assert compared.frame["verdict"].to_list() == ["faster", "slower"]
    assert iolab.compare(str(run.path), metrics=["iops"])[0].judgement.verdict == "faster"
    assert run.compare(baseline="sixteen", metrics=["iops"])[0].judgement.verdict == "slower"
    assert len(compared[:1]) == 1 and len(list(compared)) == len(compared) == 2


def test_two_runs_are_compared_by_name(run: iolab.Run, tmp_path: Path) -> None:
    again = iolab.run(SHORT, out=tmp_path / "again")
    compared = iolab.compare(run, again.path, metrics=["iops"])
    assert [one.judgement.ratio for one in compared] == [1.0, 1.0]
    assert len(iolab.explain(run, run, metrics=["iops"])) == 2


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_frame_is_compared(library: str) -> None:
    rows = {
        "kernel": ["old", "new"] * 6,
        "turn": [turn for turn in range(6) for _ in range(2)],
        "seconds": [value + turn / 100 for turn in range(6) for value in (9.0, 8.0)],
    }
    frame = pl.DataFrame(rows) if library == "polars" else pandas.DataFrame(rows)
    (one,) = iolab.compare(frame, setting_column="kernel", round_column="turn", baseline="old")
    assert (one.metric, one.judgement.verdict) == ("seconds", "faster")
    (by_default,) = iolab.compare(frame, setting_column="kernel", round_column="turn")
    assert by_default == one
    (one,) = iolab.compare(
        frame, setting_column="kernel", round_column="turn", baseline="old", better={"seconds": "higher"}
    )
    assert one.judgement.verdict == "worse"


def test_a_frame_is_read_as_the_command_line_reads_a_file(tmp_path: Path) -> None:
    rounds = [("6.9", "6.6"), ("6.6", "6.9")] * 4
    iops = {("6.9", "reads"): 110.0, ("6.6", "reads"): 100.0, ("6.9", "writes"): 50.0, ("6.6", "writes"): 50.0}
    rows = [
        {"kernel": kernel, "workload": workload, "round": number, "iops": iops[kernel, workload] + number / 10}
        for number, kernels in enumerate(rounds)
        for kernel in kernels
        for workload in ("reads", "writes")
    ]
    frame = pl.DataFrame(rows)
    frame.write_csv(tmp_path / "kernels.csv")
    of_file, of_frame = iolab.compare(tmp_path / "kernels.csv"), iolab.compare(frame)
    assert len(of_frame) == 2
    for one, other in zip(of_frame, of_file, strict=True):
        assert (one.metric, one.against, one.judgement) == (other.metric, other.against, other.judgement)
    assert of_frame.conditions[0] == "baseline: 6.6, the oldest version"
    for named in ({"setting_column": "kernel"}, {"setting_column": "kernel", "round_column": "round"}):
        found = iolab.compare(frame, **named)
        assert [(one.workload, one.against, one.judgement.verdict) for one in found] == [
            ("reads", "6.6", "faster"),
            ("writes", "6.6", "same"),
        ]


def test_a_result_is_explained(run: iolab.Run) -> None:
    explained = iolab.explain(run, metrics=["iops"])
    assert explained[0].result.metric == "iops"
    assert set(explained.frame.columns) >= {"result", "metric", "kind"}
    assert len(explained[:1]) == 1
    assert len(run.explain(workload="reads")) == 2


def test_any_number_of_runs_is_compared_as_on_the_command_line(
    run: iolab.Run, iolab_: CommandLine, tmp_path: Path
) -> None:
    deeper = SHORT.replace("queue_depth = 16", "queue_depth = 32")
    others = [iolab.run(deeper, out=tmp_path / name, rounds=3) for name in ("b", "c")]
    told = iolab_("compare", run.path, *(one.path for one in others), "--json").json()
    for compared in (
        iolab.compare(run, *others),
        run.compare(others[0], others[1].path),
        iolab.compare(run.path, *(one.path for one in others)),
    ):
        assert [one.as_dict() for one in compared] == told["comparisons"]
        assert len({one.setting for one in compared}) == 4 and any("differs" in line for line in compared.conditions)
    chosen = iolab.compare(run, *others, baseline="b", metrics=["iops"])
    assert {one.against for one in chosen} == {"one in b", "sixteen in b"}


def test_names_of_files_are_rounds_as_on_the_command_line(iolab_: CommandLine, tmp_path: Path) -> None:
    files = [
        fio(tmp_path / f"{name}-{number}.json", iops=iops)
        for name, iops in (("old", 1000), ("mid", 1300), ("new", 1500))
        for number in (1, 2, 3)
    ]
    told = iolab_("compare", *files, "--metric", "iops", "--json").json()["comparisons"]
    compared = iolab.compare(*files, metrics=["iops"])
    assert [one.as_dict() for one in compared] == told and [one.setting for one in compared] == ["mid", "new"]
    assert compared.conditions[0].startswith("names read as setting and round: old (3), mid (3), new (3)")
    (one,) = iolab.compare(*files[:3], *files[6:], group_by="(old|new)", metrics=["iops"])
    assert (one.against, one.setting) == ("old", "new")


def test_an_explanation_has_the_cause_and_the_budget(run: iolab.Run, iolab_: CommandLine) -> None:
    told = iolab_("explain", run.path, "--json").json()["causes"]
    assert [one.as_dict() for one in run.explain().causes] == told


def test_other_tools_files_are_loaded(tmp_path: Path) -> None:
    for name, seconds in (("a", 9.0), ("b", 8.0)):
        rows = "".join(f"{name},{turn},{seconds + turn / 100}\n" for turn in range(6))
        (tmp_path / f"{name}.csv").write_text(f"setting,round,seconds\n{rows}")
    assert iolab.load(tmp_path / "a.csv").settings == ["a"]
    both = iolab.load(tmp_path / "a.csv", str(tmp_path / "b.csv"), format="csv")
    assert both.settings == ["a", "b"]


def test_the_report_is_written_as_the_command_does(run: iolab.Run, tmp_path: Path) -> None:
    path = iolab.report(run, tmp_path / "report.html", metrics=["iops"])
    assert path == run.report(path) and "plotly" in path.read_text()


def test_figures_are_those_of_the_report(run: iolab.Run) -> None:
    latency = run.figures("latency")
    assert [figure.layout.title.text for figure in latency] == ["reads"]
    assert {trace.name for trace in latency[0].data} == {"one", "sixteen"}
    assert len(run.figures()) >= len(latency) + len(run.figures("differences"))


def test_a_notebook_shows_what_the_terminal_does_and_obeys_no_text(run: iolab.Run) -> None:
    for shown in (run, run.compare(), run.explain()):
        html = shown._repr_html_()
        assert html.startswith("<pre") and html.endswith("</pre>")
        assert "sixteen" in html
    assert "What do &lt;sixteen&gt; buy &amp; cost?" in run._repr_html_()
    hostile = ["<script>x</script>"]
    for told in (iolab.Comparisons(ComparisonResult([], problems=hostile)), iolab.Explanations([], [], hostile)):
        assert "! &lt;script&gt;" in told._repr_html_() and "<script" not in told._repr_html_()


def test_what_is_printed_is_short(run: iolab.Run) -> None:
    assert repr(run).startswith("Run(") and "sixteen" in repr(run)
    assert repr(run.compare()) == "Comparisons(2: faster, slower)"
    assert repr(run.explain(metrics=["iops"])).startswith("Explanations(iops: ")


def test_mistakes_are_errors_of_one_line(run: iolab.Run, tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1.0]})
    for mistake, said in (
        (lambda: iolab.load(tmp_path / "gone"), "gone"),
        (lambda: iolab.run("modle"), "did you mean model?"),
        (lambda: iolab.run(SHORT, machine="model:nvem"), "nvem"),
        (lambda: iolab.run(SHORT.replace("pattern", "patern"), out=tmp_path / "x"), "experiment:7:"),
        (lambda: iolab.run(SHORT, probes=["blok"]), "did you mean block?"),
        (lambda: iolab.run(SHORT, out=run.path), "out"),
        (lambda: run.values("iop"), "did you mean iops?"),
        (lambda: run.wide(["iop"]), "did you mean iops?"),
        (lambda: run.values("iops", "writes"), "writes: no such workload"),
        (lambda: run.figures("latncy"), "did you mean latency?"),
        (lambda: iolab.compare(run, same_within=2), "same_within"),
        (lambda: iolab.compare(run, setting_column="x"), "is for frames"),
        (lambda: iolab.compare(run, run), "is given twice"),
        (lambda: iolab.compare(run, run.path.parent / "other", baseline="one"), "other: does not exist"),
        (lambda: iolab.explain(run, run, baseline="one"), "baseline"),
        (lambda: iolab.explain(run, workload="writes"), "writes"),
        (lambda: iolab.compare(frame, setting_column="kernl"), "setting_column: kernl: unknown column"),
        (lambda: iolab.compare(frame, round_column="a"), "give setting_column"),
        (lambda: iolab.compare(frame, by_job=True, setting_column="a", round_column="a", baseline="1"), "for runs"),
        (lambda: iolab.compare(run, run.path, group_by="(a)"), "group_by"),
        (lambda: iolab.compare(run, by_job=True, job="a"), "by_job is given too"),
        (lambda: iolab.compare(frame, run, setting_column="a", round_column="a", baseline="1"), "not with a frame"),
        (lambda: iolab.compare(17), "int given"),
        (lambda: iolab.report(run, tmp_path / "no" / "such" / "report.html"), "no"),
    ):
        with pytest.raises(iolab.IolabError) as raised:
            mistake()
        assert said in str(raised.value) and "\n" not in str(raised.value), raised.value


def test_what_the_system_refuses_is_an_error_of_iolab(
    run: iolab.Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied", "/x")

    monkeypatch.setattr(api, "write", refuse)
    with pytest.raises(iolab.MachineError, match="/x: no permission"):
        iolab.report(run, tmp_path / "report.html")


def test_an_interrupted_run_is_an_error_of_iolab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise iolab.InterruptedRun("stopped", where="out")

    monkeypatch.setattr(api, "start", interrupted)
    with pytest.raises(iolab.InterruptedRun):
        iolab.run(SHORT, out=tmp_path / "out")


def test_importing_loads_nothing_that_is_slow() -> None:
    text = "import iolab, sys; print(sorted(n for n in sys.modules if n.startswith(('iolab', 'polars', 'typer'))))"
    places = os.pathsep.join(place for place in sys.path if place)
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "['iolab']"
    assert set(iolab.__all__) < set(dir(iolab))
    with pytest.raises(AttributeError, match="has no attribute 'runn'"):
        _ = iolab.runn


@pytest.fixture
def iolab_(request: pytest.FixtureRequest) -> CommandLine:
    """The command line; `iolab` is the package here."""
    command_line: CommandLine = request.getfixturevalue("iolab")
    return command_line
