"""A mail with numbers as the skeleton of a claim: what a program finds in it, and `?` for what a person completes.

Figures are found by the importers. Kernel versions, lines of fio, commits and changes in percent are found by their
form; what is found may be beside the point, and the person decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email import policy
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from pathlib import Path

from iolab.base.bounded_file import MIB, read_bounded
from iolab.base.errors import InputError
from iolab.base.plain_text import counted, one_line
from iolab.base.toml import TomlTable, write
from iolab.files.importer.posted import plain
from iolab.files.importer.run_import import open_files
from iolab.studies.reproduction.effects import OTHERS
from iolab.studies.reproduction.publication import OPEN

MAIL_MAX_BYTES = 16 * MIB
COLUMNS_MAX, ROWS_MAX, EFFECTS_MAX, LINES_MAX = 12, 40, 8, 12
_HEADER = re.compile(r"^(?P<key>Subject|From|Date|Message-ID):(?P<text>[^\n]{1,400})$", re.IGNORECASE | re.MULTILINE)
_BY = re.compile(r"^by (?P<sender>[^\n]{1,100})$", re.MULTILINE)
"""As archives of lkml write the sender above the subject."""
_NEW = r"[3-9]\.\d{1,2}(?>(?:\.\d{1,3})?)"
_KERNEL = re.compile(
    r"(?<![\w.])(?>(?:v|[Ll]inux[- ]|[Kk]ernel[- ])?)(?P<version>2\.[2-6]\.\d{1,2}(?:[-.][\w.+-]*\w\+?)?|"
    rf"{_NEW}-rc\d{{1,2}}[\w.+-]*|(?<=v){_NEW}|(?<=[Ll]inux[- ]){_NEW}|(?<=[Kk]ernel[- ]){_NEW})"
    r"(?![\w.]*[%]| ?[GM]Hz)"
)
_COMMIT = re.compile(r"\b[Cc]ommit:? {1,3}(?P<commit>[0-9a-f]{10,40})\b")
_FIO = re.compile(r"^\s*(?:[$#] )?(?P<line>(?:sudo )?fio (?=.*(?:--|\.fio|=)).{4,400})$", re.MULTILINE)
_JOB = re.compile(
    r"^\s*(?P<key>rw|bs|blocksize|iodepth|ioengine|numjobs|nr_task|direct|runtime|fs|disk|test_size|rwmixread)"
    r"\s?[:=]\s?(?P<value>[^\s,;]{1,40})\s*$",
    re.MULTILINE,
)
_CHANGE = re.compile(
    r"(?P<sign>[+-]?)(?P<size>\d{1,4}(?:\.\d{1,3})?) ?% (?P<word>regression|improvement)(?: of (?P<of>[\w.:/-]{3,80}))?"
)
_TITLE_CHANGE = re.compile(
    r"(?P<of>[\w-]+\.[\w.:/-]{2,80}) +(?P<sign>[+-]?)(?P<size>\d{1,4}(?:\.\d{1,3})?) ?% "
    r"(?P<word>regression|improvement)"
)
_LOWER_IS_BETTER = re.compile(r"lat|time|elapsed|seconds", re.IGNORECASE)


@dataclass(frozen=True)
class Skeleton:
    """The text of a claim's file, and what was found for it."""

    text: str
    found: list[str] = field(default_factory=list)
    """In words: `2 tables`, `kernels 2.6.24, 2.6.25-rc1`."""


def skeleton(path: Path) -> Skeleton:
    """The skeleton of the claim that the mail in the file makes.

    Raises:
        InputError: it can't be read, or holds no text, or nothing that a claim is made of.
    """
    content = read_bounded(path, MAIL_MAX_BYTES, "a mail", pipes=True)
    headers, body = _parted(content)
    if not body.strip():
        raise InputError("holds no text", where=str(path), remedy="name a mail as a file, or an mbox of one")
    text = "\n".join(map(plain, body.splitlines()))
    tables = dict(_tables(path))
    kernels = _distinct(found["version"] for found in _KERNEL.finditer(text))
    fio = _distinct(one_line(found["line"]) for found in _FIO.finditer(text))
    jobs = _distinct(f"{found['key']}={found['value']}" for found in _JOB.finditer(text))
    commits = _distinct(found["commit"] for found in _COMMIT.finditer(text))
    effects = dict(_effects(f"{headers.get('subject', '')}\n{text}"))
    if not (tables or effects or kernels or fio or jobs):
        raise InputError(
            "holds no figures: no table that an importer reads, no change in percent, no kernel, no line of fio",
            where=str(path),
            remedy="write the claim by hand: docs/claims.md",
        )
    found = [
        *([counted(len(tables), "table")] if tables else []),
        *([f"{counted(len(effects), 'change')} in percent"] if effects else []),
        *([f"kernels {', '.join(kernels)}"] if kernels else []),
        *([f"commit {commits[0]}"] if commits else []),
        *([counted(len(fio) + bool(jobs), "load")] if fio or jobs else []),
    ]
    load = "; ".join([*fio, *([" ".join(jobs)] if jobs else [])])
    document: TomlTable = {
        "title": headers.get("subject", OPEN),
        **({"case_study": "none"} if tables else {}),
        "source": _source(headers),
        **({"date": headers["day"]} if "day" in headers else {"date": OPEN}),
        **({"commit": commits[0]} if commits else {}),
        "setup": {"machine": OPEN, "kernel": ", ".join(kernels) or OPEN, "load": load or OPEN},
        "effects": effects or {"main": _effect(OPEN, OPEN)},
        "not_asked": {OTHERS: OPEN},
        **({"tables": tables} if tables else {}),
    }
    heading = (
        f"# A claim that is not complete: each {OPEN!r} stands for what the mail does not state in a known form.\n"
        "# How it can be asked here goes into [asks.NAME]; docs/claims.md has the format.\n"
    )
    return Skeleton(heading + write(document), found)


