"""Fits the library of named devices: machines/devices/MODEL.toml, and the table of docs/reference/device-library.md.

python tools/device_library [MODEL ...]         fits these anew, or all: some minutes
python tools/device_library --texts             writes the texts anew from results.json
"""

from __future__ import annotations

import argparse
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import texts
from classes import class_of
from fitting import Fitted, fitted
from runs import Model, models

ROOT = Path(__file__).parents[2]
DEVICES = ROOT / "machines" / "devices"
PAGE = ROOT / "docs" / "reference" / "device-library.md"
RESULTS = Path(__file__).parent / "results.json"
TABLE = re.compile(r"(?<=<!-- library -->\n).*?(?=<!-- end of library -->)", re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the library of named devices.")
    parser.add_argument("models", nargs="*", help="names as in runs.csv; all without")
    parser.add_argument("--texts", action="store_true", help="fit nothing, write the texts anew")
    given = parser.parse_args()
    known = models()
    asked = [] if given.texts else [model for model in known if not given.models or model.name in given.models]
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with ThreadPoolExecutor(2) as threads:
        for found in threads.map(fitted, asked):
            results[found.model.name] = as_dict(found)
            print(found.model.file, found.keys, flush=True)
            RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    for path, text in rendered(results, known).items():
        path.write_text(text)


def rendered(results: dict[str, dict], known: list[Model]) -> dict[Path, str]:
    """Every text of the library, by its path."""
    library = [of_dict(model, results[model.name]) for model in known if model.name in results]
    found = {DEVICES / f"{one.model.file}.toml": texts.device_text(one, known) for one in library}
    table = texts.page_table(library, known)
    return found | {PAGE: TABLE.sub(lambda _: f"\n{table}\n", PAGE.read_text())}


def as_dict(found: Fitted) -> dict:
    """What is kept of a fit."""
    figures = {name: float(f"{value:.5g}") for name, value in found.figures.items()}
    return {"device": found.device, "keys": found.keys, "kept": found.kept, "figures": figures}


def of_dict(model: Model, kept: dict) -> Fitted:
    """The fit that was kept."""
    return Fitted(model, class_of(model.name), kept["device"], kept["keys"], tuple(kept["kept"]), kept["figures"])


if __name__ == "__main__":
    main()
