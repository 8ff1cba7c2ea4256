"""`iolab bisect --git`: commits of a made repository, built and measured by commands whose cost is planted."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.domain.machine import Guest
from iolab.files.experiment import loads
from iolab.machines.system import git, group
from iolab.studies.run.commit_settings import with_commits
from support.command_line import CommandLine, wait_until
from support.leftovers import processes_in

COMMITS = 24
CHANGED_AT = 17
BROKEN = (10, 11)
AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
# Instructions that a machine's load does not change: the command counts what it does, with noise of its own.
PROGRAM = """\
import random
cost = {cost}
work = sum(1 for _ in range(cost))
print("worked", work + random.uniform(-10, 10))
"""


def run_git(at: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", at, *AUTHOR, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 commits, of which number 17 makes the program's work larger; two can't be built."""
    path = tmp_path_factory.mktemp("repository") / "program"
    path.mkdir()
    run_git(path, "init", "--quiet", "--initial-branch=main")
    for number in range(COMMITS):
        (path / "program.py").write_text(PROGRAM.format(cost=1300 if number >= CHANGED_AT else 1000))
        (path / "number").write_text(f"{number}\n")
        (path / "broken").write_text("yes" if number in BROKEN else "no")
        run_git(path, "add", ".")
        run_git(path, "commit", "--quiet", "-m", f"change {number}")
        run_git(path, "tag", f"v{number}")
    return path


def state_of(repository: Path) -> list[str]:
    return [run_git(repository, "status", "--porcelain", "--branch"), run_git(repository, "rev-parse", "HEAD")]


BUILD = '[ "$(cat broken)" = no ] || exit 125; echo building; cp program.py "$IOLAB_BUILD"'


def search(iolab: CommandLine, repository: Path, *more: str, good: str = "v0", bad: str = "main") -> dict[str, object]:
    arguments = ["bisect", f"{good}..{bad}", "--git", str(repository), "--measure", "python3 program.py"]
    found: dict[str, object] = iolab(*arguments, "--value", "printed", "--out", "hunt", *more, "--json").json()
    return found


def test_the_commit_is_named_and_confirmed_and_the_repository_is_as_before(
    iolab: CommandLine, repository: Path
) -> None:
    (repository / "unsaved").write_text("of the user's\n")
    before = state_of(repository)
    files = sorted(path.name for path in (repository / ".git").iterdir())
    found = search(iolab, repository, "--build", BUILD, "--confirm", "4")
    assert (found["kind"], found["stopped"], found["commits"]) == ("changes", "decided", COMMITS - 1)
    (change,) = found["changes"]  # type: ignore[misc]
    assert change["subject"] == f"change {CHANGED_AT}"
    assert change["first"] == change["last"] == run_git(repository, "rev-parse", f"v{CHANGED_AT}")
    assert (change["confirmed"]["verdict"], change["confirmed"]["n"]) == ("worse", 4)
    assert (change["before"], change["after"]) == (pytest.approx(1000, abs=20), pytest.approx(1300, abs=20))
    assert before == state_of(repository)
    assert files == sorted(path.name for path in (repository / ".git").iterdir())
    # No commit is built twice, and what a build said is kept.
    journal = [json.loads(line) for line in (iolab.cwd / "hunt" / "search.jsonl").read_text().splitlines()]
    built = [entry["place"] for entry in journal if entry["event"] == "built"]
    assert len(built) == len(set(built)) == found["builds"]
    assert any(log.read_text() == "building\n" for log in (iolab.cwd / "hunt" / "builds").glob("*.log"))
    shown = iolab("bisect", "--resume", "hunt").text
    iolab("report", "hunt", "-o", "hunt.html")
    assert '<pre tabindex="0">' in (iolab.cwd / "hunt.html").read_text()
    assert f"change {CHANGED_AT}" in shown and "# first bad commit:" in shown


