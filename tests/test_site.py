"""The pages over many runs: the interface below them, the files, and all of it in a real browser."""

import fcntl
import json
import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from iolab.base import durable
from iolab.base.errors import InputError
from iolab.base.quantity import scale_for
from iolab.domain.verdict.judgement import judge
from iolab.files.collection import labels
from iolab.files.collection.collection import Collection
from iolab.files.store import read
from iolab.presentation.side_by_side import ComparisonRequest, compare_paths
from iolab.presentation.site import files
from iolab.presentation.site import run as run_page
from iolab.presentation.site.app import make_app
from iolab.presentation.site.parts import metric_id
from iolab.presentation.table import render
from support.browser import BROWSER, BROWSERS
from support.stored import MACHINE, stored_run

BYTES_MAX = 2_000_000
ADDRESS_MAX = 200
HOSTILE = '<img src=x onerror=\\"alert(1)\\"> </script><script>alert(2)</script> \' = + javascript:alert(3)'
SMALL = """\
title = "{title}"
rounds = 3
seed = {seed}
[target]
kind = "directory"
path = "."
[workloads.reads]
file_size = "1MiB"
duration = "1s"
queue_depth = {depths}
[settings.plain]
[settings.fast]
cpus = [0]
"""
INK_OF_THE_SECOND_LINE = """() => {
  const canvas = document.querySelector(".plot canvas");
  const colour = getComputedStyle(document.documentElement).getPropertyValue("--c1").trim();
  const wanted = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let count = 0;
  for (let at = 0; at < pixels.length; at += 4) count += wanted.every((part, place) => pixels[at + place] === part);
  return count;
}"""
FIRST_COLUMN = """async () => {
  const { changeColumns } = await import("./rows.js");
  const metrics = { r: { id: 1, label: "rate" } };
  const row = { title: "nightly", metric: "r", workload: "reads", benchmark: "b", hardware: "h" };
  const rows = ["bfq", "none"].map((setting) => ({ ...row, setting }));
  const named = { name: "benchmark", value: (row) => row.title, cell: (row) => row.title };
  const shown = (column) => rows.map((row) => column.cell(row).flat().map((part) => part.textContent ?? part).join(""));
  const [overview] = changeColumns(metrics, named), [benchmark] = changeColumns(metrics);
  return { overview: shown(overview), benchmark: shown(benchmark), csv: overview.words(rows[0]) };
}"""
VERDICTS = """async (cases) => {
  const { verdictAt } = await import("./verdict.js");
  return cases.map(([one, margin]) => verdictAt(one, margin));
}"""
SPARK_HEIGHT = """async (values) => {
  const { spark } = await import("./draw.js");
  const points = spark(values).querySelector(".line").getAttribute("d").match(/[ML][^ML]+/g);
  const heights = points.map((one) => Number(one.split(" ")[1]));
  return Math.max(...heights) - Math.min(...heights);
}"""
ONCE = """async (texts) => (await import("./plot.js")).once(texts)"""
SCALED = """async ([unit, value]) => {
  const { learnUnits, scale } = await import("./format.js");
  learnUnits((await (await fetch("api/meta.json")).json()).units);
  return scale(unit, [value]).text(value);
}"""
OUT_OF_SIGHT = """() => [...document.querySelectorAll(".scroll")]
  .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.getAttribute("aria-label"))"""
BADGES_OUTSIDE = """() => [...document.querySelectorAll("tbody .badge")]
  .filter((one) => one.getBoundingClientRect().right > one.closest("th, td").getBoundingClientRect().right)
  .map((one) => one.textContent)"""
END_OF_VERDICTS = """() => [...document.querySelectorAll("thead th")]
  .filter((one) => ["verdict", "against the baseline", "regressions"].includes(one.textContent))
  .map((one) => one.getBoundingClientRect().right)"""
KERNELS = ("6.1.0", "6.12.0")


