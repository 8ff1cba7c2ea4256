"""The drives and the users of the machine that tools/test_host.py boots."""

from pathlib import Path

from support.devices import command

USER = "ann"
HOW = {
    "root": (),
    "root in a scope": ("systemd-run", "--scope", "--quiet", "--"),
    "user": ("runuser", "-u", USER, "--"),
    "user in a scope": ("systemd-run", "--scope", "--quiet", f"--uid={USER}", "--"),
}
"""Who runs iolab, and what comes before its command line."""


def scope_of_user(*properties: str) -> tuple[str, ...]:
    """Before a command line: in a scope of the user's own systemd."""
    number = command("id", "--user", USER)
    command("systemctl", "start", f"user@{number}.service")
    own = [f"--property={one}" for one in properties]
    run = ("runuser", "-u", USER, "--", "env", f"XDG_RUNTIME_DIR=/run/user/{number}")
    return (*run, "systemd-run", "--user", "--scope", "--quiet", *own, "--")


def drive(serial: str) -> Path:
    """The disk with this serial number."""
    for line in command("lsblk", "--nodeps", "--noheadings", "--output", "PATH,SERIAL").splitlines():
        path, _, found = line.partition(" ")
        if found.strip() == serial:
            return Path(path)
    raise AssertionError(f"no drive {serial}")


def blank(device: Path) -> Path:
    command("blkdiscard", "--force", "--zeroout", device)
    return device
