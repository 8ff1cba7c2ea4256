"""Which of several runs and files are the same setting again: by directories, by names, or by a pattern."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.domain.baseline import earlier_of
from iolab.files.collection.place import runs_below
from iolab.files.importer.content import name_unpacked, stem_of
from iolab.files.importer.formats import formats_of
from iolab.files.importer.mmtests_log import is_log_directory
from iolab.files.importer.source import Source

if TYPE_CHECKING:
    from iolab.files.store import RunData

MEMBERS_MAX = 2000
"""Files of all directories together."""
OWN_FILES = ("sweep.json", "tune.json", "experiment.toml", "origin", "search.jsonl", "labels.json")
"""What iolab itself writes beside runs."""
NAMED_MAX = 6
_ROUND = re.compile(
    r"(?P<setting>.+?)[-_.](?:(?:round|run|r|iteration|iter|boot)[-_.]?)?(?P<round>\d+)$", re.IGNORECASE
)
_DIGITS = re.compile(r"(\d+)")
Reader = Callable[[Sequence[Path], str | None], "RunData"]


@dataclass(frozen=True)
class Group:
    """What repeats one setting."""

    name: str
    paths: list[Path]
    """In the order of the rounds: run directories, or files."""
    named: bool
    """Its name is the setting's, instead of the files' own names."""


@dataclass(frozen=True)
class Groups:
    """All that is compared, and how it was read."""

    groups: list[Group]
    read_as: str | None
    """How names were read, if they were."""
    problems: list[str]
    """Files of directories that are left out."""


def groups_of(paths: Sequence[Path], pattern: str | None = None) -> Groups:
    """The settings that the paths hold, in the order given; first the only one that is called the earlier.

    A directory of files is a setting, or holds several if it is the only one, as files or as directories. Names that
    end in 1, 2, 3 ... are rounds of what comes before, if that makes two settings or more; otherwise files in several
    directories are by these, if each has several. `pattern`: a regular expression that is searched for in
    `DIRECTORY/NAME`; its group `setting`, else the first, names the setting. InputError names what can't be read.
    """
    found = _in_order_given(paths, pattern)
    earlier = earlier_of([group.name for group in found.groups])
    return replace(found, groups=sorted(found.groups, key=lambda group: earlier is not None and group.name != earlier))


def _in_order_given(paths: Sequence[Path], pattern: str | None) -> Groups:
    problems: list[str] = []
    if pattern is None and len(paths) == 1:
        paths = _directories_of_files(paths[0]) or paths
    of_paths: list[tuple[Path, list[Path]]] = [(path, members(path, problems)) for path in paths]
    every = [path for _, of_path in of_paths for path in of_path]
    if pattern is not None:
        groups = _by_pattern(every, pattern)
        return Groups(groups, f"names read by --group-by: {_groups_in_words(groups)}", problems)
    if len(of_paths) > 1 and all(is_directory_of_files(path) for path in paths):
        groups = [Group(name, of_path, True) for name, (_, of_path) in zip(_names(paths), of_paths, strict=True)]
        return Groups(groups, f"directories read as settings: {_groups_in_words(groups)}", problems)
    if found := _natural(every):
        hint = "; --group-by REGEX reads them otherwise"
        return Groups(found, f"names read as setting and round: {_groups_in_words(found)}{hint}", problems)
    if found := _by_directory(every):
        hint = "; --group-by REGEX reads them otherwise"
        return Groups(found, f"directories read as settings: {_groups_in_words(found)}{hint}", problems)
    return Groups([Group(name, [path], False) for name, path in zip(_names(every), every, strict=True)], None, problems)


def _directories_of_files(path: Path) -> list[Path]:
    """The directories in it, if it holds several with files and nothing else."""
    if not is_directory_of_files(path):
        return []
    inside = sorted((one for one in _entries(path) if one.name not in OWN_FILES), key=_natural_order)
    are_all = all(
        is_directory_of_files(one) and any(below.is_file() for below in _entries(one)) and not runs_below(one)
        for one in inside
    )
    return inside if are_all and len(inside) > 1 else []


def _entries(path: Path) -> list[Path]:
    """What is in a directory and not hidden; nothing if it can't be read, which whoever reads it says."""
    try:
        return [one for one in path.iterdir() if not one.name.startswith(".")]
    except OSError:
        return []


def _by_directory(paths: Sequence[Path]) -> list[Group]:
    """Files by the directories in which they are, as `res/*/*.txt` names them; none if one directory has one alone."""
    if not all(path.is_file() for path in paths):
        return []
    parts = [path.resolve().parts[:-1] for path in paths]
    common = len(Path(os.path.commonpath(["/".join(one) for one in parts])).parts)
    by_name: dict[str, list[Path]] = {}
    for path, directories in zip(paths, parts, strict=True):
        if len(directories) == common:
            return []
        by_name.setdefault(directories[common], []).append(path)
    if len(by_name) < 2 or min(map(len, by_name.values())) < 2:
        return []
    return [Group(name, sorted(of_it, key=_natural_order), True) for name, of_it in by_name.items()]


