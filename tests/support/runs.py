"""What lies in a run directory, read without iolab's own code where a test wants to judge that code."""

import json
from collections import Counter
from pathlib import Path
from typing import Any


def journal(run: Path) -> list[dict[str, Any]]:
    """Whole lines only."""
    path = run / "journal.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def events(run: Path, name: str) -> list[dict[str, Any]]:
    return [event for event in journal(run) if event["event"] == name]


def times_finished(run: Path) -> Counter[int]:
    """Trial -> how often it finished for good."""
    counts: Counter[int] = Counter()
    for event in journal(run):
        if event["event"] == "trial_finished":
            counts[event["trial"]] += 1
        if event["event"] == "trial_abandoned":
            counts[event["trial"]] -= 1
    return counts


def statuses(run: Path) -> list[str]:
    return [event["status"] for event in events(run, "trial_finished")]


def faults(run: Path) -> list[str]:
    """What went wrong in the trials, as iolab tells it."""
    return _remarks(run, "fault")


def notes(run: Path) -> list[str]:
    """What else iolab tells of the trials."""
    return _remarks(run, "note")


def _remarks(run: Path, what: str) -> list[str]:
    from iolab.files import store

    return [row["text"] for row in store.read(run).remarks().iter_rows(named=True) if row["what"] == what]
