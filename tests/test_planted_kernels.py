"""What benches/planted_kernels.py plants, and how it judges an answer: without kernels."""

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benches"))
import planted_histories as histories
import planted_kernels as bench

NAMES = [f"{number:012x}" for number in range(histories.COMMITS + 1)]
ANSWER = """\
kernel instructions per op of reads, {0} to {12}: changed by {5} (100%).
  {5}: 4,400 -> 4,450; on 3 fresh rounds against {4}: worse +1.1 % [+1.1 %, +1.2 %]

reads, main: {5} against {4}
function                     module    before     after  change
bio_endio                                22.0      72.0   +50.0  *
submit_bio -> submit_bio_of              10.0      13.0    +3.0  *
slob_page_alloc                          13.6      18.9    +5.3
total                                 4,426.0   4,484.0   +58.0

reads, main: functions that changed once, and exactly
function  module  before  after  change  between
kfree     mod       10.0   12.0    +2.0  {7} and {8}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with a body for every function that is changed."""
    tree = tmp_path / "tree"
    sites = (*histories.COMPLETION, *histories.SUBMISSION, *histories.DISPATCH, *histories.INLINED)
    sites += (*histories.SCHEDULER, *histories.CREATE)
    definitions = dict.fromkeys([(site.file, site.definition) for site in sites] + list(histories.UNUSED))
    for name, definition in definitions:
        file = tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as source:
            source.write(f"\n{definition}int given);\n\n{definition}int given)\n{{\n\treturn given;\n}}\n")
    (tree / histories.DOCUMENT).parent.mkdir(parents=True)
    (tree / histories.DOCUMENT).write_text("A drive\n")
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "base"], ["tag", "base"]):
        own = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *own, *arguments], cwd=tree, check=True)
    return tree


def test_a_campaign_has_every_kind_and_follows_from_its_seed() -> None:
    kinds = len(histories.KINDS)
    drawn = [histories.drawn(5, number) for number in range(2 * kinds)]
    assert Counter(one.kind for one in drawn) == dict.fromkeys(histories.KINDS, 2)
    assert [one.planted for one in drawn] == [histories.drawn(5, number).planted for number in range(2 * kinds)]
    assert [one.planted for one in drawn] != [histories.drawn(6, number).planted for number in range(2 * kinds)]


def test_a_history_costs_where_it_says_and_what_comes_before_is_shared(tree: Path) -> None:
    trunk: dict[int, str] = {}
    for number in range(len(histories.KINDS)):
        history = histories.drawn(5, number)
        commits = histories.written(history, tree, "base", 5, number)
        assert len(commits) == len(set(commits)) == histories.COMMITS + 1
        first = min([*history.edits, *history.unbuildable, histories.COMMITS + 1])
        for place, commit in enumerate(commits):
            if place < first:
                assert trunk.setdefault(place, commit) == commit
            source = histories.git(tree, "show", f"{commit}:{histories.BIO}")
            assert ("#error" in source) == (place in history.unbuildable)
        for place, symbols in history.planted.items():
            changed = histories.git(tree, "diff", commits[place - 1], commits[place])
            assert any(f"{symbol}(" in changed for symbol in symbols), changed


def judge(history: histories.History, said: str, *ranges: tuple[int, int], kind: str = "changes") -> bench.Judged:
    changes = [{"first": NAMES[first], "last": NAMES[last]} for first, last in ranges]
    finding = {"kind": kind, "probability": 0.99, "stopped": "decided", "changes": changes}
    return bench.judge(history, NAMES, bench.Searched(said, finding, trials=12, wall_s=1.0, processor_s=1.0))


def planted(*numbers: int) -> histories.History:
    return histories.History("some", planted=dict.fromkeys(numbers, ("bio_endio",)))


def test_functions_are_read_from_the_printed_answer() -> None:
    names = {name: number for number, name in enumerate(NAMES)}
    said = ANSWER.format(*NAMES)
    assert list(bench.functions(said, names)) == [
        ("bio_endio", 4, 5),
        ("submit_bio -> submit_bio_of", 4, 5),
        ("kfree", 7, 8),
    ]


def test_an_answer_is_right_if_all_of_it_is() -> None:
    said = ANSWER.format(*NAMES)
    found = judge(planted(5), said, (5, 5))
    assert (found.is_right, found.functions, found.innocent) == (True, [True], ["kfree at 7 to 8"])
    assert judge(planted(5, 8), said, (5, 5), (8, 8)).functions == [True, False]
    assert not judge(planted(5, 9), said, (5, 5)).is_right
    assert not judge(planted(5), said, kind="none").is_right


def test_a_range_is_right_if_the_rest_of_it_does_not_build() -> None:
    history = planted(6)
    history.breaks(4, 6)
    assert judge(history, "", (4, 7)).is_right
    assert not judge(history, "", (3, 7)).is_right


def test_an_innocent_commit_that_is_named_is_wrong() -> None:
    found = judge(planted(5), "", (5, 5), (8, 8))
    assert (found.is_right, found.innocent) == (False, ["commit 8 to 8"])


def test_where_nothing_counts_nothing_is_to_be_named() -> None:
    history = planted(5)
    history.counts = False
    assert judge(history, "", kind="none").is_right
    assert not judge(history, "", (5, 5)).is_right


def test_a_history_that_was_searched_is_not_searched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []

    def search(*_given: object) -> bench.Searched:
        searched.append(1)
        return bench.Searched("", {"kind": "none", "probability": 1, "stopped": "decided", "changes": []}, 9, 1.0, 1.0)

    monkeypatch.setattr(bench, "written", lambda *_given: NAMES)
    monkeypatch.setattr(bench, "search", search)
    first = bench.judged(tmp_path, "base", 5, 0, tmp_path)
    assert bench.judged(tmp_path, "base", 5, 0, tmp_path) == first
    assert len(searched) == 1


@pytest.mark.skipif(shutil.which("gcc") is None, reason="takes gcc")
@pytest.mark.parametrize("turns", [5, 40])
def test_a_compiler_does_not_write_a_planted_loop_out(tmp_path: Path, turns: int) -> None:
    """Five turns were five instructions, which was no more than the margin."""
    source, assembly = tmp_path / "a.c", tmp_path / "a.s"
    source.write_text(f"void f(void)\n{{\n{histories.loop(3 * turns)}}}\n")
    subprocess.run(["gcc", "-O2", "-S", "-o", assembly, source], check=True)
    jumps = [line for line in assembly.read_text().splitlines() if line.strip().startswith("j")]
    assert len(jumps) == 1
