"""The watch over the other processes: one connection each to a post, which notices at once when one ends without a goodbye.

The post is a thread of rank 0, or the launcher (``python -m chainrule run``) where that started the processes. It hands on what a dying
process says last, answers who is where when a collective is late, and passes Ctrl-C on. Messages are lines of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

POST = "CHAINRULE_DISTRIBUTED_POST"  # host:port:key of the launcher's post


class Line:
    """A connection that carries lines of JSON, both ways."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self._lock, self._rest = sock, threading.Lock(), b""

    def send(self, **message: Any) -> bool:
        """Whether the message could be sent."""
        try:
            with self._lock:
                self.sock.sendall(json.dumps(message).encode() + b"\n")
            return True
        except OSError:
            return False

    def receive(self) -> dict[str, Any] | None:
        """The next message; None at the end of the connection."""
        while b"\n" not in self._rest:
            try:
                more = self.sock.recv(65536)
            except OSError:
                return None
            if not more:
                return None
            self._rest += more
        line, self._rest = self._rest.split(b"\n", 1)
        return json.loads(line)

    def close(self) -> None:
        """End it."""
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()


class Post:
    """Where all connections end: hands messages on, and tells everybody of a connection that breaks."""

    def __init__(self, key: str, host: str = "") -> None:
        self.key = key
        self.server = socket.create_server((host, 0))
        self.port = self.server.getsockname()[1]
        self.lines: dict[int, Line] = {}
        self.dead: dict[int, str] = {}
        self.pids: dict[int, int] = {}  # of the ranks on this machine
        self._last: dict[int, str] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True, name="chainrule-post").start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(Line(sock),), daemon=True, name="chainrule-post-line").start()

    def _serve(self, line: Line) -> None:
        hello = line.receive()
        if hello is None or hello.get("key") != self.key:
            line.close()
            return
        rank = int(hello["rank"])
        if "pid" in hello and hello.get("host") == socket.gethostname():
            self.pids[rank] = int(hello["pid"])
        with self._lock:
            self.lines[rank] = line
            for r, why in self.dead.items():
                line.send(kind="dead", rank=r, why=why)
        while (m := line.receive()) is not None:
            if m["kind"] == "bye":
                self._tell_others(rank, kind="left", rank=rank, at=m.get("at", {}))
                return
            if m["kind"] == "last":
                self._last[rank] = m["why"]
                continue
            m["from"] = rank
            to = m.get("to")
            with self._lock:
                targets = [self.lines[to]] if to in self.lines else [] if to is not None else list(self.lines.values())
            for t in targets:
                t.send(**m)
        self.bury(rank, self._last.get(rank, "its process ended without a word"))

    def bury(self, rank: int, why: str) -> None:
        """Tell everybody that a process has died."""
        self.dead[rank] = why
        self._tell_others(rank, kind="dead", rank=rank, why=why)

    def _tell_others(self, gone: int, **message: Any) -> None:
        with self._lock:
            self.lines.pop(gone, None)
            self.pids.pop(gone, None)
            others = list(self.lines.values())
        for t in others:
            t.send(**message)

    def interrupt(self) -> None:
        """Ctrl-C for every process."""
        with self._lock:
            lines = list(self.lines.values())
        for line in lines:
            line.send(kind="interrupt")


class Watch:
    """This process's end of its connection to the post."""

    early: Watch | None = None  # that of a rank which the launcher started

    def __init__(
        self, line: Line, rank: int, status: Callable[[], dict[str, Any]] | None = None, post: Post | None = None
    ) -> None:
        self.line, self.rank, self._status, self._post = line, rank, status, post
        self.dead: dict[int, str] = {}
        self.left: dict[int, dict[str, Any]] = {}  # who has ended well, and where each was
        self._answers: dict[int, Any] = {}
        self._left = False
        threading.Thread(target=self._listen, daemon=True, name="chainrule-watch").start()

    @classmethod
    def start(cls, comm: Any, status: Callable[[], dict[str, Any]]) -> Watch | None:
        """Connect all processes to a post; None on every one of them if that is not possible for some."""
        if all(comm.allgather(cls.early is not None)):
            assert cls.early is not None
            cls.early._status = status
            return cls.early
        where, post = None, None
        if comm.rank == 0:
            key = os.urandom(8).hex()
            post = Post(key)
            where = f"{socket.gethostname()}:{post.port}:{key}"
        where = comm.bcast(where, 0)
        host, port, key = where.rsplit(":", 2)
        line = None
        # A machine need not know its own name.
        for h in dict.fromkeys((host, "127.0.0.1")):
            try:
                line = Line(socket.create_connection((h, int(port)), timeout=5))
                line.sock.settimeout(None)
                line.send(key=key, rank=comm.rank)
                break
            except OSError:
                continue
        if not all(comm.allgather(line is not None)):
            return None
        assert line is not None
        return cls(line, comm.rank, status, post)

    def _listen(self) -> None:
        while (m := self.line.receive()) is not None:
            kind = m["kind"]
            if kind == "dead":
                self.dead[int(m["rank"])] = m["why"]
            elif kind == "ask":
                self.line.send(kind="answer", to=m["from"], at=self._status() if self._status is not None else {})
            elif kind == "answer":
                self._answers[int(m["from"])] = m["at"]
            elif kind == "interrupt":
                os.kill(os.getpid(), signal.SIGINT)
            elif kind == "left":
                self.left[int(m["rank"])] = m["at"]
        if self is Watch.early and not self._left:
            os._exit(1)  # the launcher is gone
        if not self._left and 0 not in self.left and self is not Watch.early:
            self.dead.setdefault(0, "the connection to its process is broken")

    def ask(self, wait_s: float) -> dict[int, Any]:
        """Where the other ranks are: ``{rank: {group: (number, text)}}``, of those that answer in time."""
        self._answers = {}
        self.line.send(kind="ask")
        end = time.monotonic() + wait_s
        while time.monotonic() < end:
            time.sleep(0.05)
            if self._post is not None and len(self._answers) >= len(self._post.lines):
                break
        return dict(self._answers)

    def say_last(self, why: str) -> None:
        """What the others are told if this process ends now."""
        self.line.send(kind="last", why=why)
        if self._post is not None:
            self._post.bury(self.rank, why)

    def leave(self) -> None:
        """Goodbye: the end of this process is no accident."""
        self._left = True
        self.line.send(kind="bye", at=self._status() if self._status is not None else {})
