"""``chainrule run -n 4 train.py``: start a program on several processes, stream what they print, end them together.

The launcher of MPI starts the ranks; each connects to this process before its program begins. So the end of a rank is noticed at once, at any time: the others
raise in their next collective, and those that have not ended some seconds later are ended. Ctrl-C goes to every rank as a KeyboardInterrupt.
"""

from __future__ import annotations

import argparse
import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from .watch import POST, Line, Post, Watch

GRACE_S = 10.0
PLAIN = "CHAINRULE_RUN_PLAIN"


def parser() -> argparse.ArgumentParser:
    """The options."""
    p = argparse.ArgumentParser(prog="chainrule run", description="Run a program on several processes, by MPI.")
    p.add_argument("-n", "--np", type=int, default=1, help="how many processes")
    p.add_argument("--hostfile", metavar="FILE", help="the machines, one a line (as mpiexec reads it)")
    p.add_argument("--mpiexec", metavar="PATH", help="another launcher of MPI than the one that is found")
    p.add_argument(
        "--grace", type=float, default=GRACE_S, help="seconds that the others have to end after one has died"
    )
    p.add_argument("--plain", action="store_true", help="print lines as they are, without the rank")
    p.add_argument("-m", dest="module", action="store_true", help="the program is a module, as with python -m")
    p.add_argument("program", help="the script")
    p.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    return p


def find_mpiexec(given: str | None = None) -> str | None:
    """mpiexec: the one beside this Python, or on the path."""
    beside = Path(sys.executable).parent / "mpiexec"
    return given or (str(beside) if beside.exists() else shutil.which("mpiexec"))


def main(argv: list[str]) -> int:
    """Run; returns the exit status of the program."""
    args = parser().parse_args(argv)
    mpiexec = find_mpiexec(args.mpiexec)
    if mpiexec is None:
        if args.np > 1:
            print("chainrule run: there is no mpiexec: pip install mpi4py mpich, or load an MPI", file=sys.stderr)
            return 2
        return subprocess.call([sys.executable, *(["-m"] if args.module else []), args.program, *args.args])
    key = os.urandom(8).hex()
    post = Post(key, "" if args.hostfile else "127.0.0.1")
    host = socket.gethostname() if args.hostfile else "127.0.0.1"
    env = os.environ | {POST: f"{host}:{post.port}:{key}"}
    said = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout
    hydra = "HYDRA" in said
    options = ["-disable-auto-cleanup"] if hydra else []
    if args.plain:
        env[PLAIN] = "1"
    options += [("-f" if hydra else "--hostfile"), args.hostfile] if args.hostfile else []
    kind = "-m" if args.module else "-f"
    rank = [sys.executable, "-m", "chainrule.distributed.launch", kind, args.program, *args.args]
    if hydra:  # which ends all ranks when one is killed by a signal, but not when it ends with a status: the others are to hear of it
        rank = ["/bin/sh", "-c", 'trap "" USR1; "$@"; exit $?', "sh", *rank]
    child = subprocess.Popen(
        [mpiexec, *options, "-n", str(args.np), *rank],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    streams = [
        threading.Thread(target=_stream, args=(child.stdout, sys.stdout), daemon=True),
        threading.Thread(target=_stream, args=(child.stderr, sys.stderr), daemon=True),
    ]
    for t in streams:
        t.start()
    code = _tend(child, post, args.grace)
    for t in streams:
        t.join(5)
    return code


def _tend(child: Any, post: Post, grace: float) -> int:
    """Wait for the end of the program; end what is left of it after a death or Ctrl-C."""
    deadline: float | None = None
    dead: dict[int, str] = {}
    interrupted = 0
    while True:
        try:
            while child.poll() is None:
                time.sleep(0.05)
                if post.dead and not dead:
                    time.sleep(0.1)
                    dead = dict(post.dead)
                    for r, why in dead.items():
                        print(f"chainrule run: rank {r} died: {why}", file=sys.stderr, flush=True)
                    deadline = time.monotonic() + grace
                if deadline is not None and time.monotonic() > deadline:
                    print("chainrule run: ending the ranks that are left", file=sys.stderr, flush=True)
                    _end(child, post)
                    break
            break
        except KeyboardInterrupt:
            interrupted += 1
            if interrupted > 1:
                _end(child, post)
                break
            post.interrupt()
            deadline = time.monotonic() + grace
    code = child.wait()
    if interrupted:
        return 130
    return 1 if post.dead and code == 0 else min(code, 255) if code >= 0 else 128 - code


def _end(child: Any, post: Post) -> None:
    """End every rank here, then its launcher."""
    for pid in list(post.pids.values()):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    for how, wait_s in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0)):
        if child.poll() is None:
            try:
                os.killpg(child.pid, how)
            except OSError:
                return
            try:
                child.wait(wait_s)
            except subprocess.TimeoutExpired:
                continue


def _stream(source: Any, target: Any) -> None:
    """Lines as they come."""
    for line in source:
        target.write(line.decode(errors="replace"))
        target.flush()


# -- in a rank ------------------------------------------------------------------------------------------------------------


class Marked:
    """A stream that writes whole lines, each with the rank in front."""

    def __init__(self, stream: Any, mark: str) -> None:
        self._stream, self._mark, self._rest = stream, mark, ""

    def write(self, text: str) -> int:
        """Lines that are whole go at once."""
        *lines, self._rest = (self._rest + text).split("\n")
        if lines:
            self._stream.write("".join(f"{self._mark}{line}\n" for line in lines))
            self._stream.flush()
        return len(text)

    def flush(self) -> None:
        """What is whole has gone."""
        self._stream.flush()

    def writelines(self, lines: Any) -> None:
        """Several pieces of text."""
        for line in lines:
            self.write(line)

    def close(self) -> None:
        """The last line need not have an end."""
        if self._rest:
            self.write("\n")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def connect() -> None:
    """Tell the launcher that this rank is there, before its program begins."""
    host, port, key = os.environ[POST].rsplit(":", 2)
    number = next((os.environ[k] for k in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK") if k in os.environ), None)
    if number is None:
        return
    try:
        sock = socket.create_connection((host, int(port)), timeout=10)
    except OSError:
        return
    sock.settimeout(None)
    line = Line(sock)
    line.send(key=key, rank=int(number), pid=os.getpid(), host=socket.gethostname())
    Watch.early = Watch(line, int(number), None)


def run_rank(argv: list[str]) -> None:
    """A rank: connect, then run the program as Python would."""
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # also where a shell in the background ignores it: the launcher says when
    connect()
    if Watch.early is not None and not os.environ.get(PLAIN):
        sys.stdout = Marked(sys.stdout, f"[rank {Watch.early.rank}] ")
        sys.stderr = Marked(sys.stderr, f"[rank {Watch.early.rank}] ")
    kind, program, *rest = argv
    from . import groups

    groups.mind_the_end()
    sys.argv = [program, *rest]
    sys.path.insert(0, os.getcwd() if kind == "-m" else str(Path(program).resolve().parent))
    try:
        if kind == "-m":
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program, run_name="__main__")
    except SystemExit as e:
        if e.code:
            groups.failed(f"it ended with the status {e.code}")
        raise


if __name__ == "__main__":
    run_rank(sys.argv[1:])
