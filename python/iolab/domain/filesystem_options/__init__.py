"""The options that mkfs and mount may get: an allow-list per filesystem, of forms that name no path.

mkfs overwrites whatever its options name, and iolab makes it not ask. So its options are read, each value by its type,
and written anew: mkfs is handed what was understood, and nothing that was not.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from iolab.base.errors import InputError, unknown
from iolab.domain.filesystem_options import btrfs, ext, form, xfs
from iolab.domain.filesystem_options.form import ALONE, Fault, Form, RefusedForm, Value, check_keys, check_value

__all__ = [
    "DEFAULT",
    "HAVE_LOG_DEVICES",
    "HAVE_REALTIME_DEVICES",
    "NAMES",
    "checked_mount_options",
    "mkfs_arguments",
]

_MKFS = {"ext2": ext.MKFS, "ext3": ext.MKFS, "ext4": ext.MKFS, "xfs": xfs.MKFS, "btrfs": btrfs.MKFS}
_MOUNT = {"ext2": ext.MOUNT, "ext3": ext.MOUNT, "ext4": ext.MOUNT, "xfs": xfs.MOUNT, "btrfs": btrfs.MOUNT}
_SEE = "docs/safety.md lists what is allowed"

NAMES = tuple(_MKFS)
"""The filesystems that iolab makes."""
DEFAULT = "ext4"
HAVE_LOG_DEVICES = ("ext3", "ext4", "xfs")
HAVE_REALTIME_DEVICES = ("xfs",)


def mkfs_arguments(filesystem: str, options: str) -> list[str]:
    """The options as arguments for the filesystem's mkfs, in their order.

    Raises:
        InputError: one is not among those that iolab hands on, or its value is of another type.
    """
    try:
        words = shlex.split(options)
    except ValueError as error:
        raise InputError(f"cannot read {options!r}: {error}", where="mkfs_options") from error
    try:
        return list(_arguments(words, _MKFS[filesystem]))
    except Fault as fault:
        raise InputError(f"mkfs.{filesystem}: {fault}", where="mkfs_options", remedy=_SEE) from fault


def checked_mount_options(filesystem: str, options: str) -> str:
    """The options of the mount, as they are.

    Raises:
        InputError: as of `mkfs_arguments`.
    """
    if not options:
        return ""
    try:
        check_keys("", options, {**form.COMMON_MOUNT, **_MOUNT[filesystem]})
    except Fault as fault:
        raise InputError(f"mount -t {filesystem}: {fault}", where="mount_options", remedy=_SEE) from fault
    return options


def _arguments(words: list[str], forms: dict[str, Form]) -> Iterator[str]:
    left = iter(words)
    for word in left:
        option, value = _split(word)
        form = forms.get(option)
        if form is None:
            raise Fault(unknown(f"option {option!r}", option, forms) if option.startswith("-") else _positional(word))
        if isinstance(form, RefusedForm):
            raise Fault(f"{option!r} is refused: {form.why}")
        if form is ALONE:
            if value is not None:
                raise Fault(f"{word!r}: {option} takes no value; give each option by itself")
            yield option
            continue
        if value is None:
            value = next(left, None)
        if value is None:
            raise Fault(f"{option!r} needs a value")
        if isinstance(form, Value):
            check_value(option, value, form)
        else:
            check_keys(option, value, form)
        yield from [f"{option}={value}"] if option.startswith("--") else [option, value]


def _split(word: str) -> tuple[str, str | None]:
    """The option and the value that is attached to it, as getopt(3) reads them: `-b1024`, `--label=x`."""
    if word.startswith("--"):
        option, attached, value = word.partition("=")
        return option, value if attached else None
    return word[:2], word[2:] or None


def _positional(word: str) -> str:
    return f"{word!r} stands by itself; iolab names the device, and nothing else"