def text(title: str, seed: int, depths: str = "[1, 2, 4, 8]") -> str:
    return SMALL.format(title=title, seed=seed, depths=depths)


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    parent = tmp_path_factory.mktemp("site") / "runs"
    for place, kernel in enumerate(KERNELS):
        machine = {**MACHINE, "kernel": {"release": kernel}, "hostname": "one"}
        faster = {"fast": 0.7}
        stored_run(parent / f"night-{place}", text(HOSTILE, place), faster=faster, machine=machine)
    stored_run(parent / "elsewhere", text(HOSTILE, 9), machine={**MACHINE, "hostname": "two"})
    stored_run(parent / "single", text("Another", 4, "1"), machine={**MACHINE, "hostname": "one"})
    labels.note(parent / "single", HOSTILE)
    found = Collection(parent)
    found.refresh()
    return found


@pytest.fixture(scope="module")
def served(collection: Collection) -> Iterator[str]:
    app, _ = make_app(collection, "127.0.0.1")
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    give_up = time.monotonic() + 60
    while not server.started:
        assert time.monotonic() < give_up and thread.is_alive()
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join(30)


@pytest.fixture(scope="module")
def client(served: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served, timeout=120) as found:
        yield found


def id_of(collection: Collection, name: str) -> str:
    return collection.entry(name).id


def test_every_page_is_small_typed_and_described(client: httpx.Client, collection: Collection) -> None:
    described = client.get("/api/openapi.json").json()
    entry = collection.entry("night-1")
    place = f"{entry.benchmark}-{entry.hardware}"
    benchmark = client.get(f"/api/benchmarks/{place}.json").json()
    metric = benchmark["metrics"][benchmark["compared"][0]]["id"]
    found = {
        "/api/meta.json": None, "/api/overview.json": None, "/api/runs/{chunk}.json": "/api/runs/0.json",
        "/api/live.json": None, "/api/benchmarks/{id}-{hardware}.json": f"/api/benchmarks/{place}.json",
        "/api/benchmarks/{id}-{hardware}/matrix.json": f"/api/benchmarks/{place}/matrix.json",
        "/api/benchmarks/{id}-{hardware}/{metric}.json": f"/api/benchmarks/{place}/{metric}.json",
        "/api/compare/{baseline}/{candidate}.json": f"/api/compare/{id_of(collection, 'night-0')}/{entry.id}.json",
        "/api/run/{id}.json": f"/api/run/{entry.id}.json",
        "/api/run/{id}/experiment.toml": f"/api/run/{entry.id}/experiment.toml",
        "/api/run/{id}/machine.json": f"/api/run/{entry.id}/machine.json",
        "/api/run/{id}/trials/{trial}.json": f"/api/run/{entry.id}/trials/0.json",
    }  # fmt: skip
    assert set(described["paths"]) == set(found)
    for name, address in found.items():
        assert list(described["paths"][name]) == ["get"], "read only"
        answer = client.get(address or name)
        assert answer.status_code == 200, (name, answer.text)
        assert len(answer.content) < BYTES_MAX
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_what_is_not_there_and_what_is_not_asked_here_is_refused(client: httpx.Client) -> None:
    for name in ("/api/run/0123456789ab.json", "/api/runs/7.json", "/absent.js", "/..%2f..%2fetc%2fpasswd"):
        assert client.get(name).status_code == 404, name
    assert client.get("/api/run/zz.json").status_code == 422
    assert client.post("/api/overview.json").status_code == 405
    answer = client.get("/api/overview.json", headers={"host": "evil.example"})
    assert answer.status_code == 421, "another name that leads here reads nothing"


def test_the_list_of_runs_needs_no_dictionary(client: httpx.Client, collection: Collection) -> None:
    listed = client.get("/api/runs/0.json").json()
    columns = listed["columns"]
    assert {len(values) for values in columns.values()} == {listed["total"]} == {4}
    place = columns["name"].index("night-0")
    entry = collection.entry("night-0")
    assert columns["settings"][place] == ["plain", "fast"] and columns["kernel"][place] == "6.1.0"
    assert columns["verdicts"][place] == dict(entry.verdicts)
    assert columns["started_unix_ns"][place] == entry.started_unix_ns