def test_what_cannot_be_built_is_skipped_and_widens_the_answer(iolab: CommandLine, repository: Path) -> None:
    build = (
        f'n=$(cat number); [ "$n" -gt 13 ] && [ "$n" -lt {CHANGED_AT + 1} ] && exit 125; cp program.py "$IOLAB_BUILD"'
    )
    found = search(iolab, repository, "--build", build, "--confirm", "0")
    (change,) = found["changes"]  # type: ignore[misc]
    assert change["first"] == run_git(repository, "rev-parse", "v14")
    assert change["last"] == run_git(repository, "rev-parse", f"v{CHANGED_AT + 1}")
    assert "can't be built" in str(found["unmeasurable"])


def test_contents_that_cannot_be_built_are_tried_once(iolab: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.mkdir()
    run_git(path, "init", "--quiet", "--initial-branch=main")
    for number in range(5):
        run_git(path, "commit", "--quiet", "--allow-empty", "-m", f"change {number}")
    found = search(iolab, path, "--build", "exit 125", "--confirm", "0", good="main~4")
    assert (found["builds"], len(found["unmeasurable"])) == (1, 4)  # type: ignore[arg-type]


def test_a_merge_that_is_named_is_searched_in(iolab: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "merged"
    path.mkdir()
    run_git(path, "init", "--quiet", "--initial-branch=main")

    def commit(number: int, cost: int) -> None:
        (path / "program.py").write_text(PROGRAM.format(cost=cost) + f"# {number}\n")
        run_git(path, "add", ".")
        run_git(path, "commit", "--quiet", "-m", f"change {number}")

    for number in range(4):
        commit(number, 1000)
    run_git(path, "tag", "v0", "HEAD~3")
    run_git(path, "checkout", "--quiet", "-b", "topic")
    for number in range(4, 9):
        commit(number, 1300 if number >= 7 else 1000)
    run_git(path, "checkout", "--quiet", "main")
    run_git(path, "merge", "--quiet", "--no-ff", "-m", "merge topic", "topic")
    for number in range(9, 12):
        commit(number, 1300)
    named = search(iolab, path, "--confirm", "2", "--all-parents")
    (change,) = named["changes"]  # type: ignore[misc]
    assert (change["subject"], change["merge"]) == ("merge topic", True)
    assert [one["subject"] for one in change["within"]["changes"]] == ["change 7"]
    shown = iolab("bisect", "--resume", "hunt").text
    assert "Among the commits of the merge" in shown and "change 7" in shown
    iolab(
        "bisect", "v0..main", "--git", str(path), "--measure", "true", "--time", "0", status=None
    ).assert_one_clear_line(2, "--time", "above 0")


def test_after_its_time_a_search_says_what_it_knows(iolab: CommandLine, repository: Path) -> None:
    found = search(iolab, repository, "--time", "1ms", "--confirm", "0")
    assert (found["kind"], found["stopped"]) == ("unknown", "going on")
    assert int(str(found["measurements"])) <= 1


def test_without_a_build_the_files_are_measured_and_equal_ones_say_none(iolab: CommandLine, repository: Path) -> None:
    found = search(iolab, repository, "--confirm", "0", "--same-within", "0.1", bad="v8")
    assert found["kind"] == "none"
    assert found["changes"] == []


def test_a_killed_search_goes_on_and_measures_nothing_twice(iolab: CommandLine, repository: Path) -> None:
    arguments = [
        "bisect",
        "v0..main",
        "--git",
        str(repository),
        "--measure",
        "python3 program.py",
        "--value",
        "printed",
    ]
    process = iolab.start(*arguments, "--confirm", "0", "--out", "hunt")
    journal = iolab.cwd / "hunt" / "search.jsonl"
    wait_until(lambda: journal.exists() and journal.read_text().count('"measured"') >= 3, "three measurements")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    with journal.open("a") as file:
        file.write('{"event":"measured","place":3')  # as a kill in the middle of a line leaves it
    (iolab.cwd / "hunt" / "source" / ".git" / "index.lock").touch()  # as a kill in the middle of a checkout leaves it
    before = [line for line in journal.read_text().splitlines() if line.endswith("}")]
    found = iolab("bisect", "--resume", "hunt", "--json").json()
    assert [change["subject"] for change in found["changes"]] == [f"change {CHANGED_AT}"]
    assert journal.read_text().splitlines()[: len(before)] == before


def test_a_command_that_hangs_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    output = tmp_path / "output"
    command = "echo started; sleep 1000 & sleep 1000"
    ended = group.run(command, cwd=tmp_path, variables={}, output=output, limit_s=2)
    assert (ended.status, ended.why(2)) == (None, "did not end within 2 s")
    assert group.tail(output) == ["started"]
    assert processes_in(tmp_path) == []


def test_what_a_command_leaves_running_does_not_outlive_it(tmp_path: Path) -> None:
    ended = group.run("sleep 1000 &", cwd=tmp_path, variables={}, output=tmp_path / "output", limit_s=60)
    assert ended.status == 0
    assert processes_in(tmp_path) == []


def test_commits_are_those_along_first_parents(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "--quiet", "--initial-branch=main")
    for branch, subject in (("main", "one"), ("side", "aside"), ("main", "two")):
        if branch == "side":
            run_git(tmp_path, "checkout", "--quiet", "-b", "side")
        elif subject == "two":
            run_git(tmp_path, "checkout", "--quiet", "main")
        run_git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", subject)
    run_git(tmp_path, "merge", "--quiet", "--no-ff", "-m", "merged", "side")
    found = git.repository(tmp_path).commits("main~2", "main")
    assert [(one.subject, one.parents) for one in found] == [("one", 0), ("two", 1), ("merged", 2)]
    with pytest.raises(InputError, match="no ancestor"):
        git.repository(tmp_path).commits("side", "main~1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["v0..nowhere"], ("nowhere", "no commit")),
        (["v5..v2"], ("v5 is no ancestor of v2",)),
        (["v5"], ("v5", "range of commits")),
        (["v0..main", "--value", "walls"], ("--value", "did you mean wall")),
        (["v0..main", "--metric", "iops"], ("--metric", "for experiments")),
        (["v0..main", "--build-limit", "long"], ("--build-limit",)),
        (["v0..main", "--build", "true"], ("--build", "nothing in $IOLAB_BUILD")),
    ],
)
def test_wrong_arguments_are_one_clear_line(
    iolab: CommandLine, repository: Path, arguments: list[str], words: tuple[str, ...]
) -> None:
    common = ["--git", str(repository), "--measure", "python3 program.py", "--out", "hunt"]
    iolab("bisect", *arguments, *common, status=None).assert_one_clear_line(2, *words)


def test_versions_of_a_list_are_searched_like_commits(iolab: CommandLine) -> None:
    iolab.write("versions", "# oldest first\n" + "".join(f"1.{number}\n" for number in range(12)))
    measure = 'n=${IOLAB_VERSION#1.}; [ "$n" = 4 ] && exit 125; echo $((n < 7 ? 1000 : 1300 + n))'
    common = ["--value", "printed", "--confirm", "2", "--out", "hunt"]
    found = iolab("bisect", "--versions", "versions", "--measure", measure, *common, "--json").json()
    assert [(change["first"], change["last"]) for change in found["changes"]] == [("1.7", "1.7")]
    assert (iolab.cwd / "hunt" / "builds").is_dir()
    shown = iolab("bisect", "--resume", "hunt").text
    assert shown.startswith("11 versions, 1.0..1.11: changed by 1.7") and "git bisect" not in shown


@pytest.mark.parametrize("ends", [["--good", "1.2", "--bad", "1.5"], ["1.2..1.5"]])
def test_a_part_of_a_list_of_versions_is_searched(iolab: CommandLine, ends: list[str]) -> None:
    iolab.write("versions", "".join(f"1.{number}\n" for number in range(12)))
    search = ["bisect", "--versions", "versions", *ends, "--value", "printed", "--confirm", "0", "--out", "hunt"]
    shown = iolab(
        *search, "--measure", 'n=${IOLAB_VERSION#1.}; echo "$n 1000" >> ../../seen; echo $((n < 4 ? 9 : 12))'
    ).text
    assert shown.startswith("3 versions, 1.2..1.5: changed by 1.4")
    assert {line.split()[0] for line in (iolab.cwd / "hunt" / "seen").read_text().splitlines()} == set("2345")
    assert "build" not in shown and "commit" not in shown


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        (["--good", "1.20"], ("--good", "1.20", "version")),
        (["--good", "1.5", "--bad", "1.2"], ("--good and --bad", "1.5 does not stand before 1.2")),
        (["1.5..1.5"], ("--good and --bad", "does not stand before")),
        (["--good", "1.2", "--metric", "iops"], ("--metric", "for experiments")),
    ],
)
def test_a_part_that_the_list_has_not_is_refused(iolab: CommandLine, ends: list[str], words: tuple[str, ...]) -> None:
    iolab.write("versions", "".join(f"1.{number}\n" for number in range(12)))
    iolab("bisect", "--versions", "versions", *ends, "--measure", "true", status=None).assert_one_clear_line(2, *words)


