"""The typed program and the planted mistakes under ``pyright``, strict: ``make pyright`` runs this where pyright is installed."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent / "src"


def errors(files: list[Path]) -> set[tuple[str, int]]:
    """File and line of every error that pyright finds."""
    with tempfile.TemporaryDirectory() as folder:
        for f in files:
            (Path(folder) / f.name).write_text(f.read_text())
        settings = {"include": ["."], "extraPaths": [str(SOURCE)], "typeCheckingMode": "strict"}
        (Path(folder) / "pyrightconfig.json").write_text(json.dumps(settings))
        command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", folder]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    report = json.loads(run.stdout)
    assert report["summary"]["filesAnalyzed"] == len(files), run.stdout
    found = [d for d in report["generalDiagnostics"] if d["severity"] == "error"]
    return {(Path(d["file"]).name, d["range"]["start"]["line"] + 1) for d in found}


def main() -> None:
    """Nothing to say of the program, and every mistake found where it is."""
    program, mistakes = HERE / "user_program.py", HERE / "mistakes.py"
    lines = mistakes.read_text().splitlines()
    planted = {(mistakes.name, n) for n, line in enumerate(lines, 1) if "# mistake: " in line}
    found = errors([program, mistakes])
    if found != planted:
        sys.exit(f"pyright: not found {sorted(planted - found)}, and should not be there {sorted(found - planted)}")
    print(f"pyright: nothing in {program.name}, all {len(planted)} mistakes of {mistakes.name} found")


if __name__ == "__main__":
    main()
