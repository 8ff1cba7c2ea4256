"""A real browser, without a network, that opens a page."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next((found for name in BROWSERS if (found := shutil.which(name))), None)
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=10000",
    "--proxy-server=127.0.0.1:1",  # nobody listens there: asking a network for anything fails, and is logged
    "--proxy-bypass-list=<-loopback>",
)
TIME_LIMIT_S = 120.0


@dataclass(frozen=True)
class Page:
    dom: str
    """As it is after its scripts have run."""
    console: list[str]
    """What scripts and the browser itself said."""


def opened(page: Path, profile: Path) -> Page:
    assert BROWSER is not None
    done = subprocess.run(
        [BROWSER, *OPTIONS, f"--user-data-dir={profile}", "--dump-dom", f"file://{page}"],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    return Page(done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line])
