"""Tags and a note, which people give a run: `labels.json` in its directory, so that they move with the run."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from iolab.base.bounded_file import read_bounded
from iolab.base.durable import write_atomically
from iolab.base.errors import InputError
from iolab.base.plain_text import is_one_line
from iolab.domain.collection.entry import Labels
from iolab.files.collection.place import LABELS
from iolab.files.store import RunDirectory

BYTES_MAX = 100_000
TAGS_MAX = 50
NOTE_CHARACTERS_MAX = 2000
_TAG = re.compile(r"[\w][\w.+=/@-]{0,39}")


class _File(BaseModel):
    model_config = ConfigDict(strict=True)

    tags: list[str] = []
    note: str = ""


def read(run: Path, within: Path | None = None) -> Labels:
    """The run's labels; none if it has no file of them. InputError if it can't be read. Below `within`, by default
    the run, no link is followed."""
    path = run / LABELS
    if not os.path.lexists(path):
        return Labels()
    try:
        found = _File.model_validate_json(read_bounded(path, BYTES_MAX, "a run's labels", within=within or run))
    except ValidationError:
        raise InputError(
            'is not what iolab wrote, {"tags": [...], "note": "..."}', where=str(path), remedy="remove the file"
        ) from None
    return Labels(tuple(dict.fromkeys(found.tags[:TAGS_MAX])), found.note[:NOTE_CHARACTERS_MAX])


def tag(run: Path, tags: tuple[str, ...], *, remove: bool = False) -> Labels:
    """Adds or removes tags, and returns the labels as they are then. InputError for a word that is no tag."""
    before = _of_run(run)
    for word in tags:
        if not remove and not _TAG.fullmatch(word):
            raise InputError(
                "is no tag", where=word, remedy="one word of up to 40 letters, digits and any of . + = / @ - _"
            )
    if remove and (missing := [word for word in tags if word not in before.tags]):
        has = f"it has {', '.join(before.tags)}" if before.tags else "it has none"
        raise InputError(f"the run has no tag {missing[0]}", where=str(run), remedy=has)
    kept = [word for word in before.tags if not (remove and word in tags)]
    after = dict.fromkeys(kept if remove else [*kept, *tags])
    if len(after) > TAGS_MAX:
        raise InputError(f"{len(after)} tags; expected at most {TAGS_MAX}", where=str(run))
    return _write(run, Labels(tuple(after), before.note))


def note(run: Path, text: str) -> Labels:
    """Replaces the note, "" removes it. InputError for more than a line of 2000 characters."""
    before = _of_run(run)
    if not is_one_line(text) or len(text) > NOTE_CHARACTERS_MAX:
        raise InputError(f"a note is one line of at most {NOTE_CHARACTERS_MAX} characters", where=str(run))
    return _write(run, Labels(before.tags, text.strip()))


def _of_run(run: Path) -> Labels:
    RunDirectory.open(run)
    return read(run)


def _write(run: Path, labels: Labels) -> Labels:
    text = json.dumps({"tags": list(labels.tags), "note": labels.note}, ensure_ascii=False, indent=2)
    write_atomically(run / LABELS, f"{text}\n".encode(), run)
    return labels
