"""Commands that stand in a text above what they printed: what differs between them is what was measured, or what was
set."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from iolab.files.importer.columns import CHANGES

OF_CHANGE = rf"(?:{CHANGES}|with(?:out)?|old|new)\b[\w ,.()/+-]*+"
"""What stands behind a hash as a title: `# before`."""
_OF_CHANGE = re.compile(OF_CHANGE, re.IGNORECASE)
COMMAND_MAX = 1000
_PROMPT = re.compile(
    r"\s{0,4}(?:\^C)?(?:\[(?:[^\]\n@]{1,40}@(?P<inside>[\w.-]{1,60}))?[^\]\n]{0,60}\]"
    r"|[\w.-]{1,40}@(?P<host>[\w.-]{1,60}):? ?[\w~/.-]{0,80} ?|[\w.-]{1,40}:[~/][\w/.-]{0,80} ?"
    r"|~?(?:/[\w/.-]{0,80})? ?(?=\$))?"
    r"(?:[$%] ?|# {1,4}|(?:cmd|command)(?: ?line)?: )"
    r"(?P<command>(?:[\w.+-]{1,60}=\S{0,60} )*(?:\.{0,2}~?/)?[a-z][\w./+-]{0,120}+"
    rf"(?: .{{0,{COMMAND_MAX}}})?)\s*+$"
)
"""`$ dbench 8`, `root@host:~# dbench 8`, `host:~ # dbench 8`, `~$ dbench 8`, `# dbench 8`, `cmdline: dbench 8`."""
_OUTPUT = re.compile(r"\s*(?:\d?>>?(?!\s*/(?:sys|proc|dev)/)|\|\s*tee\b|2>&1).*$|\s--output(?:-file)?[= ]\S+")
_SETS = re.compile(
    r">>?\s*/(?:sys|proc)/|\btee\s+/(?:sys|proc)/"
    r"|\b(?:sysctl|mount|modprobe|mkfs(?:\.\w+)?|tune2fs"
    r"|hdparm -W\S*|blockdev --set\w+|cpupower|tuned-adm|nvme set-feature|xfs_admin|zfs set|zpool set"
    r"|git checkout|insmod|(?i:alter (?:system|database|role|user) \S*? ?set|set (?:global|persist)))\b"
)
_FROM_NOTHING = re.compile(r"if=/dev/(?:zero|u?random)")
_OF_CACHE = re.compile(r"drop_caches")
_OF_NO_MEASUREMENT = re.compile(r"(?:sync|rm|echo|sleep|cat|umount|cd|ls|free|df|lsblk|uname|sysctl)\b")
_OBSERVES = re.compile(r"(?:\S+/)?(?:iostat|vmstat|sar|mpstat|pidstat|dstat|zpool|pgbench)\b")
"""Tools whose arguments are how long and how often to look, and pgbench, whose output states its own."""
_PATH = re.compile(r"(?:[^=:\s/]{0,40}[=:])?(?:~|\.{1,2})?/\S+")
_OF_WORK = re.compile(r"(?i:read|write|rand|seq|mix|trim|discard|prepare|cleanup|load|size|count)|^-{1,2}(?:rw|W)\b")
"""What commands of one program do differently, beside how: other work is no other setting."""
_PREFIX = re.compile(r"(?:sudo|time|nice|numactl|taskset)\s+")
_OPTION_NAME = re.compile(r"^-{0,2}([A-Za-z][\w-]*)=")
_OF_ROUNDS = re.compile(r"run|round|iter|seed|rep|loop|trial|label|name|tag|out|log|file", re.IGNORECASE)
"""Options whose numbers count what was repeated; those of others are what was measured. Chosen."""
NAME_MAX = 80


class CommandNames(NamedTuple):
    """What commands distinguish."""

    of: Mapping[int, str]
    """By line of a table."""
    are_settings: bool


def command_of(text: str) -> str | None:
    """The command in a line that shows a shell's prompt; None for any other line."""
    found = _PROMPT.match(text)
    if found is None or _OF_CHANGE.fullmatch(found["command"]):
        return None
    return " ".join(found["command"].split())


def host_of(text: str) -> str | None:
    """The host in a line that shows a shell's prompt and a command."""
    found = _PROMPT.match(text)
    return None if found is None else found["host"] or found["inside"]


def sets(command: str) -> bool:
    """Whether the command changes what holds for those after it, such as a scheduler or a mount."""
    return bool(_SETS.search(command)) and not _OF_CACHE.search(command)