def test_a_metric_without_a_value_is_one_clear_line(client: httpx.Client, collection: Collection) -> None:
    place = benchmark_of(collection)[2:]
    page = client.get(f"/api/benchmarks/{place}.json").json()
    assert "fairness_jain" not in page["metrics"]
    assert all(any(value is not None for value in series["typical"]) for series in page["series"])
    answer = client.get(f"/api/benchmarks/{place}/{metric_id('fairness_jain')}.json")
    assert answer.status_code == 404
    assert answer.json()["what"].endswith("no run has a value of fairness_jain")


def test_a_run_begins_with_the_sentences_of_iolab_show(client: httpx.Client, collection: Collection) -> None:
    page = client.get(f"/api/run/{id_of(collection, 'night-1')}.json").json()
    shown = render(read(collection.directory / "night-1"), "markdown")
    assert page["sentences"] and page["sentences"][0].startswith("fast is slower than plain in rate on 4 workloads")
    for sentence in page["sentences"]:
        assert sentence in shown.replace("\n", " "), shown


def test_comparisons_are_those_of_iolab_compare(client: httpx.Client, collection: Collection) -> None:
    names = ("night-0", "night-1")
    ours, theirs = (id_of(collection, name) for name in names)
    page = client.get(f"/api/compare/{ours}/{theirs}.json").json()
    told = compare_paths(
        [collection.directory / name for name in names], ComparisonRequest(), group_by="(night-.)", from_=None
    )
    assert page["unlike"] == [] and [one["what"] for one in page["differs"]] == ["kernel"]
    assert [one["ratio"] for one in page["judged"]] == [one.judgement.ratio for one in told.comparisons]
    assert {one["setting"] for one in page["judged"]} == {"plain", "fast"}
    assert page["sentences"] and "night-0" in page["sentences"][0]


def test_unlike_machines_are_not_compared_unless_asked(client: httpx.Client, collection: Collection) -> None:
    ours, theirs = (id_of(collection, name) for name in ("night-0", "elsewhere"))
    page = client.get(f"/api/compare/{ours}/{theirs}.json").json()
    assert page["judged"] is None and [one["what"] for one in page["unlike"]] == ["machine"]
    asked = client.get(f"/api/compare/{ours}/{theirs}.json?unlike=true").json()
    assert asked["judged"] and asked["unlike"]


def test_runs_on_unlike_hardware_are_never_in_one_line(client: httpx.Client, collection: Collection) -> None:
    entry = collection.entry("night-0")
    page = client.get(f"/api/benchmarks/{entry.benchmark}-{entry.hardware}.json").json()
    assert [one["name"] for one in page["runs"]] == ["night-1", "night-0"]
    assert [one["hardware"] for one in page["elsewhere"]] == [collection.entry("elsewhere").hardware]
    matrix = client.get(f"/api/benchmarks/{entry.benchmark}-{entry.hardware}/matrix.json").json()["matrices"][0]
    assert [row["kernel"] for row in matrix["rows"]] == list(KERNELS)
    cell = next(cell for cell in matrix["rows"][1]["cells"] if cell["setting"] != "plain")
    assert cell["by_setting"]["verdict"] and cell["by_kernel"]["against"] == KERNELS[0]


def test_a_number_leads_to_its_records(client: httpx.Client, collection: Collection) -> None:
    run = id_of(collection, "night-0")
    page = client.get(f"/api/run/{run}.json").json()
    one = next(one for one in page["measured"] if one["metric"] == "iops")
    trials = page["trials"][one["workload"]][one["setting"]]
    records = [client.get(f"/api/run/{run}/trials/{trial}.json").json() for trial in trials]
    assert [record["spec"]["round"] for record in records] == list(range(len(one["rounds"])))
    assert {(record["spec"]["workload"], record["spec"]["setting"]) for record in records} == {
        (one["workload"], one["setting"])
    }
    assert client.get(f"/api/run/{run}/experiment.toml").text == text(HOSTILE, 0)


