"""One rank of a session: runs every check and writes down how each ended. Started by mpiexec, see runs.py."""

from __future__ import annotations

import importlib
import json
import sys
import time
import traceback
from pathlib import Path

MODULES = ["checks_ops", "checks_train", "checks_c10d", "checks_checkpoint"]


def all_checks(modules: list[str]) -> dict[str, object]:
    """The checks of the modules, by ``module.name``."""
    found = {}
    for m in modules:
        module = importlib.import_module(f"tests.distributed.{m}")
        found |= {f"{m}.{k}": f for k, f in module.checks().items()}
    return found


def main(out: str, modules: list[str], only: str = "") -> int:
    """Run all checks on this rank; a check that fails on one rank ends the session there, since the ranks are no longer together."""
    import chainrule.distributed as dist

    dist.init_process_group("mpi", timeout=float(__import__("os").environ.get("T", "60")))
    rank, results = dist.get_rank(), {}
    path = Path(out) / f"rank{rank}.json"
    for name, check in all_checks(modules).items():
        if only and only not in name:
            continue
        begin = time.perf_counter()
        try:
            check()  # type: ignore[operator]
            answer = "ok"
        except BaseException:
            answer = traceback.format_exc()
        answers: list[str] = []
        try:
            dist.all_gather_object(answers, answer)
        except BaseException:
            answers = [answer, f"after that: {traceback.format_exc()}"]
        results[name] = {
            "answer": "ok" if set(answers) == {"ok"} else "\n".join(a for a in answers if a != "ok"),
            "seconds": time.perf_counter() - begin,
        }
        path.write_text(json.dumps(results))
        if results[name]["answer"] != "ok":
            if only or "-v" in sys.argv:
                print(f"rank {rank}: {name}\n{answer}", flush=True)
            if "after that" in answers[-1]:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2].split(","), sys.argv[3] if len(sys.argv) > 3 else ""))
