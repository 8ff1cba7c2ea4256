"""Options that mount(8) takes for every filesystem. None that names another place or a helper."""

from __future__ import annotations

from iolab.domain.filesystem_options.form import CONTEXT, Keys, flags

MOUNT: Keys = {
    **flags(
        "defaults rw ro atime noatime relatime norelatime strictatime nostrictatime diratime nodiratime lazytime "
        "nolazytime sync async dirsync dev nodev suid nosuid exec noexec iversion noiversion mand nomand symfollow "
        "nosymfollow silent loud"
    ),
    "context": CONTEXT,
    "defcontext": CONTEXT,
    "fscontext": CONTEXT,
    "rootcontext": CONTEXT,
}