@pytest.fixture(scope="module")
def written(collection: Collection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site that took the place of an older one."""
    out = tmp_path_factory.mktemp("written") / "out"
    out.mkdir()
    (out / files.MARK).write_text(f"{files.MARK_LINE}\nstale\n")
    (out / "stale").touch()
    counted = files.write(collection, out)
    assert counted.files == sum(path.is_file() for path in out.rglob("*"))
    return out


def test_the_site_is_the_same_pages_as_files(
    client: httpx.Client, collection: Collection, written: Path, tmp_path: Path
) -> None:
    run = id_of(collection, "night-0")
    for name in (f"api/run/{run}.json", f"api/run/{run}/trials/0.json", "api/runs/0.json"):
        assert (written / name).read_bytes() == client.get(f"/{name}").content
    assert json.loads((written / "api/meta.json").read_text())["live"] is False
    assert "http-equiv" in (written / "index.html").read_text()
    assert not (written / "stale").exists() and [path.name for path in written.parent.iterdir()] == ["out"]
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="not empty"):
        files.write(collection, tmp_path)


@pytest.mark.parametrize("mark", ["", "Written by `iolab site`\n", f"{files.MARK_LINE}\nindex.html\n"])
def test_a_directory_with_more_than_a_site_is_not_replaced(mark: str, collection: Collection, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / ".git").mkdir(parents=True)
    (out / ".git" / "config").write_text("precious")
    (out / "index.html").touch()
    (out / files.MARK).write_text(mark)
    with pytest.raises(InputError, match=r"more than a site|does not list"):
        files.write(collection, out)
    assert (out / ".git" / "config").read_text() == "precious" and list(tmp_path.iterdir()) == [out]


def test_directories_that_are_called_like_temporary_ones_stay(collection: Collection, tmp_path: Path) -> None:
    names = (".out.new", ".out.old", f".out.{os.getpid()}.new")
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "kept").touch()
    files.write(collection, tmp_path / "out")
    assert all((tmp_path / name / "kept").exists() for name in names)


@pytest.mark.long
def test_sites_that_are_written_at_once_leave_a_whole_one(collection: Collection, tmp_path: Path) -> None:
    files.write(collection, tmp_path / "out")
    put = durable.os.rename

    def overtaken(source: str, target: str, **where: int) -> None:
        put(source, target, **where)
        if source == "out":
            durable.os.rename = put
            files.write(collection, tmp_path / "out")

    durable.os.rename = overtaken
    try:
        files.write(collection, tmp_path / "out")
    finally:
        durable.os.rename = put
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    files.write(collection, tmp_path / "out")


def test_the_pages_follow_no_link_out_of_a_run(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    secret = tmp_path / "secret"
    secret.write_text("only root reads this")
    for number, name in enumerate(("experiment.toml", "machine.json", "labels.json", "trials/000000.parquet")):
        stored_run(runs / f"run{number}")
        (runs / f"run{number}" / name).unlink(missing_ok=True)
        (runs / f"run{number}" / name).symlink_to(secret)
    found = Collection(runs)
    found.refresh()
    files.write(found, tmp_path / "out")
    said = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert b"only root reads this" not in said
    for entry in found.entries:
        for page in (run_page.experiment, run_page.machine):
            with suppress(InputError):
                assert b"only root" not in page(found, entry)


# From here on in a browser: one for all of it.


class Browser:
    """A page of a browser, and all that its console said."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.said: list[str] = []
        page.on("console", lambda message: self.said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: (self.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    def open(self, path: str) -> None:
        self.page.goto(f"{self.address}#/{path}")
        self.page.wait_for_selector(f'main[data-shown="{path.partition("?")[0] or "overview"}"]')


@pytest.fixture(scope="module")
def browser(served: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if BROWSER is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed: the pages were NOT opened in a browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"], timeout=120_000)
        page = started.new_page(viewport={"width": 1200, "height": 900})
        page.set_default_timeout(60_000)
        yield Browser(page, served)
        started.close()


def pages(collection: Collection) -> list[str]:
    entry, other, unlike = (id_of(collection, name) for name in ("night-1", "night-0", "elsewhere"))
    place = benchmark_of(collection)
    return ["", "runs", "live", place, f"{place}/matrix", f"r/{entry}", f"c/{other}/{entry}", f"c/{other}/{unlike}"]


def kinds_of_pages(browser: Browser, collection: Collection) -> list[str]:
    """One of each kind, a metric's and a number's too, as links lead there."""
    found = pages(collection)
    for path, link in ((found[3], "#s-metrics ~ .table tbody th a"), (found[5], "a[href*='/n/']")):
        browser.open(path)
        found.append(str(browser.page.get_attribute(f"{link} >> nth=0", "href"))[2:])
    return found


def benchmark_of(collection: Collection) -> str:
    entry = collection.entry("night-1")
    return f"b/{entry.benchmark}-{entry.hardware}"


@pytest.mark.long
def test_pages_load_without_an_error_hostile_names_are_inert_and_axe_is_content(
    browser: Browser, collection: Collection
) -> None:
    import axe_playwright_python

    # Evaluated, not added to the page, which takes no script of others.
    axe = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
    links: set[str] = set()
    for place, path in enumerate(kinds_of_pages(browser, collection)):
        # Every other page in the dark, which has colours of its own.
        browser.page.emulate_media(color_scheme="dark" if place % 2 else "light")
        browser.open(path)
        assert not browser.page.query_selector("main img, main script"), path
        if path.startswith("r/") and "/n/" not in path:
            assert browser.page.inner_text("h1") == " ".join(HOSTILE.replace("\\", "").split())
            assert browser.page.locator("td", has_text="A <model>").count() > 0
        browser.page.evaluate(axe)
        found = browser.page.evaluate(
            "axe.run(document, {resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})"
        )
        serious = [
            (one["id"], one["nodes"][0]["html"])
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]
        assert not serious, (path, serious)
        links |= set(browser.page.eval_on_selector_all("a[href]", "all => all.map((one) => one.getAttribute('href'))"))
    browser.page.emulate_media(color_scheme="light")
    assert browser.said == []
    inner = {link for link in links if link.startswith("#/")}
    assert inner and all(len(f"http://127.0.0.1:65535/{link}") <= ADDRESS_MAX for link in links)
    assert all(re.match(r"#|api/", link) for link in links), "nothing leads elsewhere"
    # Of each kind of page a few: that they resolve.
    kinds: dict[str, list[str]] = {}
    for link in sorted(inner):
        kinds.setdefault(re.sub(r"[0-9a-f]{8,}", "ID", link), []).append(link)
    for of_kind in kinds.values():
        for link in of_kind[:2]:
            browser.open(link[2:])
            assert browser.page.locator("[role=alert].problem").all_inner_texts() == [], link
    for link in [link for link in sorted(links) if link.startswith("api/")][:5]:
        assert browser.page.request.get(browser.address + link).ok, link
    assert browser.said == []


@pytest.mark.long
def test_a_plot_is_drawn_and_a_legend_moves_no_colour(browser: Browser, collection: Collection) -> None:
    browser.open(benchmark_of(collection))
    browser.page.click("#s-metrics ~ .table tbody th a")
    browser.page.wait_for_selector(".plot canvas")
    inked = INK_OF_THE_SECOND_LINE
    browser.page.wait_for_function(f"({inked})() > 20")
    before = browser.page.evaluate(inked)
    browser.page.click(".legend button >> nth=0")
    browser.page.wait_for_function("location.hash.includes('p0h=0')")
    assert browser.page.evaluate(inked) >= before / 2, "the second line keeps the second colour"
    assert browser.page.get_attribute(".legend button >> nth=0", "aria-pressed") == "false"
    assert browser.said == []


@pytest.mark.long
def test_tables_sort_filter_and_keep_it_in_the_address(browser: Browser, collection: Collection) -> None:
    browser.open("runs")
    names = "all => all.map((one) => one.textContent)"
    browser.page.click("thead button >> text=/^run$/")
    first = browser.page.eval_on_selector_all("tbody th", names)
    assert first == sorted(first)
    browser.page.click("thead button >> text=/^run$/")
    assert browser.page.eval_on_selector_all("tbody th", names) == first[::-1]
    browser.page.keyboard.press("/")
    browser.page.keyboard.type("kernel:6.12")
    assert browser.page.eval_on_selector_all("tbody th", names) == ["night-1"]
    address = browser.page.evaluate("location.hash")
    assert len(browser.address + address) <= ADDRESS_MAX
    browser.page.goto("about:blank")
    browser.page.goto(browser.address + address)
    browser.page.wait_for_selector("tbody th")
    assert browser.page.eval_on_selector_all("tbody th", names) == ["night-1"], (
        "the address shows the same to everybody"
    )
    with browser.page.expect_download() as saved:
        browser.page.click("text=CSV")
    content = Path(saved.value.path()).read_text()
    assert (
        content.startswith("run,against the baseline,pick,date,title")
        and " slower" in content
        and content.count("\n") == 2
    )
    assert browser.said == []


@pytest.mark.long
def test_the_keyboard_is_enough(browser: Browser) -> None:
    browser.page.goto("about:blank")
    browser.open("runs")
    press = browser.page.keyboard.press
    press("Tab")
    assert browser.page.evaluate("document.activeElement.id") == "skip"
    press("Enter")
    assert browser.page.evaluate("document.activeElement.id") == "main"
    browser.page.focus("thead button >> text=/^run$/")
    press("Enter")
    assert browser.page.get_attribute("thead th:has(button:text-is('run'))", "aria-sort") == "ascending"
    links = browser.page.locator("tbody th a")
    links.first.focus()
    press("ArrowDown")
    assert browser.page.evaluate("document.activeElement.textContent") == links.nth(1).text_content()
    press("ArrowUp")
    press("Enter")
    browser.page.wait_for_selector("#s-verdicts")
    assert browser.page.evaluate("location.hash").startswith("#/r/")
    assert browser.said == []


@pytest.mark.long
def test_it_is_dark_where_the_reader_s_machine_is(browser: Browser) -> None:
    light = {}
    for scheme in ("light", "dark"):
        browser.page.emulate_media(color_scheme=scheme)
        browser.open("")
        colour = browser.page.evaluate("getComputedStyle(document.body).backgroundColor")
        light[scheme] = sum(map(int, re.findall(r"\d+", colour)[:3])) / 3
    browser.page.emulate_media(color_scheme="light")
    assert light["dark"] < 64 < 192 < light["light"]


@pytest.mark.long
def test_unlike_machines_are_compared_only_when_the_reader_asks(browser: Browser, collection: Collection) -> None:
    browser.open(f"c/{id_of(collection, 'night-0')}/{id_of(collection, 'elsewhere')}")
    assert browser.page.locator("[role=alert]").count() == 1
    assert browser.page.locator("#s-verdicts").count() == 0
    browser.page.click("text=Compare them all the same")
    browser.page.wait_for_selector("#s-verdicts")
    assert "unlike=1" in browser.page.evaluate("location.hash")
    assert browser.said == []


def test_a_run_in_progress_is_followed_until_it_ends(browser: Browser, collection: Collection) -> None:
    path = collection.directory / "under-way"
    stored_run(path, text("Under way", 5, "1"), machine=MACHINE)
    journal = path / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:-3]))
    try:
        with journal.open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)  # as whoever runs it does
            collection.refresh()
            browser.open("live")
            browser.page.wait_for_selector("h2 >> text=Under way")
            browser.page.wait_for_selector("text=Verdicts up to now")
            (concluded,) = browser.page.locator(".lead").all_inner_texts()
            assert concluded.startswith("fast is the same as plain within 2 % in rate")
            browser.page.wait_for_selector(".plot canvas")
            assert re.search(r"time left\s*about \d+ s", browser.page.inner_text("main"))
            trials = browser.page.locator("[aria-label=Trials] tbody tr")
            rows = trials.count()
            assert rows in (4, 5)
            held.write("".join(lines[-3:-1]))
            held.flush()
            collection.refresh()
            trials.nth(rows).wait_for()
        collection.refresh()
        browser.page.wait_for_selector("text=No run on this machine is in progress.")
    finally:
        shutil.rmtree(path)
        collection.refresh()
    assert browser.said == []


