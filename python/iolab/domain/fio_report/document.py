"""Finds fio's JSON in whatever it was printed among: messages before, behind and between, several runs, a cut end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from iolab.base.errors import InputError
from iolab.base.strict_json import JsonObject
from iolab.domain.fio_report.job import number, table

DOCUMENTS_MAX = 10_000
IN_VAIN_MAX = 16
"""So many times the text's length are decoded of objects that turn out not to end, and 64 KiB."""
COUNTING = 64
"""An error counts the lines before it; so many characters of them cost as much as decoding one."""
SAME_START_MS = 1500
CLOSE_MS = 100
"""The last snapshot may come as soon after the one before it."""
CLOCK_MS_MAX = 1e12 * 9
"""In ns, it fits into 64 bits."""
JOB_LISTS = ("jobs", "client_stats")

_OUTERMOST = re.compile(r"^\{", re.MULTILINE)
_START = re.compile(r"^[^\S\n]*+\{", re.MULTILINE)
_JSON_LINE = re.compile(r"\s*+(?:[\"\[\]{}]|-?\d[\d.eE+-]*+,?\s*+$|(?:true|false|null),?\s*+$)")
_JOB_LIST = re.compile(r"\"(?:jobs|client_stats)\"\s*+:\s*+\[")


class Document(NamedTuple):
    """A JSON document of fio, and the line of the file on which it starts."""

    line: int
    content: JsonObject
    problem: str | None
    """What is missing from it."""
    cut_job: JsonObject | None = None
    """Name, group and options of the job in which it is cut off, as far as they are there."""


def documents(text: str, name: str) -> Iterator[Document]:
    """fio's result objects in the text, in order; other objects are passed over. `name` is the file's, in errors.

    InputError for objects that are nested too deeply, and for so many that don't end that looking for what is whole
    in them would take more than linear time.
    """
    walk = _Walk(text, name)
    if text.lstrip().startswith("[") and (listed := walk.listed()):
        yield from listed
        return
    place, found = 0, 0
    while found < DOCUMENTS_MAX and (start := _START.search(text, place)):
        document, place = walk.document_at(start.end() - 1)
        if document is not None:
            found += 1
            yield document


class _Walk:
    """Through one text, from its beginning to its end."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.decoder = json.JSONDecoder()
        self.left = IN_VAIN_MAX * len(text) + (1 << 16)
        """Characters that may still be decoded in vain."""
        self.line, self.line_at = 1, 0

    def listed(self) -> list[Document]:
        """The documents of a list that somebody made of them; none of any other text."""
        content, _ = self._decoded(self.text, len(self.text) - len(self.text.lstrip()))
        one_by_one = content if isinstance(content, list) else []
        return [Document(1, one, None) for one in one_by_one[:DOCUMENTS_MAX] if _is_fio(one)]

    def document_at(self, begin: int) -> tuple[Document | None, int]:
        """The document that begins here, if any, and where to go on."""
        self.line += self.text.count("\n", self.line_at, begin)
        self.line_at = begin
        content, end = self._decoded(self.text, begin)
        if end is not None:
            return (Document(self.line, content, None) if _is_fio(content) else None), end
        following = _OUTERMOST.search(self.text, begin + 1)
        end = following.start() if following else len(self.text)
        part = self.text[begin:end]
        if not _JOB_LIST.search(part):
            return None, end
        cleaned = "\n".join(one for one in part.splitlines() if _JSON_LINE.match(one))
        content, _ = self._decoded(cleaned, 0)
        if _is_fio(content):
            return Document(self.line, content, "messages between the lines of the JSON are left out"), end
        whole, cut_job = self._jobs_until_cut(cleaned)
        content = {**self._above_jobs(cleaned), "jobs": whole}
        cut = "; jobs that are whole are kept" if whole else " in its first job"
        return Document(self.line, content, f"the JSON is cut off{cut}", cut_job), end

    def _above_jobs(self, text: str) -> JsonObject:
        """Version, clock and global options."""
        found = _JOB_LIST.search(text)
        content, _ = self._decoded(text[: found.end()] + "]}", 0) if found else (None, None)
        return content if isinstance(content, dict) else {}

    def _jobs_until_cut(self, text: str) -> tuple[list[JsonObject], JsonObject | None]:
        found = _JOB_LIST.search(text)
        place = found.end() if found else len(text)
        whole: list[JsonObject] = []
        while (start := text.find("{", place)) >= 0:
            job, end = self._decoded(text, start)
            if end is None:
                return whole, self._cut_job(text[start:])
            if isinstance(job, dict) and "jobname" in job:
                whole.append(job)
            place = end
        return whole, None

    def _cut_job(self, text: str) -> JsonObject | None:
        found: JsonObject = {}
        for key in ("jobname", "groupid", "job options"):
            if match := re.search(rf'"{key}"\s*+:\s*+', text):
                value, _ = self._decoded(text, match.end())
                found |= {} if value is None else {key: value}
        return found if "jobname" in found else None

    def _decoded(self, text: str, begin: int) -> tuple[Any, int | None]:
        """The value that begins here and its end; None if it has none."""
        try:
            return self.decoder.raw_decode(text, begin)
        except RecursionError:
            raise InputError(
                "JSON that is nested more than a thousand deep", where=f"{self.name}:{self.line}"
            ) from None
        except ValueError as error:
            at: int = getattr(error, "pos", begin)
            self.left -= at - begin + at // COUNTING
            if self.left < 0:
                raise InputError("too many objects of JSON without an end", where=f"{self.name}:{self.line}") from None
            return None, None


def _is_fio(content: Any) -> bool:
    return isinstance(content, dict) and any(isinstance(content.get(name), list) for name in JOB_LISTS)


def last_of_each_run(found: list[Document]) -> list[Document]:
    """The last of the snapshots that --status-interval prints of one run. Their clocks less their runtimes agree,
    within much less than the time between them: short runs follow each other as fast."""
    kept: list[Document] = []
    for document in found:
        if kept and _is_snapshot(kept[-1].content, document.content):
            kept[-1] = document
        else:
            kept.append(document)
    return kept


def _is_snapshot(earlier: JsonObject, later: JsonObject) -> bool:
    starts = _start_ms(earlier), _start_ms(later)
    if starts[0] is None or starts[1] is None:
        return False
    between_ms = number(later, "timestamp_ms") - number(earlier, "timestamp_ms")
    return abs(starts[1] - starts[0]) <= min(SAME_START_MS, max(between_ms / 2, CLOSE_MS))


def job_list(content: JsonObject) -> list[Any]:
    """The job results, of one machine or of clients."""
    return next((found for name in JOB_LISTS if isinstance(found := content.get(name), list)), [])


def started_unix_ns(content: JsonObject) -> int:
    """When the run began: its clock, which is read at the end, less what it took; 0 if there is none."""
    clock_ms = number(content, "timestamp_ms") or 1000 * number(content, "timestamp")
    started_ms = _start_ms({**content, "timestamp_ms": clock_ms})
    return int(started_ms * 1_000_000) if started_ms is not None and 0 < started_ms < CLOCK_MS_MAX else 0


def _start_ms(content: JsonObject) -> float | None:
    clock_ms = number(content, "timestamp_ms")
    jobs = [job for job in job_list(content) if isinstance(job, dict)]
    runtime_ms = max(
        (number(table(job, way), "runtime") for job in jobs for way in ("read", "write", "trim")), default=0
    )
    return clock_ms - runtime_ms if clock_ms and runtime_ms > 0 else None
