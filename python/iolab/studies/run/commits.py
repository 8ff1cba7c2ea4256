"""A search among the commits of a git repository, or the versions of a list: each is built once, measured by a
command, as often as it takes.

The directory of a search holds all that is needed to continue it:

    origin            the question, signed by who began the search or agreed to continue it search.jsonl      the
    question, then each build and each measurement, a checked line each, in the order of time source/           a clone
    that borrows the repository's objects, in which commits are built; of a list, where its
                      builds run
    builds/KEY/       what a build left, by the contents of its commit and the command; KEY.log: what it said
    measured.log      what the last measurement printed
    merge-COMMIT/     the search in what a merge brought (`all_parents`), in the same form

The user's repository is only read.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from iolab.base import beneath, checked_lines, replaceable
from iolab.base.bounded_file import read_bounded
from iolab.base.checked_lines import Lines
from iolab.base.durable import put_in_place, write_atomically
from iolab.base.errors import InputError, InterruptedRun, MachineError
from iolab.base.option import shown
from iolab.base.plain_text import counted
from iolab.base.schema import checked_json
from iolab.domain.bisect.search import VALUE_MAX, Answer, Search
from iolab.domain.definition import Nature
from iolab.domain.verdict.judgement import Judgement, judge
from iolab.machines.system import git, group
from iolab.machines.system.git import Commit, Repository
from iolab.studies.run import origin, search_file, search_loop
from iolab.studies.run.origin import Consent
from iolab.studies.run.search_file import BuildEnded, CommitUnmeasurable, LimitSeconds, MeasurementEnded, Text

CANNOT = 125
"""The exit status by which a command reports that this version can't be built or measured, as of `git bisect run`."""
COMMITS_MAX = 20_000
FORMAT = 1
ORIGIN = "origin"
ORIGIN_BYTES_MAX = 1000
EXPORT = 'git archive HEAD | tar -x -C "$IOLAB_BUILD"'
"""The build if none is given: the commit's files."""
NAME_ONLY = 'printf "%s\\n" "$IOLAB_VERSION" > "$IOLAB_BUILD/version"'
"""The build of a version of a list if none is given."""
Value = Literal["wall", "cpu", "printed"]
VALUES: tuple[Value, ...] = ("wall", "cpu", "printed")
MOST_MAX, CONFIRM_MAX, SPREAD_MAX = 10_000, 1_000, 1_000


@dataclass(frozen=True)
class GitQuestion:
    """What is asked. `repository`: empty if `versions` lists what is searched, oldest first; `measure`, `build`:
    commands for a shell; `value`: one of `VALUES`; limits in seconds; `spread`: see `Search`; `time_s`: after so long a
    session measures no further; `all_parents`: whether to continue among the commits of a named merge."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    repository: Text
    good: Text
    bad: Text
    build: Text | None
    measure: Text
    value: Value
    higher_is_better: bool
    same_within: Annotated[float, Field(ge=0, lt=1)]
    confidence: Annotated[float, Field(ge=0.5, lt=1)]
    most: Annotated[int, Field(ge=1, le=MOST_MAX)]
    confirm: Annotated[int, Field(ge=0, le=CONFIRM_MAX)]
    build_limit_s: LimitSeconds
    measure_limit_s: LimitSeconds
    seed: Annotated[int, Field(ge=0)]
    spread: Annotated[int, Field(ge=0, le=SPREAD_MAX)] | None = None
    versions: tuple[Text, ...] = ()
    time_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    all_parents: bool = False

    @property
    def nature(self) -> Nature:
        """How a difference is called."""
        if self.value == "printed":
            return "benefit" if self.higher_is_better else "cost"
        return "time" if self.value == "wall" else "cost"


@dataclass
class GitFinding:
    """What a search among commits has found by now. Places are in `commits`; `values` of confirmations by the place of
    the commit that is named, then the round: place -> value."""

    question: GitQuestion
    commits: list[Commit]
    search: Search
    confirmations: dict[int, dict[int, dict[int, float]]] = field(default_factory=dict)
    unmeasurable: dict[int, str] = field(default_factory=dict)
    builds: int = 0
    build_s: float = 0.0
    measurements: int = 0
    measure_s: float = 0.0
    was_built: set[int] = field(default_factory=set)
    within: dict[int, GitFinding] = field(default_factory=dict)
    """By the place of a merge that is named, what was found among the commits that it brought."""

    def cost_s(self, place: int) -> float:
        """What a measurement of this commit is expected to take, its build included if it has none yet."""
        measured = self.measure_s / max(self.measurements, 1)
        built = place in self.was_built or not self.builds
        return max(measured + (0.0 if built else self.build_s / self.builds), 1e-3)

    @property
    def answer(self) -> Answer:
        """What is known."""
        return self.search.answer()

    @property
    def named(self) -> list[int]:
        """The places of the commits that the answer names."""
        return self.answer.named

    def judged(self, place: int) -> Judgement | None:
        """The verdict on fresh rounds, of a commit that has them all."""
        rounds = [one for one in self.confirmations.get(place, {}).values() if len(one) == 2]
        if not rounds or len(rounds) < self.question.confirm:
            return None
        before, after = ([one[at] for one in rounds] for at in (place - 1, place))
        return judge(before, after, nature=self.question.nature, same_within=self.question.same_within)


def start(question: GitQuestion, out: Path, report_line: Callable[[str], None]) -> GitFinding:
    """Searches from the beginning, in a new directory. InputError for what can't be searched."""
    commits = _commits(question)
    if os.path.lexists(out):
        raise InputError("exists already", where=str(out), remedy="name a directory that does not exist")
    replaceable.refuse_strangers(out.parent)
    try:
        beneath.make_directories(out.parent)
        beneath.make_directory(out)
        beneath.make_directory(out / "builds")
        if question.versions:
            beneath.make_directory(out / "source")
    except OSError as error:
        raise InputError(f"can't be made: {error.strerror}", where=str(out), remedy="choose another --out") from None
    if not question.versions:
        git.repository(Path(question.repository)).clone(out / "source")
    with _journal(out) as append:
        append({"event": "question", "format": FORMAT, **asdict(question)})
    _sign(out, question_in(out))  # whose types make 60 of a caller 60.0
    return _resumed(out, report_line, commits, None)