@pytest.mark.long
def test_another_margin_gives_the_verdicts_that_iolab_would(browser: Browser) -> None:
    browser.open("")
    cases, expected = [], []
    for seed, nature in enumerate(["rate", "time", "benefit", "cost", "neutral"] * 6):
        x = [100 + (seed * 7 + place * 13) % 5 for place in range(8)]
        y = [value * (0.94 + 0.004 * seed) + (place * seed) % 3 for place, value in enumerate(x)]
        for margin in (0.0, 0.02, 0.1):
            one = judge(x, y, nature=nature, same_within=margin)  # type: ignore[arg-type]
            own = judge(x, y, nature=nature)  # type: ignore[arg-type]
            cases.append([{**own.as_dict(), "alpha": own.alpha, "nature": nature}, margin])
            expected.append(one.verdict)
    assert len(set(expected)) >= 7
    found = browser.page.evaluate(VERDICTS, cases)
    assert found == expected


@pytest.mark.long
def test_it_fits_a_phone_and_the_margin_goes_along(browser: Browser, collection: Collection) -> None:
    browser.page.set_viewport_size({"width": 390, "height": 800})
    try:
        browser.open("")
        said = browser.page.inner_text(".lead")
        assert re.fullmatch(r"No regression over time is known in [45] runs\.", said), "with that of the test before"
        rows = browser.page.eval_on_selector_all(
            "table", "all => all.map((one) => [...one.tBodies[0].rows].map((row) => row.cells[0].innerText))"
        )
        titles = [[text.partition("\n")[0] for text in one] for one in rows]
        assert any(len(set(one)) < len(one) for one in titles), "one title on two machines"
        assert all(len(set(text)) == len(text) for text in rows), "what is in sight tells any two rows apart"
        browser.open(f"r/{id_of(collection, 'night-1')}")
        assert browser.page.inner_text(".lead >> nth=0").startswith("fast is slower than plain in rate on 4 workloads")
        change = browser.page.locator("#s-verdicts ~ .table tbody tr >> nth=0").locator("td >> nth=1").bounding_box()
        assert change is not None and change["x"] + 60 <= 390, "how large the change is, is in sight"
        for path in [*kinds_of_pages(browser, collection), f"r/{id_of(collection, 'night-1')}?m=50"]:
            browser.open(path)
            assert browser.page.evaluate("document.documentElement.scrollWidth") <= 390, path
        verdicts = browser.page.eval_on_selector_all(
            "#s-verdicts ~ .table .badge", "all => all.map((one) => one.textContent)"
        )
        assert "same" in verdicts and not {"slower", "faster"} & set(verdicts), "nothing is out of the margin for sure"
        assert "m=50" in str(browser.page.get_attribute("#pages a >> nth=1", "href"))
        for path in ("", "runs", f"r/{id_of(collection, 'night-1')}"):
            browser.open(path)
            ends = browser.page.evaluate(END_OF_VERDICTS)
            assert ends and max(ends) <= 390, "the verdict is in sight"
            assert browser.page.evaluate(BADGES_OUTSIDE) == []
    finally:
        browser.page.set_viewport_size({"width": 1200, "height": 900})
    assert browser.said == []


