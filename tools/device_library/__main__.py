"""Fits the library of named devices: machines/devices/MODEL.toml, and the table of docs/reference/device-library.md.

python tools/device_library [MODEL ...]         fits these anew, or all: some minutes
python tools/device_library --texts             writes the texts anew from results.json
"""

import argparse
import json
from concurrent.futures import ThreadPoolExecutor

from fitting import fitted
from iolab.base.strict_json import by_row
from library import RESULTS, as_dict, rendered
from runs import models


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the library of named devices.")
    parser.add_argument("models", nargs="*", help="names as in runs.csv; all without")
    parser.add_argument("--texts", action="store_true", help="fit nothing, write the texts anew")
    given = parser.parse_args()
    known = models()
    asked = [] if given.texts else [model for model in known if not given.models or model.name in given.models]
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with ThreadPoolExecutor(2) as threads:
        for found in threads.map(lambda model: fitted(model, known), asked):
            results[found.model.name] = as_dict(found)
            print(found.model.file, found.keys, flush=True)
            in_order = json.loads(json.dumps(results, sort_keys=True))
            RESULTS.write_text(by_row(in_order) + "\n")
    for path, text in rendered(json.loads(RESULTS.read_text()), known).items():
        path.write_text(text)


if __name__ == "__main__":
    main()