def resume(out: Path, report_line: Callable[[str], None], consent: Consent | None = None) -> GitFinding:
    """Goes on with the search in a directory, to its end. InterruptedRun after Ctrl-C. `consent` is asked, before
    anything is done, about a search that this user did not make; without one it is refused."""
    return _resumed(out, report_line, None, consent)


def _resumed(
    out: Path, report_line: Callable[[str], None], commits: list[Commit] | None, consent: Consent | None
) -> GitFinding:
    with _journal(out) as append:
        question = question_in(out)
        if not origin.is_signed(_signed(question), _signature_in(out)):
            origin.ask(out, _deeds(question), consent)
            _sign(out, question)
        found = finding_in(out, commits)
        try:
            searcher = _Searcher(out, found, append, report_line)
            search_loop.complete(searcher, confirm=question.confirm, time_s=question.time_s)
            if question.all_parents:
                for place in found.named:
                    _within(out, found, place, report_line)
        except KeyboardInterrupt:
            raise InterruptedRun(
                f"interrupted with {len(found.search.values)} measurements",
                remedy=f"continue with: iolab bisect --resume {out}",
            ) from None
    return found


def _within(out: Path, found: GitFinding, place: int, report_line: Callable[[str], None]) -> None:
    """Searches what the merge brought, if it is one, in a directory of its own that shares clone and builds."""
    commit, question = found.commits[place], found.question
    if commit.parents != 2:
        return
    began, ended = git.repository(Path(question.repository)).merged(commit.sha)
    inside = replace(question, good=began, bad=ended)
    if len(commits := _commits(inside)) < 2:
        return
    report_line(f"{commit.short} is a merge: searching in what it brought")
    path = out / f"merge-{commit.short}"
    if not path.exists():
        with put_in_place(path, ("source", "builds", search_file.NAME)) as beside:
            for shared in ("source", "builds"):
                beneath.make_link(beside / shared, Path("..") / shared, out)
            with _journal(beside) as append:
                append({"event": "question", "format": FORMAT, **asdict(inside)})
    if question_in(path) != inside:
        raise InputError("is no search in what that merge brought", where=str(path), remedy=f"remove it: rm -r {path}")
    _sign(path, inside)
    found.within[place] = _resumed(path, report_line, commits, None)


def _signed(question: GitQuestion) -> list[Any]:
    return ["search", asdict(question)]


def _sign(out: Path, question: GitQuestion) -> None:
    """Records in the directory that this user made the search, or agreed to what it does."""
    if (signature := origin.signature(_signed(question))) is not None:
        write_atomically(out / ORIGIN, signature.encode(), out)


def _signature_in(out: Path) -> str | None:
    if not beneath.is_file(out / ORIGIN, out):
        return None
    return read_bounded(out / ORIGIN, ORIGIN_BYTES_MAX, "a signature", within=out).decode(errors="replace")