@pytest.mark.long
def test_the_first_column_of_changes_tells_settings_apart(browser: Browser) -> None:
    """On a phone it is the one that stays in sight."""
    browser.open("")
    found = browser.page.evaluate(FIRST_COLUMN)
    assert found == {
        "overview": ["nightlyrate, reads, bfq", "nightlyrate, reads, none"],
        "benchmark": ["ratereads, bfq", "ratereads, none"],
        "csv": "nightly: rate, reads, bfq",
    }
    assert browser.said == []


@pytest.mark.long
def test_tables_fit_a_screen_of_1280_px(browser: Browser, collection: Collection) -> None:
    browser.page.set_viewport_size({"width": 1280, "height": 900})
    try:
        for path in pages(collection):
            browser.open(path)
            assert browser.page.evaluate(OUT_OF_SIGHT) == [], path
    finally:
        browser.page.set_viewport_size({"width": 1200, "height": 900})


@pytest.mark.long
def test_the_bar_of_a_comparison_stays_while_one_scrolls(browser: Browser) -> None:
    browser.page.set_viewport_size({"width": 1200, "height": 300})
    try:
        browser.page.goto("about:blank")
        browser.open("runs")
        for place in range(2):
            browser.page.locator("td input[type=checkbox]").nth(place).check()
        browser.page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        browser.page.wait_for_selector(".bar a")
        link = browser.page.locator(".bar a").bounding_box()
        assert link is not None and 0 <= link["y"] < 300
    finally:
        browser.page.set_viewport_size({"width": 1200, "height": 900})


