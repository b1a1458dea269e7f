"""``python -m chainrule.testing.ragged_programs --seed S --count N``: draw programs, judge them, print those that fail."""

from __future__ import annotations

import argparse
import collections
import sys
import time
import traceback

import numpy as np

from . import MODES, draw, judge


def main() -> int:
    a = argparse.ArgumentParser(prog="python -m chainrule.testing.ragged_programs", description=__doc__)
    a.add_argument("--seed", type=int, default=0)
    a.add_argument("--count", type=int, default=1000)
    a.add_argument("--start", type=int, default=0, help="the number of the first program")
    a.add_argument("--modes", type=int, default=3, help="modes to judge each program in, besides its value; 0: all")
    a.add_argument("--mode", choices=list(MODES), help="this mode alone")
    a.add_argument("--show", type=int, default=10, help="failures to print in full")
    o = a.parse_args()
    began, failed, runs, undecided = time.perf_counter(), [], 0, 0
    kinds: collections.Counter[str] = collections.Counter()
    others = [m for m in MODES if m != "value"]
    np.seterr(all="ignore")
    for number in range(o.start, o.start + o.count):
        p = draw(o.seed, number)
        rng = np.random.default_rng([o.seed, number, 1])
        picked = rng.choice(others, min(o.modes, len(others)), replace=False).tolist() if o.modes else others
        for mode in [o.mode] if o.mode else ["value", *picked]:
            runs += 1
            try:
                undecided += not judge(p, mode, number)
            except Exception as e:
                failed.append((number, mode))
                tb = traceback.extract_tb(e.__traceback__)
                at = next(
                    (f for f in reversed(tb) if "ragged_programs" not in f.filename and "chainrule" in f.filename),
                    tb[-1],
                )
                kinds[
                    f"{type(e).__name__} {at.filename.split('/')[-1]}:{at.lineno} {str(e).strip().splitlines()[0][:90] if str(e) else ''}"
                ] += 1
                if len(failed) <= o.show:
                    print(
                        f"-- program {number} of seed {o.seed}, {mode}: {type(e).__name__}: {str(e)[:600]}\n{p}\n",
                        flush=True,
                    )
                if mode == "value":
                    break
    for k, n in kinds.most_common(40):
        print(f"{n:5d} {k}")
    print(
        f"seed {o.seed}: {o.count} programs, {runs} runs, {len(failed)} failed, {undecided} decided by rounding, {time.perf_counter() - began:.0f} s"
    )
    return bool(failed)


sys.exit(main())
