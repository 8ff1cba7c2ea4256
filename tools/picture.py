"""Takes the pictures in docs/images of a report, of a trace's page and of the pages over many runs:
`.venv/bin/python tools/picture.py [report|trace|collection ...]`.

The runs are on a simulated machine with seeds and the trace is a sample, so that the pictures change with the pages
alone. It needs chromium (Debian: apt-get install chromium), and no network.
"""

import contextlib
import functools
import http.server
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import iolab
from iolab.files.collection.collection import Collection
from iolab.presentation.cli.invoke import invoke
from iolab.presentation.site.files import write
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "images"
SAMPLE = ROOT / "docs" / "samples" / "trace-cmd-7.dat"
Scheme = Literal["light", "dark"]
SHOWN: tuple[int, int, Scheme] = (1280, 1000, "light")
"""Width and height in pixels, and the colours."""
NIGHTS, SLOWER_FROM = 22, 13
COLOURS = 256
"""Half the bytes of all colours."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TIME_LIMIT_MS = 120_000
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
    known: dict[str, Callable[[Path], str]] = {"report": report, "trace": trace, "collection": collection}
    for name in sys.argv[1:] or known:
        with tempfile.TemporaryDirectory(prefix="iolab-picture-") as made, served(Path(made)) as address:
            kept = take(browser, address + known[name](Path(made)), PICTURES, name)
            print(f"took {kept.name}: {kept.stat().st_size / 1000:.0f} kB")
    return 0


def report(made: Path) -> str:
    """A report, as a page's name below `made`."""
    return iolab.report(iolab.run(EXPERIMENT, out=made / "depth"), made / "depth.html").name


def trace(made: Path) -> str:
    """The page of a trace, the same."""
    shutil.copy(SAMPLE, made)
    with contextlib.chdir(made):
        status = invoke(["trace", SAMPLE.name, "-o", "trace.html"])
    assert status == 0, status
    return "trace.html"


def collection(made: Path) -> str:
    """The first page over the nights of two benchmarks, of which one becomes slower; the same."""
    for night in range(NIGHTS):
        for number, (title, read_percent) in enumerate(BENCHMARKS.items()):
            depth = 5 if number == 0 and night >= SLOWER_FROM else 8
            text = NIGHTLY.format(title=title, seed=night + 1, read_percent=read_percent, depth=depth)
            iolab.run(text, out=made / "nightly" / f"{title.lower().replace(' ', '-')}-{night + 1:02d}")
    return site(made / "nightly", made / "site")


def site(nightly: Path, out: Path) -> str:
    """The pages over the runs below a directory, with their histories; the same."""
    runs = Collection(nightly)
    runs.refresh()
    write(runs, out)
    return f"{out.name}/index.html"


@contextlib.contextmanager
def served(directory: Path) -> Iterator[str]:
    """The address of a directory while it is served here."""
    handler = functools.partial(Quiet, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and prints nothing."""

    def log_message(self, *_: object) -> None:
        pass


def take(browser: str, address: str, directory: Path, name: str, view: tuple[int, int, Scheme] = SHOWN) -> Path:
    """A picture of the top of a page: `directory`/NAME-WIDTH-SCHEME.png."""
    from playwright.sync_api import sync_playwright

    width, height, scheme = view
    kept = directory / f"{name}-{width}-{scheme}.png"
    with sync_playwright() as play:
        started = play.chromium.launch(
            executable_path=browser, args=["--no-sandbox", "--disable-gpu"], timeout=TIME_LIMIT_MS
        )
        page = started.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        page.set_default_timeout(TIME_LIMIT_MS)
        page.goto(address, wait_until="networkidle")
        page.wait_for_function(IS_DRAWN)
        page.screenshot(path=kept)
        started.close()
    with Image.open(kept) as picture:
        smaller = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    smaller.save(kept, optimize=True)
    return kept


IS_DRAWN = """() => {
  const main = document.querySelector("main");
  if (!main || main.textContent === "Loading") return false;
  return [...document.querySelectorAll("script.plot-data")]
    .every((source) => document.getElementById(source.dataset.plot).querySelector(".main-svg"));
}"""
"""Whether a page has all its plots."""


if __name__ == "__main__":
    sys.exit(main())
