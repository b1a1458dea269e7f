"""The examples of docs/sparse.md run, and give what they say."""

from __future__ import annotations

import doctest
from pathlib import Path

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_the_page_runs() -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
    failed, tried = doctest.testfile(str(DOCS / "sparse.md"), module_relative=False, optionflags=flags)
    assert tried > 15 and not failed
