"""The page of a trace in a real browser: zooming draws what was counted in finer intervals."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from iolab.presentation.cli.invoke import invoke
from support.browser import BROWSER, BROWSERS

STEP = """(id) => { const [line] = document.getElementById(id).data; return [line.x.length, line.x[1] - line.x[0]]; }"""
COUNT = """(id) => document.getElementById(id).data[0].z.flat().reduce((sum, one) => sum + one, 0)"""
ZOOM = """([id, low, high]) => Plotly.relayout(document.getElementById(id), {"xaxis.range": [low, high]})"""
WHOLE = """(id) => Plotly.relayout(document.getElementById(id), {"xaxis.autorange": true})"""
FINER = """([id, step]) => { const [line] = document.getElementById(id).data; return line.x[1] - line.x[0] < step; }"""
AS_BEFORE = """([id, length]) => document.getElementById(id).data[0].x.length === length"""


@pytest.mark.skipif(BROWSER is None, reason=f"no browser to open the page with: none of {', '.join(BROWSERS)}")
def test_zooming_draws_finer_intervals_and_loses_no_request(tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    requests, random = 20_000, Random(1)
    table = tmp_path / "trace.csv"
    lines = (
        f"{number * 500_000},{'RW'[number % 2]},{random.randrange(2**20) * 4096},4096,{random.randrange(10**7)}"
        for number in range(requests)
    )
    table.write_text("\n".join(lines) + "\n")
    page_file = tmp_path / "page.html"
    columns = "time:ns,operation,offset:B,size:B,latency:ns"
    assert invoke(["trace", str(table), "--columns", columns, "-o", str(page_file)]) == 0
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"], timeout=120_000)
        page = browser.new_page()
        page.set_default_timeout(60_000)
        errors = list[Any]()
        page.on("pageerror", lambda error: errors.append(error))
        page.goto(page_file.as_uri())
        for plot in ("trace-latency", "trace-places", "trace-rates"):
            length, step_s = page.evaluate(STEP, plot)
            assert length <= 1024
            if plot != "trace-rates":
                assert page.evaluate(COUNT, plot) == requests
            page.evaluate(ZOOM, [plot, 2.0, 2.5])
            page.wait_for_function(FINER, arg=[plot, step_s * 0.51])
            finer_length, finer_s = page.evaluate(STEP, plot)
            assert finer_length == pytest.approx(0.5 / finer_s, abs=2)
            if plot == "trace-places":
                assert page.evaluate(COUNT, plot) == pytest.approx(1000, abs=4)
            page.evaluate(WHOLE, plot)
            page.wait_for_function(AS_BEFORE, arg=[plot, length])
            assert page.evaluate(STEP, plot)[1] == pytest.approx(step_s)
        browser.close()
    assert not errors
