"""Claims: what a file of them may say, what an answer is, and what `iolab claim new` makes of a mail."""

import json
import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.base import data
from iolab.base.errors import InputError
from iolab.domain.claim.finding import Findings, answer_of_change, answer_of_path, state_of
from iolab.domain.cost.measure import Change
from iolab.domain.cost.path_cost import PathCost
from iolab.files.experiment import load as load_experiment
from iolab.presentation.table import claim as table
from iolab.studies.claims import library
from iolab.studies.claims.ask import Asker
from iolab.studies.claims.mail import skeleton
from iolab.studies.cost.paths import chosen
from iolab.studies.reproduction.effects import PLACES
from iolab.studies.reproduction.publication import loads
from support.command_line import CommandLine

CLAIM = """
title = "Fewer allocations"
source = "A. Hacker, a mail of May 2020"
date = "2020-05-03"
commit = "12e4e8c7ab59"
[setup]
kernel = "5.7"
[effects.iops]
text = "The rate rises."
of = "IOPS"
direction = "more"
size = 7
unit = "%"
[effects.work]
text = "One allocation less."
of = "allocations"
direction = "less"
before = 2
after = 1
unit = "1/op"
[asks.count]
effect = "work"
by = "count"
why = "They are counted."
path = "null-read"
base = "6.1"
tip = "6.12"
measure = "allocations"
[not_asked]
others = "nothing else counts them"
"""
MAIL = """From: Robot <robot@example.org>
To: list@example.org
Subject: [mm] 8cc621d2f4: fio.write_iops -21.8% regression
Date: Thu, 20 May 2021 16:31:44 +0800
Message-ID: <20210520083144.GD1@example>
Content-Type: text/plain

we noticed a -21.8% regression of fio.write_iops due to commit:

commit: 8cc621d2f45ddd3dc664024a647ee7adf48d79a5 ("mm: invalidate")

on 5.13-rc1, linux 5.12 before, at 2.10GHz
	rw: randwrite
	bs: 4k
$ fio --rw=randwrite --bs=4k --ioengine=libaio x
> no fio here, and v2 of the patch
"""
FS_MARK = """2012-07-03 01:02:03

by Some Body

[permalink]
Subject: creates of files

FSUse%        Count         Size    Files/sec     App Overhead
     0      1600000            0     108013.4         14297
     0      3200000            0     105230.1         14300
"""


def refused(text: str) -> str:
    with pytest.raises(InputError) as error:
        loads(text, Path("claim.toml"))
    return str(error.value)


def test_a_claim_states_effects_asks_and_reasons() -> None:
    effects = loads(CLAIM, Path("claim.toml")).effects
    assert list(effects.claimed) == ["iops", "work"] and list(effects.asks) == ["count"]
    assert effects.not_asked == dict.fromkeys(("paced", "model", "host"), "nothing else counts them")


