"""What the README says in numbers is what the page of the matrix holds."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_numbers_of_the_readme_are_those_of_the_matrix() -> None:
    page = (ROOT / "docs" / "conformance.html").read_text()
    start = page.index("const DATA = ") + len("const DATA = ")
    data: dict[str, Any] = json.JSONDecoder().raw_decode(page[start:])[0]
    exact, precise = data["columns"][:12], data["columns"][12:]
    assert precise == ["float32", "16-bit"]

    def count(library: str, columns: list[str], differentiable: bool) -> Counter[str]:
        rows = [r for r in data[library]["entries"] if r["differentiable"] or not differentiable]
        return Counter(r["cells"][c]["status"] for r in rows for c in columns)

    ours, theirs, digits = (
        count("ours", exact, True),
        count("torch", exact, True),
        count("ours", precise, False),
    )
    total, entries = sum(ours.values()), len(data["ours"]["entries"])
    n = total // len(exact)
    text = re.sub(r"\s+", " ", (ROOT / "README.md").read_text())
    none = "none is wrong and none raises"
    for said in (
        f"Of the {total:,} cells of its {n} differentiable entries in the twelve columns",
        f"{ours['right']:,} are right and {ours['n/a']} do not apply; {none}",
        f"it gets {theirs['right']:,} of {total:,} right and {theirs['wrong']} wrong",
        f"of all {entries} entries, {digits['right']:,} cells of {entries * 2 - digits['n/a']:,} that apply are right",
    ):
        assert said in text, said
    assert ours["wrong"] == ours["raised"] == 0, "the README says that there are none"