def commands_apart(
    given: Mapping[int, Sequence[str]], tables: Sequence[int], *, are_alone: bool
) -> CommandNames | None:
    """What distinguishes the commands above the tables of those lines; None if nothing does: the tables are rounds.
    The first may stand above all commands, below one that is not in the text. `are_alone`: nothing else in the text
    names settings, so that options do in which commands of one program differ that do the same work."""
    if not given[tables[0]] and all(given[table] for table in tables[1:]):
        below = {table: _measuring(given[table]) for table in tables[1:]}
        if any(map(_OF_NO_MEASUREMENT.match, below.values())) or any(map(_OBSERVES.match, below.values())):
            return None
        return CommandNames({tables[0]: "", **{table: name[:NAME_MAX] for table, name in below.items()}}, False)
    if not all(given[table] for table in tables):
        return None
    last = {table: _measuring(given[table]) for table in tables}
    if len(set(last.values())) == 1:
        # What holds is what was set last: a table below nothing new is under the same setting.
        before = {table: _setting(given[table]) for table in tables}
        first = next(filter(None, before.values()), "")
        named = {table: setting or f"before {first}"[:NAME_MAX] for table, setting in before.items()}
        return CommandNames(named, True) if len(set(named.values())) > 1 else None
    before = {table: _setting(given[table]) for table in tables}
    if all(before.values()) and len(set(before.values())) == len(tables):
        # Each was set anew: how long and how often the last command looked is no more than a detail.
        return CommandNames(before, True)
    if any(_OBSERVES.match(command) for command in last.values()) or _are_numbered(list(dict.fromkeys(last.values()))):
        return None
    words = {command: command.split() for command in last.values()}
    common = set.intersection(*map(set, words.values()))
    names = {
        command: " ".join(word for word in of if word not in common)[:NAME_MAX] or command[:NAME_MAX]
        for command, of in words.items()
    }
    if len(set(names.values())) < len(names):
        names = {command: command[:NAME_MAX] for command in words}
    own = [word for of in words.values() for word in of if word not in common]
    are_paths = len({len(of) for of in words.values()}) == 1 and all(map(_PATH.fullmatch, own))
    is_one_program = len({of[0] for of in words.values()}) == 1
    are_settings = are_paths or (are_alone and is_one_program and _differ_in_options(words.values(), common))
    return CommandNames({table: names[command] for table, command in last.items()}, are_settings)


def _differ_in_options(commands: Iterable[Sequence[str]], common: Container[str]) -> bool:
    """Whether the words of each command that not all have begin with an option, and none says that it does other
    work."""
    own = [[word for word in of[1:] if word not in common] for of in commands]
    are_options = all(of[:1] == [] or of[0].startswith("-") or "=" in of[0] for of in own)
    return are_options and not any(_OF_WORK.search(word) for of in own for word in of)


def calls_apart(commands: Sequence[str], *, are_commands: bool) -> tuple[str, Mapping[str, str]] | None:
    """Calls of dd that all write, or all read, or of another program that differ in options alone: what they share, and
    each one's own words.

    Args:
        are_commands: else they may be anything, and only calls of dd are known as such.
    """
    words = {command: command.split() for command in commands}
    if len(words) < 2 or len({of[0] for of in words.values() if of}) != 1:
        return None
    common = set.intersection(*map(set, words.values()))
    if all(of[0] == "dd" for of in words.values()):
        ways = {("of=/dev/null" in of, any(map(_FROM_NOTHING.fullmatch, of))) for of in words.values()}
        are_alike = ways in ({(True, False)}, {(False, True)})
    else:
        are_alike = are_commands and _differ_in_options(words.values(), common)
    if not are_alike:
        return None
    own = {command: " ".join(word for word in of if word not in common)[:NAME_MAX] for command, of in words.items()}
    shared = " ".join(word for word in words[commands[0]] if word in common)
    if len(own) == 2 and "" in own.values():
        own = {command: name or f"without {''.join(own.values())}" for command, name in own.items()}
    return (shared, own) if len(set(own.values())) == len(own) else None


def path_apart(commands: Sequence[str]) -> Mapping[str, tuple[str, str]]:
    """Commands that differ from another in one path alone: each without it, and the path."""
    alike: dict[tuple[int, str, str], dict[str, str]] = {}
    for command in commands:
        words = command.split()
        for place, word in enumerate(words):
            if _PATH.fullmatch(word):
                option, _, path = word.rpartition("=")
                rest = " ".join(words[:place] + words[place + 1 :])
                alike.setdefault((place, option, rest), {})[command] = path
    several = [(rest, of) for (*_, rest), of in alike.items() if len(of) > 1]
    return {command: (rest, path) for rest, of in several for command, path in of.items()}


def _measuring(commands: Sequence[str]) -> str:
    """The last command, less where its output went."""
    command = _OUTPUT.sub("", commands[-1]).strip()
    return _PREFIX.sub("", command, count=1)


def _setting(commands: Sequence[str]) -> str:
    """What was set before the last command, in one line; empty if nothing was."""
    return "; ".join(_PREFIX.sub("", one, count=1) for one in filter(sets, commands[:-1]))[:NAME_MAX]


def _are_numbered(commands: Sequence[str]) -> bool:
    """Whether they differ by one number that counts the rounds: `./run 1`, `./run 2`."""
    words = [command.split() for command in commands]
    if len({len(one) for one in words}) == 1:
        columns = list(zip(*words, strict=True))
        for place, column in enumerate(columns):
            before = columns[place - 1][0] if place and columns[place - 1][0].startswith("-") else ""
            option = next(iter(_OPTION_NAME.findall(column[0])), before)
            if len(set(column)) > 1 and option and not _OF_ROUNDS.search(option):
                return False
    shapes = {re.sub(r"\d+", "0", command) for command in commands}
    numbers = [re.findall(r"\d+", command) for command in commands]
    if len(shapes) > 1 or len({len(one) for one in numbers}) > 1:
        return False
    differing = [column for column in zip(*numbers, strict=True) if len(set(column)) > 1]
    return len(differing) == 1 and [int(one) for one in differing[0]] in (
        list(range(len(commands))),
        list(range(1, len(commands) + 1)),
    )