@pytest.mark.parametrize(
    ("old", "new", "where", "what"),
    [
        ('date = "2020-05-03"', 'date = "May 2020"', "date", 'expected a day, a month or a year such as "2022-11-02"'),
        ('"12e4e8c7ab59"', '"v5.7"', "commit", "expected 7 to 40 hexadecimal digits"),
        ('direction = "more"', 'direction = "faster"', "effects.iops.direction", 'faster": unknown'),
        ('unit = "%"\n', "", "effects.iops.unit", "missing; size has one"),
        ("size = 7\n", "", "effects.iops.unit", "a unit without a figure"),
        ("before = 2\n", "", "effects.work", "expected before and after together"),
        ("after = 1\n", "after = 3\n", "effects.work.direction", "less given; before is 2 and after is 3"),
        ('effect = "work"', 'effect = "wrok"', "asks.count.effect", "did you mean work?"),
        ('effect = "work"\n', "", "asks.count.effect", "missing; expected one of iops, work"),
        ('by = "count"', 'by = "guess"', "asks.count.by", 'guess": unknown'),
        ('tip = "6.12"\n', "", "asks.count.tip", "missing; a path is counted under two kernels"),
        ('measure = "allocations"', 'measure = "alocations"', "asks.count.measure", "did you mean allocations?"),
        ('path = "null-read"\n', "", "asks.count.base", "by count only, with a path; leave it out"),
        ('by = "count"', 'by = "host"', "asks.count.path", "by count only, with a path; leave it out"),
        ('by = "count"', 'by = "model"', "asks.count.statement", "missing; a model is asked a claim of this file"),
        ('measure = "allocations"', 'metric = "iops"', "asks.count.metric", "not with a path; leave it out"),
        ("others =", "others_ =", "not_asked.others_", "did you mean others?"),
        ("others =", "count =", "not_asked.count", "a reason not to ask, and an ask"),
        ("others =", "host =", "not_asked", "each place has an ask or a reason: [asks.NAME] by = 'paced'"),
        ('text = "The rate rises."', 'text = "?"', "effects.iops.text", '"?" stands for what is to be completed'),
        ("effect =", "efect =", "asks.count.efect", "did you mean effect?"),
    ],
)
def test_a_mistake_is_one_line_that_names_its_place(old: str, new: str, where: str, what: str) -> None:
    assert old in CLAIM
    lines = refused(CLAIM.replace(old, new, 1)).splitlines()
    (line,) = (line for line in lines if f"{where}: " in line and what in line)
    assert line.startswith("claim.toml")


def test_an_ask_is_of_the_only_effect() -> None:
    head, others = CLAIM.split("[effects.iops]")[0], CLAIM[CLAIM.index("[effects.work]") :]
    effects = loads((head + others).replace('effect = "work"\n', ""), Path("claim.toml")).effects
    assert effects.asks["count"].effect == "work"


def test_a_count_of_an_experiment_is_one_of_the_kernels_instructions() -> None:
    head, rest = CLAIM.split("path =")[0], CLAIM[CLAIM.index("[not_asked]") :]
    text = head + 'experiment = "e.toml"\nbaseline = "a"\nsetting = "b"\n' + rest
    assert loads(text, Path("claim.toml")).effects.asks["count"].metric == "kernel_instructions_per_op"
    assert "asks.count.metric: missing; expected an experiment" in refused(text.replace('by = "count"', 'by = "host"'))


def test_a_file_without_anything_asked_is_refused() -> None:
    assert "nothing to compare" in refused('title = "t"\ncase_study = "none"\nsource = "s"\n')


# Answers


@given(st.floats(0.1, 1e6), st.floats(-1, 1), st.floats(0, 1), st.sampled_from(["more", "less", "same"]))
def test_an_answer_agrees_with_one_direction_at_most(base: float, share: float, width: float, asked: Any) -> None:
    change = Change(base, base * (1 + share), base * width)
    answers = {direction: answer_of_change(change, cast(Any, direction)) for direction in ("more", "less", "same")}
    assert list(answers.values()).count("agrees") <= 1
    assert ("undecided" in answers.values()) == ("agrees" not in answers.values())
    mirrored = Change(-base, -base * (1 + share), base * width)
    turned = {"more": "less", "less": "more", "same": "same"}[asked]
    assert answer_of_change(mirrored, cast(Any, turned)) == answers[asked]


def test_an_amount_that_is_gone_agrees_with_less() -> None:
    assert answer_of_change(Change(1.002, 0.007, 0.001), "less") == "agrees"
    assert answer_of_change(Change(0.0, 0.004, 0.001), "less") == "disagrees", "nothing changed"
    assert answer_of_change(Change(1.0, 0.5, None), "less") == "undecided", "one round has no interval"


def test_a_path_that_was_not_measured_answers_nothing() -> None:
    path = PathCost("null-read", "reads", why="this kernel has none")
    assert answer_of_path(path, "kernel", "less") == "not measured"


