"""A search's journal that lies: each line that no search wrote is named with its key, and nothing of it is believed."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from iolab.base import checked_lines
from iolab.domain.bisect.search import VALUE_MAX
from iolab.presentation.cli.invoke import invoke
from iolab.studies.run import commits
from iolab.studies.run.commits import GitQuestion

ABSENT = object()
WRONG: list[Any] = [ABSENT, None, "x", -1, 1.5, True, [], {"a": 1}, 10**400, 1e308, "a\0b", "\ud800", [["x"]]]
pytestmark = pytest.mark.usefixtures("state_dir")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search among versions of a list, which is over and confirmed, with entries of each kind."""
    path = tmp_path_factory.mktemp("search")
    (path / "versions").write_text("".join(f"v{number}\n" for number in range(12)))
    measure = 'read v < version; n=${v#v}; [ "$n" = 3 ] && exit 1; [ "$n" -gt 7 ] && echo 20 || echo 10'
    arguments = ["bisect", "--versions", str(path / "versions"), "--measure", measure, "--value", "printed"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IOLAB_STATE_DIR", str(path))
        assert invoke([*arguments, "--confirm", "2", "--out", str(path / "hunt")]) == 0
    kinds = {entry["event"] for entry in checked_lines.read((path / "hunt" / "search.jsonl").read_bytes()).entries}
    assert kinds == {"question", "built", "measured", "unmeasurable"}
    return path / "hunt"


@pytest.fixture
def hunt(whole: Path, tmp_path: Path, state_dir: Path) -> Path:
    """A copy, which the same user made."""
    shutil.copytree(whole, tmp_path / "hunt")
    shutil.copy(whole.parent / "origin.key", state_dir)
    return tmp_path / "hunt"


def refused_or_read(hunt: Path, content: bytes, number: int, capsys: pytest.CaptureFixture[str]) -> str:
    """The line that refuses it. A question that is another one, and a good one, is somebody else's: it is trusted."""
    (hunt / "search.jsonl").write_bytes(content)
    signature = (hunt / "origin").read_bytes()
    status = invoke(["bisect", "--resume", str(hunt), "--json", "--trust-run"])
    (hunt / "origin").write_bytes(signature)
    said = capsys.readouterr().err
    assert "defect" not in said, said
    assert status in (0, 2)
    if status == 0:
        return ""
    (line,) = said.splitlines()
    assert f"search.jsonl:{number}: " in line or "does not begin with a question" in line, line
    return said


def chosen(entries: list[Any]) -> list[int]:
    """The first line of each kind, and one that confirms."""
    kinds: dict[object, int] = {}
    for place, entry in enumerate(entries):
        kinds.setdefault((entry["event"], entry.get("of") is None), place)
    return list(kinds.values())


@pytest.mark.long
def test_each_key_of_each_kind_of_line(hunt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries: list[Any] = checked_lines.read((hunt / "search.jsonl").read_bytes()).entries
    for place in chosen(entries):
        for key in [*entries[place], "unknown"]:
            refused = 0
            for value in WRONG:
                changed = {**entries[place], key: value}
                if value is ABSENT:
                    del changed[key]
                    if key == "unknown":
                        continue
                lines = [*entries[:place], changed, *entries[place + 1 :]]
                content = b"".join(map(checked_lines.encode, lines))
                said = refused_or_read(hunt, content, place + 1, capsys)
                refused += bool(said)
                if said and key not in ("event", "format"):
                    assert key in said or value == "\ud800", said
            assert refused >= len(WRONG) // 2, (place, key)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"place": 12}, "place: 12, of 12 commits"),
        ({"place": 3, "of": 9, "round": 0}, "of: 9, which place 3 does not confirm"),
        ({"place": 0, "of": 0, "round": 0}, "of: 0, which"),
        ({"of": 1}, "round: goes with `of`"),
        ({"place": 1, "of": 1, "round": 2}, "round: 2, of 2"),
        ({"event": "cast"}, "Input tag 'cast'"),
    ],
)
def test_places_that_are_none(
    hunt: Path, change: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    entries: list[Any] = checked_lines.read((hunt / "search.jsonl").read_bytes()).entries
    place = next(place for place, entry in enumerate(entries) if entry["event"] == "measured")
    entries[place] = {**entries[place], **change}
    content = b"".join(map(checked_lines.encode, entries))
    assert said in refused_or_read(hunt, content, place + 1, capsys)


@pytest.mark.parametrize("damage", [b"\xff", b"no JSON\n", b"{}\n", b"[" * 100_000 + b"\n", b"null\n"])
def test_a_damaged_line_is_named(hunt: Path, damage: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    first, *lines = (hunt / "search.jsonl").read_bytes().splitlines(keepends=True)
    assert refused_or_read(hunt, b"".join([first, damage, *lines]), 2, capsys)
    refused_or_read(hunt, b"".join([damage, first, *lines]), 1, capsys)


@pytest.mark.parametrize("kind", ["fifo", "directory", "zero"])
def test_what_is_no_regular_file_is_no_journal(hunt: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = hunt / "search.jsonl"
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    assert invoke(["bisect", "--resume", str(hunt)]) == 2
    assert "defect" not in capsys.readouterr().err


@pytest.mark.parametrize("printed", ["1e308", "-1e308", "inf", "nan", "5e-324", "1e100", "1_0", "1e400"])
def test_numbers_at_the_bounds_end_in_an_answer(
    printed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "versions").write_text("a\nb\nc\nd\n")
    measure = f"read v < version; case $v in c|d) echo {printed};; *) echo 1;; esac"
    arguments = ["bisect", "--versions", str(tmp_path / "versions"), "--measure", measure, "--value", "printed"]
    assert invoke([*arguments, "--confirm", "2", "--most", "20", "--out", str(tmp_path / "hunt"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    beyond = not abs(float(printed)) <= VALUE_MAX
    assert len(found["unmeasurable"]) == (2 if beyond else 0)


def test_parts_that_are_gone_are_one_line(hunt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = checked_lines.read((hunt / "search.jsonl").read_bytes()).entries
    (hunt / "search.jsonl").write_bytes(checked_lines.encode(entries[0]))
    shutil.rmtree(hunt / "builds")
    assert invoke(["bisect", "--resume", str(hunt)]) == 0
    (hunt / "search.jsonl").write_bytes(checked_lines.encode(entries[0]))
    shutil.rmtree(hunt / "builds")
    shutil.rmtree(hunt / "source")
    capsys.readouterr()
    assert invoke(["bisect", "--resume", str(hunt)]) == 2
    assert "source: is gone" in capsys.readouterr().err


def test_whole_numbers_of_a_caller_are_signed_as_they_are_read_back(tmp_path: Path) -> None:
    """Who made it is not asked about it."""
    asked = GitQuestion(
        repository="",
        good="a",
        bad="b",
        build=None,
        measure="cat version | tr ab 12",
        value="printed",
        higher_is_better=False,
        same_within=0,
        confidence=0.95,
        most=20,
        confirm=0,
        build_limit_s=60,
        measure_limit_s=60,
        seed=1,
        versions=("a", "b"),
    )
    found = commits.start(asked, tmp_path / "hunt", lambda line: None)
    assert commits.resume(tmp_path / "hunt", lambda line: None).answer == found.answer
