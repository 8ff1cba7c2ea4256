"""Names and messages out of anybody's files: a terminal, a spreadsheet and a browser show them and obey nothing."""

import csv
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from iolab.base.errors import PROBLEMS_MAX, InputError
from iolab.base.plain_text import LINE_MAX, escaped_for_json, no_formula, one_line, visible
from iolab.domain.executor import error_from_json, error_to_json
from iolab.files.experiment import loads
from iolab.presentation.report.plot import literal
from support import prepared, terminal
from support.browser import BROWSER, opened
from support.command_line import CommandLine

SETTINGS = (
    "plain",
    "=cmd|' /c calc'!A1",
    "<img src=x onerror=alert(1)><b>bold</b>",
    "\x1b]0;owned\x07\x1b[2J\x1b[31mred",
    "$\\alpha$ %{x} &lt;i&gt; {{ 7 * 7 }}",
    "\u202egnp.exe\x9b2J",
    '</script><script>console.error("ran")</script>',
    '"><svg/onload=alert(1)>',
    "-5.3",
)
WORKLOAD = "<script>alert(2)</script>\x1b[8m"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """With an imported run in `run`."""
    directory = tmp_path_factory.mktemp("hostile")
    with (directory / "evil.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["workload", "setting", "round", "rate_mb_per_s", "latency_ms"])
        for number in range(6):
            for place, setting in enumerate(SETTINGS):
                rows.writerow([WORKLOAD, setting, number, 100 + 10 * place + number, 5 + place])
    iolab = CommandLine(directory, directory / "state")
    iolab("import", "evil.csv", "--out", "run")
    return iolab


def on_a_terminal(iolab: CommandLine, *arguments: str) -> str:
    """What the command sends to a terminal, both its streams."""
    where = {**os.environ, "IOLAB_STATE_DIR": str(iolab.state_dir), "TERM": "xterm-256color", "COLUMNS": "200"}
    where.pop("NO_COLOR", None)
    _, said = terminal.on_a_terminal([prepared.program(), *arguments], cwd=iolab.cwd, environment=where)
    return said.replace("\r\n", "\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "run"),
        ("show", "run", "--as", "markdown"),
        ("show", "run", "--as", "csv"),
        ("show", "run", "--json"),
        ("compare", "run"),
        ("explain", "run"),
        ("show", "run", "--metric", "\x1b[2Jabsent"),
        ("show", "\x1b[2Jabsent"),
        ("\x1b[2J",),
        ("import", "evil.csv", "--out", "\x1b[2J\udc9b"),
    ],
)
def test_a_terminal_is_sent_colours_and_nothing_else_to_obey(hostile: CommandLine, arguments: tuple[str, ...]) -> None:
    said = on_a_terminal(hostile, *arguments)
    assert said and "Traceback" not in said and "defect" not in said, said
    colourless = re.sub(r"\x1b\[(0|[1-9]|3[0-7]|9[0-7]|1;3\d|2;3\d|\d(;\d+)*)m", "", said)
    assert not OBEYED.findall(colourless), repr(said)
    assert "\x1b[8m" not in said and "\x1b[31mred" not in said


def test_colours_are_still_there(hostile: CommandLine) -> None:
    assert "\x1b[" in on_a_terminal(hostile, "show", "run")


def test_a_spreadsheet_is_given_no_formulas_and_numbers_stay_numbers(hostile: CommandLine) -> None:
    rows = list(csv.reader(hostile("show", "run", "--as", "csv").stdout.splitlines()))
    settings = {row[3] for row in rows[1:]}
    assert "'=cmd|' /c calc'!A1" in settings and "-5.3" in settings and "plain" in settings
    assert not any(re.match(r"[=+@\t\r]|-(?!5\.3$)", cell) for row in rows for cell in row)


@pytest.mark.parametrize("cell", ["=1", "+x", "-x", "@x", "\t=1", "\rx", " =1", "-5.3+cmd", "+1+2", "\n=1"])
def test_a_formula_gets_an_apostrophe(cell: str) -> None:
    assert no_formula(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["", "x", "-5.3", "+1e9", "-.5", "a=b", "1-2"])