def finding(**changed: Any) -> dict[str, Any]:
    given = {"ask": "count", "by": "count", "effect": "work", "expected": "less", "answer": "agrees", "what": "reads"}
    return {**given, "date": date(2026, 11, 27).isoformat(), "iolab": "0.2.0", **changed}


@pytest.mark.parametrize(
    ("answers", "state"),
    [
        ([], "stated"),
        (["not measured"], "stated"),
        (["agrees", "undecided"], "agrees"),
        (["agrees", "disagrees"], "mixed"),
        (["disagrees", "not measured"], "disagrees"),
        (["undecided"], "undecided"),
    ],
)
def test_the_state_is_a_word_for_all_answers(answers: list[str], state: str) -> None:
    found = Findings(claim="c", findings=cast(Any, [finding(answer=answer) for answer in answers]))
    assert state_of(found.findings) == state


def test_the_score_counts_answers_by_place_and_the_clean_ones_apart(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(CLAIM)
    claim = library.load(str(tmp_path / "mine.toml"))
    answers = [{}, {"confounded": "two years"}, {"answer": "disagrees"}, {"answer": "undecided", "by": "model"}]
    answers.append({"answer": "not measured"})
    claim.store(Findings(claim="mine", findings=cast(Any, [finding(**one) for one in answers])))
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.score([claim]).splitlines()[2:]]
    assert cells == [
        ["count", "3", "2", "1", "0", "2 of 3, 67 %", "1 of 2, 50 %"],
        ["model", "1", "0", "0", "1", "0 of 0", "0 of 0"],
        ["all", "4", "2", "1", "1", "2 of 3, 67 %", "1 of 2, 50 %"],
    ]


def test_damaged_answers_are_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(CLAIM)
    claim = library.load(str(file))
    claim.answers_file.write_text('{"claim": "mine", "findings": [{"ask": 1}]}')
    with pytest.raises(InputError, match=r"mine\.answers\.json: no answers of iolab: findings\.0\.ask"):
        _ = claim.state


def test_a_place_without_an_ask_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(CLAIM)
    asker = Asker(tmp_path / "out", cast(Any, None), cast(Any, None))
    with pytest.raises(InputError, match="mine is not asked by host: nothing else counts them"):
        asker.ask(library.load(str(tmp_path / "mine.toml")), ["host"])


# Mails


def test_a_mail_of_a_robot_becomes_a_skeleton(tmp_path: Path) -> None:
    (tmp_path / "mail").write_text(MAIL)
    made = skeleton(tmp_path / "mail")
    claim = tomllib.loads(made.text)
    assert claim["source"].startswith('Robot, "[mm] 8cc621d2f4: fio.write_iops -21.8% regression", 2021-05-20')
    assert claim["date"] == "2021-05-20" and claim["commit"].startswith("8cc621d2f45d")
    assert claim["setup"]["kernel"] == "5.13-rc1, 5.12"
    assert claim["setup"]["load"].startswith("fio --rw=randwrite") and "bs=4k" in claim["setup"]["load"]
    (effect,) = claim["effects"].values()
    assert (effect["of"], effect["direction"], effect["size"]) == ("fio.write_iops", "less", 21.8)
    assert '"?" stands for what is to be completed' in refused(made.text)


def test_a_completed_skeleton_is_a_claim(tmp_path: Path) -> None:
    (tmp_path / "mail").write_text(MAIL)
    loads(skeleton(tmp_path / "mail").text.replace('"?"', '"completed"'), Path("claim.toml"))


def test_a_mail_with_a_table_has_it_in_the_skeleton(tmp_path: Path) -> None:
    (tmp_path / "mail").write_text(FS_MARK)
    made = skeleton(tmp_path / "mail")
    (figures,) = tomllib.loads(made.text)["tables"].values()
    column = next(at for at, name in enumerate(figures["columns"]) if "files_per_s" in name)
    assert "1 table" in made.found
    assert tomllib.loads(made.text)["source"] == 'Some Body, "creates of files", 2012-07-03'
    assert all(row[column] == pytest.approx(106621.75, rel=0.02) for row in figures["rows"].values())