def test_a_creep_over_versions_is_of_no_version(iolab: CommandLine) -> None:
    iolab.write("versions", "".join(f"{number}\n" for number in range(17)))
    search = ["bisect", "--versions", "versions", "--value", "printed", "--confirm", "0", "--out", "hunt"]
    shown = iolab(*search, "--measure", "echo $((1000 + 20 * IOLAB_VERSION))").text
    assert "it creeps from" in shown and "no version did it" in shown


@pytest.mark.parametrize("text", ["", "one\n", "one\ntwo\none\n"])
def test_a_list_of_fewer_than_two_versions_is_refused(iolab: CommandLine, text: str) -> None:
    iolab.write("versions", text)
    arguments = ["bisect", "--versions", "versions", "--measure", "true"]
    iolab(*arguments, status=None).assert_one_clear_line(2, "versions", "a line each")


def test_the_commits_of_a_tree_become_settings_that_need_no_repository(repository: Path) -> None:
    text = 'machine = "guest:6.1.0-56-cloud"\n[workloads.reads]\noperations = 100\n'
    written = with_commits(text, "reads.toml", repository, "v3", "v6")
    found = loads(written, "reads.toml")
    commits = [run_git(repository, "rev-parse", f"v{number}") for number in range(3, 7)]
    assert found.machine.kernels == [f"{repository}@{commit}" for commit in commits]
    assert "# change 5" in written
    with pytest.raises(InputError, match="the commits are the kernels of one setting"):
        with_commits(text + "[settings.one]\n[settings.two]\n", "reads.toml", repository, "v3", "v6")
    with pytest.raises(InputError, match="the commits are the kernels of one setting"):
        with_commits(text + '[settings.one]\nkernel = "6.1.0-56-cloud"\n', "reads.toml", repository, "v3", "v6")


def test_a_setting_beside_the_commits_is_theirs(repository: Path) -> None:
    text = 'machine = "guest:6.1.0-56-cloud"\n[workloads.reads]\noperations = 100\n'
    one = '[settings.one]\nscheduler = "bfq"\nmachine = { config = "plain", "drive_parameters.irqmode" = 2 }\n'
    found = loads(with_commits(text + one, "reads.toml", repository, "v3", "v6"), "reads.toml")
    assert len(found.settings) == 4
    assert isinstance(found.machine, Guest)
    for name, setting in found.settings.items():
        guest = found.machine.under[name]
        assert "bfq" in str(setting)
        assert (guest.config, guest.drive_parameters) == ("plain", {"irqmode": "2"})
        assert name in guest.kernel


def test_what_is_for_commits_is_refused_for_experiments(iolab: CommandLine) -> None:
    iolab("bisect", "a.toml", "--measure", "true", status=None).assert_one_clear_line(2, "--measure", "--git")
