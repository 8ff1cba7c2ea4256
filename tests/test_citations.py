"""What comments cite exists: pages of docs/ with their anchors, and kernel files and functions with a version.

A comment of a mechanism cites its source itself (`fs/jbd/commit.c` of 2.5.59) or a page of docs/model/sources/, which
does. A kernel function that a comment names is on one of these pages, so that it can be looked up.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from support.links import leads_somewhere

pytestmark = pytest.mark.source

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "docs/model/sources"
FOLDERS = ["attack", "benches", "crates", "experiments", "fuzz", "machines", "published", "python", "tests", "tools"]

_COMMENT = {".rs": re.compile(r"//.*"), ".py": re.compile(r".*"), ".toml": re.compile(r"#.*")}
_IN_CRATES = re.compile(r"(?<![\w/.-])crates/[\w./-]+")
_PAGE = re.compile(r"(?<![\w/.-])docs/[\w./-]+\.md(?:#[\w-]+)?")
_NOWHERE = re.compile(
    r"(?<!a )\bnotes? on (?!what)|\bthe notes? (?:is|has|have|says?|names?|on|about)\b|\bnote's\b|\bin the notes\b"
    r"|\bsections? [A-Z]\b",
    re.I,
)
_VERSION = re.compile(r"\b\d+\.(?:\d+|x)\b|\b[0-9a-f]{7,40}\b")
_TREES = "block|drivers|fs|include/linux|io_uring|kernel|lib|mm|net"
_KERNEL_FILE = re.compile(rf"(?<![\w/])(?!fs/proc/)(?:{_TREES})/[\w/{{}},*.-]+\.[ch]\b")
"""Files of the kernel that change. What programs see (include/uapi, tracepoints, /proc) needs no version."""

_NAME = re.compile(r"`(_*[A-Za-z]\w*)`")
_OF_A_KERNEL = re.compile(
    r"_*(as|attempt|bdi|bfqq?|blk|cfq[gq]?|dd|deadline|elevator|elv|ext[234]|jbd2|journal|kyber|page_cache|rpcrdma"
    r"|sbitmap|sbq|wbt|xfs|xlog|xprt)_\w+"
)


def files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in _COMMENT and "guest" not in path.relative_to(ROOT / folder).parts and path.is_file():
                yield path


def in_comments(found_in: Callable[[str], Iterable[str]], *folders: str, suffix: str = "") -> list[str]:
    """What is found in comments of files in the folders, each with its file."""
    return [
        f"{path.relative_to(ROOT)}: {one}"
        for path in files(*folders)
        if path != Path(__file__) and path.suffix.endswith(suffix)
        for text in comments(path)
        for one in found_in(text)
    ]


def comments(path: Path) -> list[str]:
    """Lines of comments that stand together as one text each; of Python all lines, since strings are comments too."""
    found: list[str] = []
    goes_on = False
    for line in path.read_text().splitlines():
        match = _COMMENT[path.suffix].search(line)
        if match:
            text = re.sub(r"^(?://[/!]?|#)\s?", "", match[0].strip())
            is_alone = not line[: match.start()].strip()
            if goes_on and is_alone:
                found[-1] += " " + text
            else:
                found.append(text)
        goes_on = match is not None and is_alone
    return found


def broken_pages(text: str) -> list[str]:
    return [page for page in _PAGE.findall(text) if not leads_somewhere(page, ROOT / "a file at the top")]


def without_version(text: str) -> list[str]:
    """Files of the kernel, if the text names no version and no page that does."""
    return [] if _VERSION.search(text) or _PAGE.search(text) else _KERNEL_FILE.findall(text)


def named_in(text: str) -> set[str]:
    return {name for name in _NAME.findall(text) if _OF_A_KERNEL.fullmatch(name)}


def passages(page: Path) -> list[str]:
    """Paragraphs, list items and rows of tables."""
    return re.split(r"\n\s*\n|\n(?=[|-])", page.read_text())


@pytest.mark.parametrize("folder", FOLDERS)
def test_pages_that_are_cited_exist(folder: str) -> None:
    wrong = in_comments(broken_pages, folder)
    assert not wrong, "\n".join(wrong)


def test_files_of_crates_that_are_cited_exist() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    wrong = [
        f"{path.relative_to(ROOT)}: {cited}"
        for path in [*files("attack", "benches", "crates", "fuzz", "python", "tools"), *pages]
        for cited in _IN_CRATES.findall(path.read_text())
        if not (ROOT / cited.rstrip(".")).exists()
    ]
    assert not wrong, "\n".join(wrong)


def test_no_comment_cites_a_note_or_a_section_of_nothing() -> None:
    wrong = in_comments(lambda text: (match[0] for match in _NOWHERE.finditer(text)), "crates", "fuzz", suffix=".rs")
    assert not wrong, "cite the source or a page of docs/model/sources/:\n" + "\n".join(wrong)


def test_kernel_files_are_cited_with_a_version() -> None:
    wrong = in_comments(without_version, "crates", suffix=".rs")
    assert not wrong, "which version?\n" + "\n".join(wrong)


@pytest.mark.parametrize("page", sorted(SOURCES.glob("*.md")), ids=lambda page: page.stem)
def test_a_page_of_sources_gives_the_version_of_each_kernel_file(page: Path) -> None:
    wrong = [
        " ".join(text.split()) for text in passages(page) if _KERNEL_FILE.search(text) and not _VERSION.search(text)
    ]
    assert not wrong, "\n".join(wrong)


def test_kernel_functions_that_comments_name_are_on_a_page_and_no_others() -> None:
    texts = [text for path in files("crates/model") if "src" in path.parts for text in comments(path)]
    tables = [page.read_text().partition("## Named in the model")[2] for page in SOURCES.glob("*.md")]
    listed = {name for table in tables for name in _NAME.findall(table)}
    named = {name for text in texts for name in named_in(text)}
    assert not named - listed, f"add to docs/model/sources/: {', '.join(sorted(named - listed))}"
    unused = listed - {name for text in texts for name in _NAME.findall(text)}
    assert not unused, f"no comment names them any more: {', '.join(sorted(unused))}"


def test_what_is_cited_wrongly_is_found(tmp_path: Path) -> None:
    source = tmp_path / "queue.rs"
    source.write_text(
        "//! Source: note on merging and plugging,\n//! section C.\n\nfn f() {} // docs/model/gone.md, docs/README.md\n"
        "/// `cfq_arm_slice_timer` of `block/cfq-iosched.c`.\n"
    )
    first, second, third = comments(source)[0], comments(source)[1], comments(source)[-1]
    assert [match[0] for match in _NOWHERE.finditer(first)] == ["note on ", "section C"]
    assert broken_pages(second) == ["docs/model/gone.md", "docs/README.md"]
    assert broken_pages("docs/model/sources/plugging.md#plugging docs/model/sources/plugging.md#nothing") == [
        "docs/model/sources/plugging.md#nothing"
    ]
    assert without_version(third) == ["block/cfq-iosched.c"]
    assert not without_version(third.replace(".c`", ".c` of 2.6.35"))
    assert named_in(third) == {"cfq_arm_slice_timer"}
