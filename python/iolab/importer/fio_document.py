"""Finds fio's JSON in whatever it was printed among: messages before, behind and between, several runs, a cut end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

DOCUMENTS_MAX = 10_000
SAME_START_MS = 1500
JOB_LISTS = ("jobs", "client_stats")

_START = re.compile(r"^\s*\{", re.MULTILINE)
_JSON_LINE = re.compile(r"\s*(?:[\"\[\]{}]|-?\d[\d.eE+-]*,?\s*$|(?:true|false|null),?\s*$)")
_JOB_LIST = re.compile(r"\"(?:jobs|client_stats)\"\s*:\s*\[")


class Document(NamedTuple):
    line: int
    content: dict[str, Any]
    problem: str | None
    """What is missing from it."""


def documents(text: str) -> Iterator[Document]:
    """fio's result objects in the text, in order; other objects are passed over."""
    decoder = json.JSONDecoder()
    place, found = 0, 0
    while found < DOCUMENTS_MAX and (start := _START.search(text, place)):
        begin = start.end() - 1
        document, place = _document_at(decoder, text, begin)
        if document is not None:
            found += 1
            yield document


def _document_at(decoder: json.JSONDecoder, text: str, begin: int) -> tuple[Document | None, int]:
    """The document that begins here, if any, and where to go on."""
    line = text.count("\n", 0, begin) + 1
    try:
        content, end = decoder.raw_decode(text, begin)
        return (Document(line, content, None) if _is_fio(content) else None), end
    except (json.JSONDecodeError, RecursionError):
        pass
    following = re.compile(r"^\{", re.MULTILINE).search(text, begin + 1)
    end = following.start() if following else len(text)
    part = text[begin:end]
    if not _JOB_LIST.search(part):
        return None, end if following else len(text)
    cleaned = "\n".join(one for one in part.splitlines() if _JSON_LINE.match(one))
    try:
        content, _ = decoder.raw_decode(cleaned)
        if _is_fio(content):
            return Document(line, content, "messages between the lines of the JSON are left out"), end
    except (json.JSONDecodeError, RecursionError):
        pass
    content = {"jobs": list(_whole_jobs(decoder, cleaned))}
    cut = (
        "the JSON is cut off; jobs that are whole are kept"
        if content["jobs"]
        else "the JSON is cut off in its first job"
    )
    return Document(line, content, cut), end


def _whole_jobs(decoder: json.JSONDecoder, text: str) -> Iterator[dict[str, Any]]:
    found = _JOB_LIST.search(text)
    place = found.end() if found else len(text)
    while (start := text.find("{", place)) >= 0:
        try:
            job, place = decoder.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError):
            return
        if isinstance(job, dict) and "jobname" in job:
            yield job


def _is_fio(content: Any) -> bool:
    return isinstance(content, dict) and any(isinstance(content.get(name), list) for name in JOB_LISTS)


def last_of_each_run(found: list[Document]) -> list[Document]:
    """Of the snapshots that --status-interval prints of one run, the last. Their clocks less their runtimes agree."""
    kept: list[Document] = []
    for document in found:
        start_ms = _start_ms(document.content)
        before = _start_ms(kept[-1].content) if kept else None
        if start_ms is not None and before is not None and abs(start_ms - before) <= SAME_START_MS:
            kept[-1] = document
        else:
            kept.append(document)
    return kept


def job_list(content: dict[str, Any]) -> list[Any]:
    """The job results, of one machine or of clients."""
    found: list[Any] = next((content[name] for name in JOB_LISTS if isinstance(content.get(name), list)), [])
    return found


def _start_ms(content: dict[str, Any]) -> float | None:
    clock_ms = content.get("timestamp_ms")
    runtimes = [
        job[way]["runtime"]
        for job in job_list(content)
        if isinstance(job, dict)
        for way in ("read", "write", "trim")
        if isinstance(job.get(way), dict) and isinstance(job[way].get("runtime"), int | float)
    ]
    return clock_ms - max(runtimes) if isinstance(clock_ms, int | float) and runtimes and max(runtimes) > 0 else None
