"""Takes docs/images/report.png and docs/images/collection.png, the pictures of a report and of the pages over many runs
in README.md: `.venv/bin/python tools/picture.py [report|collection ...]`.

The runs are on a simulated machine with seeds, so that the pictures change with the pages alone. It needs chromium
(Debian: apt-get install chromium), and no network.
"""

from __future__ import annotations

import functools
import http.server
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import iolab
from iolab.files.collection.collection import Collection
from iolab.presentation.site.files import write
from PIL import Image

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDTH_PX, HEIGHT_PX = 1280, 1225
COLLECTION_PX = 1280, 660
NIGHTS, SLOWER_FROM = 22, 13
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


NIGHTLY = """\
title   = "{title}"
machine = "model:nvme"
rounds  = 3
seed    = {seed}

[workloads.reads]
pattern     = "random"
read_percent = {read_percent}
file_size   = "64MiB"
duration    = "20ms"
queue_depth = {depth}

[settings.none]
scheduler = "none"

[settings.mq-deadline]
scheduler = "mq-deadline"
"""
BENCHMARKS = {"Random reads": 100, "Reads beside writes": 70}
"""By title, the share of reads."""


def main() -> int:
    """Replaces the pictures."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        print(f"picture: none of {', '.join(BROWSERS)} is installed", file=sys.stderr)
        return 3
    known = {"report": of_report, "collection": of_collection}
    for name in sys.argv[1:] or known:
        with tempfile.TemporaryDirectory(prefix="iolab-picture-") as made:
            taken = known[name](browser, Path(made))
            kept = PICTURES / f"{name}.png"
            with Image.open(taken) as picture:
                picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(kept, optimize=True)
        print(f"took {kept.name}: {kept.stat().st_size / 1000:.0f} kB")
    return 0


def of_report(browser: str, made: Path) -> Path:
    """The top of a report."""
    page = iolab.report(iolab.run(EXPERIMENT, out=made / "depth"), made / "depth.html")
    return take(browser, f"file://{page}", made / "report.png", (WIDTH_PX, HEIGHT_PX))


def of_collection(browser: str, made: Path) -> Path:
    """The first page over the nights of two benchmarks, of which one becomes slower."""
    for night in range(NIGHTS):
        for number, (title, read_percent) in enumerate(BENCHMARKS.items()):
            depth = 5 if number == 0 and night >= SLOWER_FROM else 8
            text = NIGHTLY.format(title=title, seed=night + 1, read_percent=read_percent, depth=depth)
            iolab.run(text, out=made / "nightly" / f"{title.lower().replace(' ', '-')}-{night + 1:02d}")
    runs = Collection(made / "nightly")
    runs.refresh()
    write(runs, made / "site")
    handler = functools.partial(Quiet, directory=str(made / "site"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        taken = take(browser, address, made / "collection.png", COLLECTION_PX)
        server.shutdown()
    return taken


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, *_: object) -> None:
        pass


def take(browser: str, address: str, picture: Path, size_px: tuple[int, int]) -> Path:
    """A picture of the top of a page; CalledProcessError or TimeoutExpired if the browser fails."""
    options = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--force-device-scale-factor=1",
        "--virtual-time-budget=10000",
        "--proxy-server=127.0.0.1:1",  # nobody listens there: nothing is fetched from elsewhere
        f"--user-data-dir={picture.parent}/profile",
        f"--window-size={size_px[0]},{size_px[1]}",
        f"--screenshot={picture}",
    )
    subprocess.run([browser, *options, address], check=True, capture_output=True, timeout=TIME_LIMIT_S)
    return picture


if __name__ == "__main__":
    sys.exit(main())
