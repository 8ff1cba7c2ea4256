"""`iolab bisect` by commands: among the commits of a repository, or the versions of a list."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base.errors import InputError, unknown
from iolab.base.plain_text import counted, one_line
from iolab.presentation.cli.bisect_answer import show_commits
from iolab.presentation.cli.bisect_options import CommandBisectOptions, Effort, limit_s
from iolab.presentation.cli.consent import consent_of

if TYPE_CHECKING:
    from iolab.studies.run.commits import GitQuestion

VERSIONS_LEAST = 2


def go_on(search: Path, fail_on: str | None, *, trusted: bool, as_json: bool) -> None:
    """Goes on with a search, and shows its answer."""
    from iolab.studies.run import commits

    found = commits.resume(search, _report_line(as_json=as_json), consent_of(search, trusted=trusted))
    show_commits(found, search, fail_on, as_json=as_json)


def among_commits(
    range_: str, repository: Path, effort: Effort, how: CommandBisectOptions, seed: int | None
) -> GitQuestion:
    """The question about the commits of a range."""
    return _question(str(repository), range_of(range_), (), effort, how, seed)


def among_versions(
    path: Path, ends: tuple[str | None, str | None], effort: Effort, how: CommandBisectOptions, seed: int | None
) -> GitQuestion:
    """The question about the versions that a file lists, or those from one of them to another."""
    listed = _between(_listed(path), ends)
    return _question("", (listed[0], listed[-1]), listed, effort, how, seed)


def start(asked: GitQuestion, name: str, out: Path | None, fail_on: str | None, *, as_json: bool) -> None:
    """Searches, and shows the answer. `name`: of what is searched, for a directory that is not given."""
    from iolab.files.store.directory import default_path
    from iolab.studies.run import commits

    path = out or default_path(f"bisect {name}")
    show_commits(commits.start(asked, path, _report_line(as_json=as_json)), path, fail_on, as_json=as_json)


def _question(
    repository: str,
    ends: tuple[str, str],
    versions: tuple[str, ...],
    effort: Effort,
    how: CommandBisectOptions,
    seed: int | None,
) -> GitQuestion:
    from iolab.studies.run.commits import GitQuestion

    return GitQuestion(
        repository=repository,
        good=ends[0],
        bad=ends[1],
        build=how.build,
        measure=how.command,
        value=how.known_value,
        higher_is_better=how.higher_is_better,
        same_within=how.share,
        confidence=effort.confidence,
        most=effort.most,
        confirm=effort.confirm,
        build_limit_s=limit_s("--build-limit", how.build_limit or "1h"),
        measure_limit_s=limit_s("--measure-limit", how.measure_limit or "10min"),
        seed=1 if seed is None else seed,
        spread=effort.spread,
        versions=versions,
        time_s=effort.time_s,
        all_parents=how.all_parents,
    )


def range_of(text: str) -> tuple[str, str]:
    """The ends of `GOOD..BAD`."""
    good, dots, bad = text.partition("..")
    if not (good and dots and bad) or bad.startswith("."):
        what = f"{text}: expected a range of commits or versions"
        raise InputError(what, where="iolab bisect", remedy="such as v1.0..main")
    return good, bad


def _listed(path: Path) -> tuple[str, ...]:
    from iolab.base.bounded_file import EXPERIMENT_BYTES_MAX, read_bounded

    text = read_bounded(path, EXPERIMENT_BYTES_MAX, "a list of versions", pipes=True).decode(errors="replace")
    found = tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))
    if len(found) < VERSIONS_LEAST or len(set(found)) < len(found):
        what = (
            f"{counted(len(found), 'version')}, {len(set(found))} of them different; expected two or more, a line each"
        )
        raise InputError(what, where=str(path))
    return found


def _between(listed: tuple[str, ...], ends: tuple[str | None, str | None]) -> tuple[str, ...]:
    """The versions from one end to the other; None is that of the list."""
    for option, end in zip(("--good", "--bad"), ends, strict=True):
        if end is not None and end not in listed:
            raise InputError(f"{end}: {unknown('version', end, listed)}", where=option)
    first, last = (listed.index(end or default) for end, default in zip(ends, (listed[0], listed[-1]), strict=True))
    if first >= last:
        what = f"{listed[first]} does not stand before {listed[last]} in the list, which has the oldest first"
        raise InputError(what, where="--good and --bad")
    return listed[first : last + 1]


def _report_line(*, as_json: bool) -> Callable[[str], None]:
    """Reports the search's progress on stderr."""

    def report_line(line: str) -> None:
        if not as_json:
            print(one_line(line), file=sys.stderr)

    return report_line