@pytest.mark.parametrize(
    ("text", "what"),
    [("", "holds no text"), ("\n \n", "holds no text"), ("Subject: hello\n\nNothing is said here.\n", "no figures")],
)
def test_a_mail_with_nothing_in_it_is_refused(iolab: CommandLine, text: str, what: str) -> None:
    iolab.write("mail", text)
    iolab("claim", "new", "mail", status=2).assert_one_clear_line(2, "mail: ", what)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_skeleton_or_one_clear_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    mail = tmp_path_factory.mktemp("mail") / "mail"
    mail.write_bytes(content)
    try:
        tomllib.loads(skeleton(mail).text)
    except InputError as error:
        assert len(str(error).splitlines()) == 1


# The command line


def test_commands_list_show_and_refuse(iolab: CommandLine) -> None:
    listed = iolab("claims", "--json").json()
    assert [one["name"] for one in listed] == library.names()
    assert "claims stated" in iolab("claims").stdout
    shown = iolab("claims", "io-uring-irq-bio-cache").stdout
    assert "Claimed, allocations" in shown and "Pavel Begunkov" in shown
    iolab("claims", "io-uring-irq-bio-cach", status=2).assert_one_clear_line(2, "did you mean io-uring-irq-bio-cache?")
    iolab("claim", "show", "group-idle", "--rounds", "3", status=2).assert_one_clear_line(2, "--rounds", "is of ask")
    iolab("claim", "ask", "group-idle", "--by", "gues", status=2).assert_one_clear_line(2, "--by", "unknown place")


def test_a_skeleton_is_written_and_shown_when_it_is_complete(iolab: CommandLine) -> None:
    iolab.write("mail", MAIL)
    iolab("claim", "new", "mail", "-o", "mine.toml")
    assert "to be completed" in iolab("claim", "show", "mine.toml", status=2).text
    text = (iolab.cwd / "mine.toml").read_text()
    iolab.write("mine.toml", text.replace('"?"', '"completed"'))
    assert "fio.write_iops: less by 21.8 %" in iolab("claim", "show", "mine.toml").stdout


EXPERIMENT = """
machine = "model:nvme"
rounds = 2
[workloads.reads]
duration = "20ms"
file_size = "32MiB"
[settings.one]
[settings.eight]
workload = { queue_depth = 8 }
"""
OF_MODEL = """
title = "Eight at a time"
case_study = "none"
source = "a mail of 2001"
experiment = "experiment.toml"
[effects.more]
text = "Eight reads at a time are faster."
of = "IOPS"
direction = "more"
[effects.fewer]
text = "They are slower."
of = "IOPS"
direction = "less"
[claims.faster]
text = "Eight reads at a time are faster."
who = "a mail"
workload = "reads"
metric = "iops"
baseline = "one"
setting = "eight"
verdict = ["faster"]
[claims.slower]
text = "They are slower."
who = "its answer"
workload = "reads"
metric = "iops"
baseline = "one"
setting = "eight"
verdict = ["slower"]
[asks.faster]
effect = "more"
by = "model"
why = "The model has a queue."
statement = "faster"
[asks.slower]
effect = "fewer"
by = "model"
why = "The model has a queue."
statement = "slower"
[not_asked]
others = "no need"
"""


def test_a_place_that_takes_no_answers_is_refused_before_anything_is_measured(iolab: CommandLine) -> None:
    iolab.write("experiment.toml", EXPERIMENT)
    iolab.write("mine.toml", OF_MODEL)
    (iolab.cwd / "mine.answers.json").mkdir()
    iolab("claim", "ask", "mine.toml", status=None).assert_one_clear_line(2, "mine.answers.json", "is a directory")
    assert not (iolab.cwd / "iolab-runs").exists()