def test_noise_does_not_fill_a_small_line_and_an_axis_has_a_date_once(browser: Browser) -> None:
    browser.open("")
    assert browser.page.evaluate(SPARK_HEIGHT, [100, 101, 100, 101]) < 3
    assert browser.page.evaluate(SPARK_HEIGHT, [100, 101, 50, 51]) > 15
    assert browser.page.evaluate(ONCE, ["a", "a", "b", "", "b"]) == ["a", "", "b", "", ""]


@pytest.mark.parametrize(
    ("unit", "value"), [("count", 103), ("count", 1128), ("count", 7.25), ("ns", 1234), ("1/s", 5)]
)
def test_pages_write_numbers_as_tables_do(browser: Browser, unit: str, value: float) -> None:
    browser.open("")
    assert browser.page.evaluate(SCALED, [unit, value]).replace("\u00a0", " ") == scale_for(unit, [value]).with_unit(
        value
    )


def test_a_site_that_is_opened_as_a_file_says_how_to_serve_it(browser: Browser, written: Path) -> None:
    started = browser.page.context.browser
    assert started is not None
    page = started.new_page()
    page.goto(f"file://{written}/index.html")
    assert f"--directory '{written}/' 8000" in page.inner_text("main")
    page.context.close()


def test_the_files_are_a_site_without_a_server(browser: Browser, collection: Collection, written: Path) -> None:
    def answer(route: Any) -> None:
        name = route.request.url.removeprefix("http://files.test/").split("?")[0] or "index.html"
        path = written / name
        route.fulfill(path=path) if path.is_file() else route.fulfill(status=404, body="")

    browser.page.route("http://files.test/**", answer)
    browser.page.goto("http://files.test/#/runs")
    browser.page.wait_for_selector("tbody th")
    assert browser.page.locator("tbody tr").count() == 4
    browser.page.goto(f"http://files.test/#/c/{id_of(collection, 'night-0')}/{id_of(collection, 'night-1')}")
    browser.page.wait_for_selector("text=iolab serve")
    browser.page.unroute("http://files.test/**")
    assert browser.said == []
