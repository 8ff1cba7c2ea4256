"""The pictures in docs/images: that the tool takes them, wide and narrow, in light and in dark."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image
from support.browser import BROWSER, BROWSERS
from support.stored import stored_run

ROOT = Path(__file__).resolve().parents[1]
NAMES = {f"{width}-{scheme}" for width in (1280, 390) for scheme in ("light", "dark")}


@pytest.fixture(scope="module")
def picture() -> ModuleType:
    spec = importlib.util.spec_from_file_location("picture", ROOT / "tools" / "picture.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("name", ["report", "trace", "collection"])
def test_the_documents_have_a_picture_of_each_page(name: str) -> None:
    assert {path.stem.removeprefix(f"{name}-") for path in (ROOT / "docs" / "images").glob(f"{name}-*.png")} == NAMES


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
        taken = list(picture.take(BROWSER, address + page, tmp_path, name))
    assert {path.stem.removeprefix(f"{name}-") for path in taken} == NAMES
    for path in taken:
        with Image.open(path) as image:
            width, scheme = path.stem.split("-")[1:]
            assert image.width == int(width)
            found = image.convert("L").getcolors()
            assert found is not None and len(found) > 8, "something is drawn"
            ground = max(found)[1]
            assert ground < 64 if scheme == "dark" else ground > 192
