"""The sources of the site: every public function has an entry whose example runs, code blocks are such that they are run, links lead somewhere."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import chainrule
from chainrule.core.registry import PUBLIC
from docs.site import build, reference

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted(p for p in (ROOT / "docs").rglob("*.md"))


@pytest.fixture(scope="module")
def entries() -> dict[str, reference.Entry]:
    return {e.names[0]: e for _, e in reference.entries()}


def test_every_public_function_has_an_entry_and_an_example_that_runs(entries: dict[str, reference.Entry]) -> None:
    listed = {n for e in entries.values() for n in e.names}
    wanted = {n for n in PUBLIC if not n.startswith(("_C.", "ops.")) and not n.rpartition(".")[2].startswith("_")}
    assert not wanted - listed
    without = {n for n, e in entries.items() if e.example is None}
    assert without <= {"autograd.variable"}  # PyTorch took it away: it raises
    assert len(entries) > 1600


def test_an_entry_says_what_people_look_for(entries: dict[str, reference.Entry]) -> None:
    kinky = reference.kinks()
    text = entries["amax"].text(kinky)
    for part in (
        "{py:function} chainrule.amax",
        "**derivative**",
        "**kinks and ties**",
        "shared evenly",
        ">>> ",
        "grad(lambda",
        "source/ops.",
        "conformance.html#q=amax",
    ):
        assert part in text, part
    assert "t * cos" in entries["sin"].text(kinky)
    softmax = entries["softmax"].text(kinky)
    assert "special.softmax" in softmax and "softmax_pull_p(g, y, dim=dim)" in softmax  # its rule, as it is declared
    assert "of `abs` at 0: 0" in entries["nn.L1Loss"].text(kinky)  # the kink of an op that it is made of
    for e in entries.values():
        assert e.place is None or (Path(chainrule.__file__).parent / e.place.file).exists()


def test_a_link_to_the_matrix_leads_to_a_row() -> None:
    assert reference.matrix_row(["softmax", "special.softmax"]) == "softmax"
    assert reference.matrix_row(["sin_"]) == "sin"
    assert reference.matrix_row(["absolute", "abs"]) == "abs"
    assert reference.matrix_row(["as_tensor"]) == ""


def test_a_page_of_the_site_has_no_empty_line_at_the_end_of_its_code() -> None:
    assert (
        build.links("```python\n>>> 1\n1\n\n```\ntext", ROOT / "docs" / "jit.md") == "```python\n>>> 1\n1\n```\ntext\n"
    )


@pytest.mark.parametrize("path", [ROOT / "README.md", *PAGES], ids=lambda p: p.name)
def test_python_blocks_are_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with prompts by pytest itself, which compares what they print; the others here, one after the other."""
    monkeypatch.chdir(tmp_path)  # some write files
    scope: dict[str, object] = {"__name__": "page"}
    for block in re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.S | re.M):
        if not block.startswith(">>> ") and path.name != "template.md":
            exec(compile(block, str(path), "exec"), scope)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_links_between_pages(path: Path) -> None:
    made = ("reference/", "gallery/", "show-gpt.html", "changelog.md")  # when the site is built
    for target in re.findall(
        r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.S)
    ):
        if not re.match(r"[a-z]+:|#", target) and not any(m in target for m in made):
            assert (path.parent / target.partition("#")[0]).exists(), f"{path.name}: {target}"


def test_links_out_of_docs_become_code() -> None:
    text = build.links(
        "[here](../CONTRIBUTING.md) [jit](jit.md) [log](../CHANGELOG.md) [far](https://x.org)",
        ROOT / "docs" / "tour.md",
    )
    assert text == "`CONTRIBUTING.md` [jit](jit.md) [log](changelog.md) [far](https://x.org)\n"


def test_the_readme_has_ten_rows_and_links_to_what_is_there() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.split("<!-- bench:begin -->")[1].split("<!-- bench:end -->")[0]
    assert sum(line.startswith("| ") for line in table.splitlines()) == 11  # with the heading
    links = re.findall(r"(?<!`)\]\(([^)]+)\)", text)
    assert links and all(t.startswith("https://") or (ROOT / t).exists() for t in links)
    assert text.index("grad(") < 600  # a gradient on the first screen


def test_the_readme_quotes_the_matrix_as_it_is() -> None:
    page = (ROOT / "docs" / "conformance.html").read_text(encoding="utf-8")
    ours, theirs = (json.JSONDecoder().raw_decode(page, m.end())[0] for m in re.finditer(r'"entries":(?=\[)', page))
    precision = ("float32", "16-bit")

    def count(entries: list[Any], keep: Callable[[Any, str], bool]) -> Counter[str]:
        return Counter(cell["status"] for e in entries for column, cell in e["cells"].items() if keep(e, column))

    exact, other = (count(x, lambda e, c: e["differentiable"] and c not in precision) for x in (ours, theirs))
    digits = count(ours, lambda e, c: c in precision)
    rest = count(ours, lambda e, c: not e["differentiable"] and c not in precision)
    quoted = (ROOT / "README.md").read_text(encoding="utf-8")
    for said in (
        f"Of the {exact.total():,} cells of its {sum(e['differentiable'] for e in ours)} differentiable entries",
        f"{exact['right']:,} are right and {exact['n/a']} do not apply",
        f"it gets {other['right']:,} of {other.total():,} right and {other['wrong']} wrong",
        f"{digits['right']:,} cells of {digits['right'] + digits['wrong']:,} that apply are right, and {digits['wrong']} err",
    ):
        assert said in quoted, said
    assert (exact["wrong"] + exact["raised"] == 0) == ("none is wrong and none raises" in quoted)
    assert rest["wrong"] + rest["raised"] == 0  # or the README says which entries without a derivative raise


def test_one_version_and_extras_that_contain_what_they_say() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" in project["dynamic"]
    assert f"version: {chainrule.__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    extras = project["optional-dependencies"]
    assert not any("ruff" in d or "mypy" in d or "[test]" in d for d in extras["bench"])
    assert project["scripts"]["chainrule"] == "chainrule.cli.commands:main"
