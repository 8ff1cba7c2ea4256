"""The pictures in docs/images: that pages show them, and that the tool takes them, wide and narrow, light and dark."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image
from support.browser import BROWSER, BROWSERS
from support.stored import stored_run

ROOT = Path(__file__).resolve().parents[1]
VIEWS = [(*size, scheme) for size in ((1280, 1000), (390, 844)) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def picture() -> ModuleType:
    spec = importlib.util.spec_from_file_location("picture", ROOT / "tools" / "picture.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_documents_show_a_picture_of_each_page_and_there_are_no_others() -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {name for path in documents for name in re.findall(r"images/([\w-]+\.png)", path.read_text())}
    assert shown == {f"{name}-1280-light.png" for name in ("report", "trace", "collection")}
    assert shown == {path.name for path in (ROOT / "docs" / "images").iterdir()}


@pytest.mark.long
@pytest.mark.skipif(BROWSER is None, reason=f"no browser to take pictures with: none of {', '.join(BROWSERS)}")
@pytest.mark.parametrize("name", ["trace", "collection"])
def test_pages_are_taken_wide_and_narrow_in_light_and_dark(picture: ModuleType, name: str, tmp_path: Path) -> None:
    if name == "trace":
        page = picture.trace(tmp_path)
    else:
        stored_run(tmp_path / "nightly" / "one")
        page = picture.site(tmp_path / "nightly", tmp_path / "site")
    with picture.served(tmp_path) as address:
        taken = [picture.take(BROWSER, address + page, tmp_path, name, view) for view in VIEWS]
    for path, (width, _, scheme) in zip(taken, VIEWS, strict=True):
        with Image.open(path) as image:
            assert path.name == f"{name}-{width}-{scheme}.png" and image.width == width
            found = image.convert("L").getcolors()
            assert found is not None and len(found) > 8, "something is drawn"
            ground = max(found)[1]
            assert ground < 64 if scheme == "dark" else ground > 192
