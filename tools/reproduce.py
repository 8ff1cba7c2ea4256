"""Runs the published experiments on their simulated machines and stores what comes out in published/results/.

They are a function of machine files, experiments and seeds, so that a change of the model shows as a difference. docs/
has the scorecard of what is stored; `make golden` writes it.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from iolab.base.strict_json import by_row
from iolab.studies.reproduction import names
from iolab.studies.reproduction.as_json import to_store
from iolab.studies.reproduction.scorecard import RESULTS

PROGRAM = Path(sys.executable).parent / "iolab"


def main() -> int:
    parser = argparse.ArgumentParser(description="Reproduce published figures and store the results.")
    parser.add_argument("name", nargs="*", help="these files of published/ only")
    for name in parser.parse_args().name or names():
        done = subprocess.run([PROGRAM, "reproduce", name, "--json"], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            return done.returncode
        RESULTS.mkdir(exist_ok=True)
        parts = [to_store(part) for part in json.loads(done.stdout)]
        (RESULTS / f"{name}.json").write_text(by_row(parts) + "\n")
        print(f"wrote published/results/{name}.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