def test_what_is_no_formula_stays(cell: str) -> None:
    assert no_formula(cell) == cell


def test_text_is_written_out() -> None:
    assert visible("a\x1b[2J\tb\n\x9b\u202e\udc80é\r") == "a\\x1b[2J\tb\n\\x9b\\u202e\\udc80é\\x0d"
    assert one_line("a\nb\x00  c") == "a b\\x00 c"
    assert len(one_line("x" * 10**7)) < LINE_MAX + 10
    assert json.loads(escaped_for_json(json.dumps("\x9b\u202e\udc80é", ensure_ascii=False))) == "\x9b\u202e\udc80é"


def test_an_error_quotes_a_line_at_most() -> None:
    error = InputError("first\nsecond\x1b[2J" + "x" * 10**6, where="a\nb", remedy="c\rd")
    assert "\n" not in str(error) and "\x1b" not in str(error) and len(str(error)) < 3 * LINE_MAX
    many = InputError([f"problem {number}\nof it" for number in range(10_000)])
    lines = str(many).split("\n")
    assert len(lines) == PROBLEMS_MAX + 1 and lines[-1] == f"and {10_000 - PROBLEMS_MAX} more problems"
    assert str(error_from_json(error_to_json(many))) == str(many)


def test_a_mistake_in_a_long_or_broken_text_is_told_in_a_short_line() -> None:
    with pytest.raises(InputError) as raised:
        loads(f'title = "x"\n[workloads.x]\nduration = "{"9" * 10**6}"\nengine = "a\\nb\\u001b[2J"\n', "x.toml")
    lines = str(raised.value).split("\n")
    assert len(lines) == 2 and all(len(line) < 2 * LINE_MAX and "\x1b" not in line for line in lines), lines


def test_plotly_is_given_names_as_they_are() -> None:
    assert literal("<b>a</b> & %{x} $x$") == "&lt;b&gt;a&lt;/b&gt; &amp; &#37;{x} &#36;x&#36;"


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the texts in SVG."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._in_text = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._in_text += tag == "text"
        if tag == "text":
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_text -= tag == "text"

    def handle_data(self, data: str) -> None:
        if self._in_text:
            self.texts[-1] += data


def test_a_report_holds_no_control_character(hostile: CommandLine) -> None:
    """Nor do the data of its plots, nor plotly's own script: `-o -` may print all of it on a terminal."""
    hostile("report", "run", "-o", "report.html")
    page = (hostile.cwd / "report.html").read_bytes().decode()
    assert not OBEYED.findall(page)
    assert "\\u001b[8m" in page, "names are in the plots"


@pytest.mark.long
@pytest.mark.skipif(BROWSER is None, reason="no browser to open the report with")
def test_a_browser_runs_and_draws_nothing_of_what_names_say(hostile: CommandLine, tmp_path: Path) -> None:
    hostile("report", "run", "-o", "report.html")
    page = opened(hostile.cwd / "report.html", tmp_path / "profile")
    assert not page.console, "\n".join(page.console)
    elements = Elements()
    elements.feed(page.dom)
    tags = [tag for tag, _ in elements.found]
    assert "img" not in tags and "i" not in tags, "markup of a name is an element"
    assert not [attributes for _, attributes in elements.found if any(name.startswith("on") for name in attributes)]
    assert not [a["href"] for _, a in elements.found if "href" in a and not str(a["href"]).startswith(("#", "data:"))]
    assert len(elements.texts) > 10
    drawn = " ".join(elements.texts)
    for setting in ("<img src=x onerror=alert(1)><b>bold</b>", "$\\alpha$ %{x} &lt;i&gt; {{ 7 * 7 }}", "\\x1b]0;owned"):
        assert setting in drawn, f"{setting} is not drawn as it is: {drawn[:3000]}"
    assert not [a for tag, a in elements.found if tag == "tspan" and "bold" in str(a.get("style", ""))]
