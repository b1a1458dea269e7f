"""What is written down of a run."""

from __future__ import annotations

from chainrule.testing.conformance.summary import with_columns


def test_columns_that_were_not_run_stay_as_they_were() -> None:
    before = {"entries": [{"name": "sin", "cells": {"value": {"status": "right"}, "vjp": {"status": "wrong"}}}]}
    rows = [
        {"name": "sin", "cells": {"jvp": {"status": "right"}, "vjp": {"status": "right"}}},
        {"name": "cos", "cells": {}},
    ]
    got = with_columns(before, rows)
    assert [list(r["cells"]) for r in got] == [["value", "vjp", "jvp"], []]
    assert got[0]["cells"]["vjp"] == {"status": "right"}
    assert with_columns(None, rows) == [
        {"name": "sin", "cells": dict(sorted(rows[0]["cells"].items(), reverse=True))},
        rows[1],
    ]
