"""Fits the library of named devices: machines/devices/MODEL.toml, and the table of docs/reference/device-library.md.

python tools/device_library [MODEL ...]         fits these anew, or all: some minutes
python tools/device_library --texts             writes the texts anew from results.json
"""

import json
import re
from pathlib import Path
from typing import Any

import texts
from classes import class_of
from fitting import Fitted, with_keys
from runs import Model

ROOT = Path(__file__).parents[2]
DEVICES = ROOT / "machines" / "devices"
PAGE = ROOT / "docs" / "reference" / "device-library.md"
RESULTS = Path(__file__).parent / "results.json"
TABLE = re.compile(r"(?<=<!-- library -->\n).*?(?=<!-- end of library -->)", re.DOTALL)


def rendered(results: dict[str, dict[str, Any]], known: list[Model]) -> dict[Path, str]:
    """Every text of the library, by its path."""
    library = [of_dict(model, known, results[model.name]) for model in known if model.name in results]
    found = {DEVICES / f"{one.model.file}.toml": texts.device_text(one, known) for one in library}
    table = texts.page_table(library, known)
    return found | {PAGE: TABLE.sub(lambda _: f"\n{table}\n", PAGE.read_text())}


def as_dict(found: Fitted) -> dict[str, Any]:
    """What is kept of a fit: the device follows from its keys."""
    figures = {name: float(f"{value:.5g}") for name, value in found.figures.items()}
    return {"keys": found.keys, "kept": found.kept, "figures": figures}


def of_dict(model: Model, known: list[Model], kept: dict[str, Any]) -> Fitted:
    """The fit that was kept."""
    device = json.loads(json.dumps(with_keys(model, known, kept["keys"]), sort_keys=True))
    return Fitted(model, class_of(model.name), device, kept["keys"], tuple(kept["kept"]), kept["figures"])
