"""Takes docs/images/report.png, the picture of a report in README.md: `.venv/bin/python tools/picture.py`.

The run is on a simulated machine with a seed, so that the picture changes with the report alone. It needs chromium
(Debian: apt-get install chromium), and no network.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import iolab
from PIL import Image

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "report.png"
WIDTH_PX, HEIGHT_PX = 1280, 1225
COLOURS = 256
"""Half the bytes of all colours."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TIME_LIMIT_S = 120
EXPERIMENT = """\
title   = "What does a deeper queue buy?"
machine = "model:nvme"
rounds  = 8
seed    = 1

[workloads.reads]
pattern   = "random"
file_size = "1GiB"
warm_up   = "500ms"
duration  = "2s"

[probes]
block = true

[settings.one]
workload = { queue_depth = 1 }

[settings.sixteen]
workload = { queue_depth = 16 }
"""


def main() -> int:
    """Replaces the picture."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        print(f"picture: none of {', '.join(BROWSERS)} is installed", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory(prefix="iolab-picture-") as made:
        page = iolab.report(iolab.run(EXPERIMENT, out=Path(made, "depth")), Path(made, "depth.html"))
        taken = Path(made, "report.png")
        take(browser, page, taken)
        with Image.open(taken) as picture:
            picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
    print(f"took {PICTURE.name}: {PICTURE.stat().st_size / 1000:.0f} kB")
    return 0


def take(browser: str, page: Path, picture: Path) -> None:
    """A picture of the top of a page; CalledProcessError or TimeoutExpired if the browser fails."""
    options = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--force-device-scale-factor=1",
        "--virtual-time-budget=10000",
        "--proxy-server=127.0.0.1:1",  # nobody listens there: nothing is fetched
        f"--user-data-dir={picture.parent}/profile",
        f"--window-size={WIDTH_PX},{HEIGHT_PX}",
        f"--screenshot={picture}",
    )
    subprocess.run([browser, *options, f"file://{page}"], check=True, capture_output=True, timeout=TIME_LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