def _deeds(question: GitQuestion) -> list[str]:
    """What the search does here, a line each."""
    places = [f"check out commits of {question.repository}"] if question.repository else []
    builds = [] if question.build is None else [f"run sh -c {shown(question.build)} for each version"]
    return [*places, *builds, f"run sh -c {shown(question.measure)} for each version"]


def is_search(out: Path) -> bool:
    """Whether a directory is that of a search among commits."""
    return beneath.is_file(out / search_file.NAME)


def question_in(out: Path) -> GitQuestion:
    """What the search in a directory asks. InputError for a damaged one."""
    return _question(out, search_file.lines(out))


def finding_in(out: Path, commits: list[Commit] | None = None) -> GitFinding:
    """What the search in a directory has found. InputError names the line, and the key, of what no search wrote."""
    lines = search_file.lines(out)
    question = _question(out, lines)
    known = commits or _commits(question)
    search = Search(
        len(known),
        confidence=question.confidence,
        budget=question.most,
        spread=question.spread,
        margin=lambda level: abs(level) * question.same_within,
        seed=question.seed,
    )
    found = GitFinding(question, known, search)
    search.cost = found.cost_s
    for entry in search_file.entries(out, lines, len(known), question.confirm):
        _take(found, entry)
    return found


def _question(out: Path, lines: Lines) -> GitQuestion:
    where = out / search_file.NAME
    first = dict(lines.entries[0]) if lines.entries and lines.numbers[0] == 1 else {}
    if (first.pop("event", None), first.pop("format", None)) != ("question", FORMAT):
        raise InputError("does not begin with a question of this iolab's", where=str(where))
    try:
        asked = checked_json(TypeAdapter(GitQuestion), json.dumps({"spread": 0, **first}))
        if asked.versions and not 2 <= len(set(asked.versions)) == len(asked.versions) <= COMMITS_MAX:
            raise ValueError(f"versions: {len(asked.versions)}; expected 2 to {COMMITS_MAX:,}, each once")
        if bool(asked.repository) == bool(asked.versions):
            raise ValueError("repository, versions: expected one of the two")
    except ValueError as error:
        raise InputError(str(error), where=f"{where}:1", remedy="begin a new search") from None
    return asked


def _take(found: GitFinding, entry: BuildEnded | MeasurementEnded | CommitUnmeasurable) -> None:
    """An entry of the journal becomes known."""
    place = entry["place"]
    if entry["event"] == "built":
        found.builds += 1
        found.build_s += entry["seconds"]
        found.was_built.add(place)
    elif entry["event"] == "measured":
        found.measurements += 1
        found.measure_s += entry["seconds"]
        if entry["of"] is None or entry["round"] is None:
            found.search.measured(place, entry["value"])
        else:
            rounds = found.confirmations.setdefault(entry["of"], {})
            rounds.setdefault(entry["round"], {})[place] = entry["value"]
    else:
        found.unmeasurable[place] = entry["why"]
        found.search.unmeasurable(place)


def _commits(question: GitQuestion) -> list[Commit]:
    if question.versions:
        return [Commit(name, name, 1, "") for name in question.versions]
    found = git.repository(Path(question.repository)).commits(question.good, question.bad)
    if not 2 <= len(found) <= COMMITS_MAX:
        raise InputError(
            f"{counted(len(found), 'commit')} in the range; expected 2 to {COMMITS_MAX:,}", where="iolab bisect"
        )
    return found