def _parted(content: bytes) -> tuple[dict[str, str], str]:
    """What its headers say, by lower-case name (`day`: of Date), and its text. Texts of archives without real headers
    have such lines among their first."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    message = BytesParser(policy=policy.default).parsebytes(content)
    headers: dict[str, str] = {}
    body = content.decode(errors="replace")
    if message["subject"] and message["from"]:
        headers = {
            key: one_line(str(message[key])) for key in ("subject", "from", "date", "message-id") if message[key]
        }
        part = message.get_body(preferencelist=("plain",))
        with suppress(LookupError, UnicodeError):
            body = part.get_content() if part is not None else ""
    else:
        for found in _HEADER.finditer(body[:4000]):
            headers.setdefault(found["key"].lower(), one_line(found["text"]).strip())
        if "from" not in headers and (sender := _BY.search(body[:400])):
            headers["from"] = one_line(sender["sender"]).strip()
    try:
        headers["day"] = parsedate_to_datetime(headers["date"]).date().isoformat()
    except (KeyError, ValueError, TypeError):
        if day := re.search(r"\b(?:19|20)\d\d-\d\d-\d\d\b", body[:400]):
            headers["day"] = day[0]
    return headers, body


def _source(headers: Mapping[str, str]) -> str:
    sender = re.sub(r"\s*<[^>]*>", "", headers.get("from", OPEN)).strip('" ') or OPEN
    parts = [sender, f'"{headers["subject"]}"' if "subject" in headers else OPEN, headers.get("day", OPEN)]
    return ", ".join([*parts, *([headers["message-id"]] if "message-id" in headers else [])])


def _effects(text: str) -> Iterator[tuple[str, TomlTable]]:
    seen: set[tuple[str, str]] = set()
    for found in (*_TITLE_CHANGE.finditer(text), *_CHANGE.finditer(text)):
        of, size = found["of"] or OPEN, found["size"]
        if (of, size) in seen or (of == OPEN and any(size == known for _, known in seen)):
            continue
        seen.add((of, size))
        is_loss = (found["word"] == "regression") != bool(_LOWER_IS_BETTER.search(of))
        direction = "less" if is_loss else "more"
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", of) if of != OPEN else f"change {len(seen)}"
        yield name, _effect(of, direction, float(size))
        if len(seen) == EFFECTS_MAX:
            return


def _effect(of: str, direction: str, size: float | None = None) -> TomlTable:
    figure: TomlTable = {} if size is None else {"size": size, "unit": "%"}
    return {"text": OPEN, "of": of, "direction": direction, **figure}


def _tables(path: Path) -> Iterator[tuple[str, TomlTable]]:
    """A table for each workload that the importers find: settings down, metrics across; means over the rounds."""
    try:
        run = open_files([path])
    except InputError:
        return
    for workload in run.workloads:
        keys = run.keys_of(workload)[:COLUMNS_MAX]
        rows: dict[str, dict[str, list[float]]] = {}
        for setting, key, value in (
            run.metrics.select("workload", "setting", "key", "value").filter(run.metrics["workload"] == workload)
            .select("setting", "key", "value").iter_rows()
        ):  # fmt: skip
            if key in keys and value is not None:
                rows.setdefault(setting, {}).setdefault(key, []).append(value)
        columns = [key for key in keys if all(key in of for of in rows.values())]
        if not columns or not rows:
            continue
        figures: TomlTable = {
            setting: [float(f"{sum(of[key]) / len(of[key]):.6g}") for key in columns]
            for setting, of in list(rows.items())[:ROWS_MAX]
        }
        yield (
            re.sub(r"[^A-Za-z0-9_-]+", "_", workload),
            {
                "title": workload,
                "unit": OPEN,
                "columns": list(columns),
                "not_compared": {"*": OPEN},
                "rows": figures,
            },
        )


def _distinct(found: Iterator[str]) -> Sequence[str]:
    return list(dict.fromkeys(found))[:LINES_MAX]
