"""A series of patches as commits: applied in the clone in which a tree's kernels are built. The tree is only read."""

from __future__ import annotations

import email
import email.policy
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path

from iolab.base.bounded_file import MIB, is_file, read_bounded
from iolab.base.errors import InputError
from iolab.base.plain_text import one_line
from iolab.machines.guest import tree
from iolab.machines.system import git
from iolab.machines.system.command import CommandFailed

MAIL_BYTES_MAX = 64 * MIB
_NUMBER = re.compile(r"\[[^\]]*?(\d+)/(\d+)\s*\]")
_PREFIX = re.compile(r"^(\s*\[[^\]]*\])+\s*")
_HAS_PATCH = re.compile(r"^(diff --git |--- \S)", re.MULTILINE)
_ORDER_UNKNOWN = 1 << 30


@dataclass(frozen=True)
class Patch:
    """A mail with a patch."""

    subject: str
    """Without what stands in brackets before it."""
    number: int
    """N of [PATCH N/M]; a large number if the subject has none."""
    mail: Path
    source: Path
    """The file or directory that it was read from."""


@dataclass(frozen=True)
class AppliedPatch:
    """A patch as a commit of the clone."""

    subject: str
    sha: str
    files: list[str]
    """What it changes, from the top of the tree."""


def apply(path: Path, base: str, sources: Sequence[Path]) -> list[AppliedPatch]:
    """Applies the patches of mboxes, maildirs and single mails to the commit `base` of the tree, in the order of their
    numbers, else as they stand there. Mails without a patch, such as the letter before a series, are passed over. The
    same patches on the same commit are the same commits.

    Raises:
        InputError: no such tree, commit or file, no patch in them, or one that does not apply, with the file.
    """
    repository = git.repository(path)
    revision = repository.sha(base)
    place = tree.place_of(path)
    with tempfile.TemporaryDirectory(prefix="iolab-series-") as directory:
        patches = read(sources, Path(directory))
        with tree.locked(place):
            clone = tree.clone_of(repository, place)
            clone.begin_mails(revision)
            return [
                _applied(clone, patch, f"patch {number} of {len(patches)}", base)
                for number, patch in enumerate(patches, 1)
            ]


def read(sources: Sequence[Path], directory: Path) -> list[Patch]:
    """The patches of all sources, in order; their mails become files in `directory`. InputError: there are none."""
    found: list[Patch] = []
    for number, source in enumerate(sources):
        place = directory / str(number)
        place.mkdir()
        found += _read(source, place)
    if not found:
        raise InputError(
            "no mail there holds a patch",
            where=", ".join(map(str, sources)),
            remedy="git format-patch makes such mails",
        )
    return sorted(found, key=lambda patch: patch.number)


def _read(source: Path, directory: Path) -> list[Patch]:
    if source.is_dir():
        if not ((source / "cur").is_dir() or (source / "new").is_dir()):
            remedy = "a maildir has the directories cur and new; name the patches themselves otherwise"
            raise InputError("no maildir", where=str(source), remedy=remedy)
    elif not is_file(source):
        raise InputError("no such file of patches", where=str(source), remedy="expected an mbox, a maildir or a mail")
    try:
        mails = git.split_mails(source, directory)
    except CommandFailed as error:
        raise InputError(f"no mails are read there: {error.what}", where=str(source)) from None
    return [patch for mail in mails if (patch := _patch(mail, source)) is not None]


def _patch(mail: Path, source: Path) -> Patch | None:
    """None: the mail has no patch."""
    content = read_bounded(mail, MAIL_BYTES_MAX, "a mail")
    message = email.message_from_bytes(content, policy=email.policy.default)
    if not _HAS_PATCH.search(_text(message)):
        return None
    subject = one_line(str(message.get("Subject", "")).replace("\n", " ")).strip()
    numbered = _NUMBER.search(subject)
    number = int(numbered[1]) if numbered else _ORDER_UNKNOWN
    return Patch(_PREFIX.sub("", subject) or "(no subject)", number, mail, source)


def _text(message: EmailMessage) -> str:
    """The decoded text of all parts, as a reader sees it; a part in an unknown encoding counts as it is."""
    parts = []
    for part in message.walk():
        if part.is_multipart():
            continue
        payload = part.get_payload(decode=True)
        if isinstance(payload, bytes):
            parts.append(payload.decode("utf-8", "replace"))
    return "\n".join(parts)


def _applied(clone: git.Repository, patch: Patch, which: str, base: str) -> AppliedPatch:
    before = clone.sha("HEAD")
    try:
        sha = clone.apply_mail(patch.mail)
    except CommandFailed as error:
        said = error.what.partition(" failed: ")[2] or error.what
        raise InputError(
            f"{which}, {patch.subject!r}, does not apply to {base}: {_of_files(said)}",
            where=str(patch.source),
            remedy="name the commit that the series was made for: --base COMMIT",
        ) from None
    return AppliedPatch(patch.subject, sha, clone.files_changed(before, sha))


def _of_files(said: str) -> str:
    """What git says of files; all of it if that names none."""
    lines = [line.removeprefix("error: ") for line in said.split(" / ")]
    kept = [line for line in lines if not line.startswith(("hint:", "Patch failed", "Applying"))]
    return "; ".join(kept) or said