@contextmanager
def _journal(out: Path) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Appends durably; no other process may continue the same search."""
    replaceable.refuse_strangers(out)
    path = out / search_file.NAME
    descriptor = beneath.open_file(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, mode=0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MachineError("another process is searching there", where=str(out)) from None
        # A kill may have torn the last line: the next line starts at the same place.
        content = read_bounded(path, search_file.BYTES_MAX, "a search's journal", within=out)
        lines = checked_lines.read(content)
        if content and not lines.entries:
            raise InputError("is no journal of a search", where=str(path), remedy="look at it; nothing was changed")
        os.ftruncate(descriptor, lines.whole_bytes)
        yield lambda entry: checked_lines.append(descriptor, entry, where=str(path))
    finally:
        os.close(descriptor)


@dataclass
class _Searcher:
    """Measures with commands: see `search_loop.MeasuredSearch`."""

    out: Path
    found: GitFinding
    append: Callable[[dict[str, Any]], None]
    report_line: Callable[[str], None]

    @property
    def shared(self) -> Path:
        """Where clone and builds lie: of a search within a merge, in the directory above, whatever a link there leads
        to."""
        place = self.out
        while (place / "builds").is_symlink():
            place = place.parent
        return place

    def wanted(self) -> int | None:
        return self.found.search.next()

    def measure(self, place: int) -> None:
        self._measure(place)

    def named(self) -> list[int]:
        return self.found.named

    def missing(self, named: int, number: int) -> list[int]:
        # The order is drawn for each round.
        order = [named - 1, named]
        random.Random(f"{self.found.question.seed} {named} {number}").shuffle(order)
        done = self.found.confirmations.get(named, {}).get(number, {})
        return [place for place in order if place not in done]

    def confirm(self, place: int, named: int, number: int) -> bool:
        return self._measure(place, of=named, round_=number)

    def _note(self, entry: BuildEnded | MeasurementEnded | CommitUnmeasurable) -> None:
        self.append(dict(entry))
        _take(self.found, entry)

    def _measure(self, place: int, of: int | None = None, round_: int | None = None) -> bool:
        """Whether it could be measured; if not, that is noted."""
        question, commit = self.found.question, self.found.commits[place]
        built = self._built(place)
        if built is None:
            return False
        output = self.out / "measured.log"
        limit_s = question.measure_limit_s
        ended = group.run(
            question.measure, cwd=built, variables=_variables(commit, built), output=output, limit_s=limit_s
        )
        value = None if ended.status != 0 else self._value(ended, output)
        if value is None:
            why = ended.why(limit_s) if ended.status != 0 else f"its last line ends in no number up to {VALUE_MAX:g}"
            text = (group.tail(output) or [""])[-1]
            self._note({"event": "unmeasurable", "place": place, "why": f"measuring: {why}: {text}".rstrip(": ")})
            return False
        self._note(
            {"event": "measured", "place": place, "value": value, "seconds": ended.wall_s, "of": of, "round": round_}
        )
        self.report_line(f"{commit.short} {value:.6g}  {commit.subject}".rstrip())
        return True

    def _value(self, ended: group.CommandResult, output: Path) -> float | None:
        value = self.found.question.value
        if value != "printed":
            return ended.wall_s if value == "wall" else ended.cpu_s
        try:
            found = float((group.tail(output) or [""])[-1].split()[-1])
        except (ValueError, IndexError):
            return None
        return found if abs(found) <= VALUE_MAX else None

    def _built(self, place: int) -> Path | None:
        """Where the commit's build lies; None if it can't be built, which is noted."""
        question, commit = self.found.question, self.found.commits[place]
        key = blake2b(f"{commit.tree}\n{question.build}".encode(), digest_size=10).hexdigest()
        kept, log = self.shared / "builds" / key, self.shared / "builds" / f"{key}.log"
        if kept.is_dir():
            return kept
        if (why := self._failed_with(commit)) is not None:
            self._note({"event": "unmeasurable", "place": place, "why": why})
            return None
        if self.found.question.build or not self.found.question.versions:
            self.report_line(f"{commit.short} building  {commit.subject}".rstrip())
        source = Repository(self.shared / "source")
        if not question.versions:
            source.check_out(commit.sha)
        making = self.shared / "builds" / f"{key}.part"
        beneath.make_directory(making.parent, self.shared, exist_ok=True)
        beneath.remove_directory(making, self.shared)
        beneath.make_directory(making, self.shared)
        if not source.path.is_dir():
            raise InputError("is gone", where=str(source.path), remedy="begin a new search")
        began = time.monotonic()
        ended = group.run(
            question.build or (NAME_ONLY if question.versions else EXPORT),
            cwd=source.path,
            variables=_variables(commit, making),
            output=log,
            limit_s=question.build_limit_s,
        )
        self._note({"event": "built", "place": place, "seconds": time.monotonic() - began, "status": ended.status})
        if ended.status != 0:
            why = "can't be built" if ended.status == CANNOT else f"building: {ended.why(question.build_limit_s)}"
            self._note({"event": "unmeasurable", "place": place, "why": f"{why}; its output: {log}"})
            return None
        if not any(making.iterdir()):
            raise InputError(
                "the build left nothing in $IOLAB_BUILD, where the measured command runs",
                where="--build",
                remedy='let it copy there what it made: make && cp program "$IOLAB_BUILD"',
            )
        beneath.move(making, kept.name, self.shared)
        return kept

    def _failed_with(self, commit: Commit) -> str | None:
        """Why the build of a commit with the same contents failed, if one did."""
        failed = self.found.unmeasurable.items()
        same = (why for place, why in failed if self.found.commits[place].tree == commit.tree)
        return next((why for why in same if not why.startswith("measuring: ")), None)


def _variables(commit: Commit, built: Path) -> dict[str, str]:
    return {"IOLAB_BUILD": str(built.resolve()), "IOLAB_COMMIT": commit.sha, "IOLAB_VERSION": commit.sha}