def is_run(path: Path) -> bool:
    """Whether it looks like a run's directory, or like a log directory of mmtests, which is read as one."""
    if (path / "journal.jsonl").exists():
        return True
    return ((path / "experiment.toml").exists() and not (path / "tune.json").exists()) or is_log_directory(path)


def is_directory_of_files(path: Path) -> bool:
    """Whether it is a directory, and no run's."""
    return path.is_dir() and not is_run(path)


def members(path: Path, problems: list[str]) -> list[Path]:
    """The runs and files of a directory, in the natural order of their names, with the runs of the directories in it,
    such as those of a sweep, a tuner, or a month; a run or a file is its only one. What is left out goes to `problems`.
    InputError if nothing is there."""
    if not path.exists():
        raise InputError("does not exist", where=str(path), remedy="name a run's directory, or a file of another tool")
    if not is_directory_of_files(path):
        return [path]
    try:
        inside = sorted((one for one in path.iterdir() if not one.name.startswith(".")), key=_natural_order)
    except OSError as error:
        raise InputError(error.strerror or str(error), where=str(path)) from None
    if len(inside) > MEMBERS_MAX:
        raise InputError(f"{counted(len(inside), 'file')}; expected at most {MEMBERS_MAX:,}", where=str(path))
    found = []
    for one in inside:
        if one.is_dir():
            found += [one] if is_run(one) else sorted(runs_below(one), key=_natural_order)
        elif one.is_file() and one.name not in OWN_FILES:
            try:
                formats_of(Source(one))
                found.append(one)
            except InputError as error:
                problems.append(f"{one}: left out: {error.what}")
    if not found and (path / "search.jsonl").exists():
        raise InputError(
            "is a search among commits, which has no run", where=str(path), remedy=f"its answer: iolab show {path}"
        )
    if not found:
        raise InputError(
            "is not a run, and holds no run and no file in a known format",
            where=str(path),
            remedy="name a directory that iolab made, or one of results of another tool",
        )
    return found


def _by_pattern(paths: Sequence[Path], pattern: str) -> list[Group]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InputError(f"{pattern!r} is no regular expression: {error}", where="--group-by") from None
    if not compiled.groups:
        raise InputError(
            f"{pattern!r} has no group",
            where="--group-by",
            remedy="put the setting's part in parentheses: '(old|new)-'",
        )
    chosen = "setting" if "setting" in compiled.groupindex else 1
    by_name: dict[str, list[Path]] = {}
    for path in paths:
        name = "/".join(path.parts[-2:])
        found = compiled.search(name)
        if found is None or not found[chosen]:
            raise InputError(f"{name} does not match {pattern!r}", where="--group-by", remedy="leave the file out")
        by_name.setdefault(found[chosen], []).append(path)
    return [Group(name, sorted(found, key=_natural_order), True) for name, found in by_name.items()]


def _natural(paths: Sequence[Path]) -> list[Group]:
    """Rounds by the numbers at the names' ends; none if a number may be something else: a depth, a version."""
    by_name: dict[str, dict[int, Path]] = {}
    for path in paths:
        names = (path.name,) if path.is_dir() else (stem_of(path.name), _stem(path))
        found = next(filter(None, map(_ROUND.match, names)), None)
        if found is None or int(found["round"]) in by_name.setdefault(found["setting"], {}):
            return []
        by_name[found["setting"]][int(found["round"])] = path
    if len(by_name) < 2 or max(map(len, by_name.values())) < 2:
        return []
    for rounds in by_name.values():
        if sorted(rounds) not in (list(range(len(rounds))), list(range(1, len(rounds) + 1))):
            return []
    return [Group(name, [rounds[number] for number in sorted(rounds)], True) for name, rounds in by_name.items()]


def _names(paths: Sequence[Path]) -> list[str]:
    """Names of directories, stems of files; whole paths if two are equal."""
    names = [path.resolve().name if path.is_dir() else _stem(path) for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def _stem(path: Path) -> str:
    return Path(name_unpacked(path.name)).stem


def _natural_order(path: Path) -> tuple[tuple[int, int | str], ...]:
    """`run-2` before `run-10`."""
    return tuple((0, int(part)) if part.isdecimal() else (1, part) for part in _DIGITS.split(path.name) if part)


def _groups_in_words(groups: Sequence[Group]) -> str:
    shown = ", ".join(f"{group.name} ({len(group.paths)})" for group in groups[:NAMED_MAX])
    return shown + (f", and {len(groups) - NAMED_MAX} more" if len(groups) > NAMED_MAX else "")