def test_a_claim_is_asked_and_its_answers_are_stored(iolab: CommandLine) -> None:
    iolab.write("experiment.toml", EXPERIMENT)
    iolab.write("mine.toml", OF_MODEL)
    (asked,) = iolab("claim", "ask", "mine.toml", "--by", "model", "--out", "runs", "--json").json()
    assert asked["state"] == "mixed"
    answers = {one["ask"]: one for one in asked["answers"]}
    assert answers["faster"]["answer"] == "agrees" and answers["slower"]["answer"] == "disagrees"
    assert answers["faster"]["share"] > 1 and answers["faster"]["low"] > 0.5
    (shown,) = iolab("claim", "show", "mine.toml", "--json").json()
    assert shown == asked
    assert "✗ disagrees, by model (slower)" in iolab("claims", "mine.toml").stdout


def test_an_ask_has_an_experiment_of_its_place(iolab: CommandLine) -> None:
    iolab.write("experiment.toml", EXPERIMENT)
    old = CLAIM[CLAIM.index("path =") : CLAIM.index("[not_asked]")]
    new = 'experiment = "experiment.toml"\nmetric = "iops"\nbaseline = "one"\nsetting = "eight"\n'
    iolab.write("mine.toml", CLAIM.replace(old, new))
    refused_ = iolab("claim", "ask", "mine.toml", "--by", "count", "--out", "runs", status=2)
    refused_.assert_one_clear_line(2, "asks.count.by: count given, and the experiment is not of a guest machine")


# The library


@pytest.mark.parametrize("name", data.stems(data.CLAIMS))
def test_each_claim_has_a_source_and_asks_what_exists(name: str) -> None:
    claim = library.load(name)
    published = claim.published
    assert published.date is not None and published.setup
    assert re.search(r"\d{4}|commit [0-9a-f]{7,}|Linux \d", published.source), "when, or which commit"
    assert {ask.by for ask in published.effects.asks.values()} | set(published.effects.not_asked) == set(PLACES)
    for ask in published.effects.asks.values():
        if ask.path is not None:
            assert chosen([ask.path])
        elif ask.experiment is not None:
            experiment = load_experiment((claim.file.parent / ask.experiment).resolve())
            assert {ask.baseline, ask.setting} <= set(experiment.settings)
            # One of several is named.
            named = [ask.workload] if ask.workload else list(experiment.workloads)
            assert len(named) == 1 and named[0] in experiment.workloads


def test_each_page_is_what_its_claim_comes_to() -> None:
    pages = Path(__file__).parents[1] / "docs" / "claims"
    outdated = [
        one.published.name
        for one in library.stated()
        if (pages / f"{one.published.name}.md").read_text() != table.markdown(one)
    ]
    assert not outdated, "make golden"


def test_stored_answers_are_of_asks_that_there_are() -> None:
    known = {one.published.name: one for one in library.stated()}
    for path in library.ANSWERS.glob("*.json"):
        claim = known[path.stem]
        asked = {finding.ask: finding for finding in claim.findings.findings}
        assert claim.findings.claim == path.stem and asked.keys() <= claim.published.effects.asks.keys()
        page = table.markdown(claim)
        assert all(finding.answer in page for finding in asked.values())
        json.loads(path.read_text())


def test_each_disagreement_states_its_cause_and_nothing_else_does() -> None:
    for claim in library.stated():
        disagree = {one.ask for one in claim.findings.findings if one.answer == "disagrees"}
        stated = {name for name, ask in claim.published.effects.asks.items() if ask.cause is not None}
        assert stated == disagree, claim.published.name
        page = " ".join(table.markdown(claim).split())
        assert all(" ".join(claim.published.effects.asks[name].cause.split()) in page for name in stated)
