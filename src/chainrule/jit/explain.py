"""What became of a function: its graph, its parts, the code."""

from __future__ import annotations

from typing import Any


class Lowered:
    """What a signature is compiled to."""

    def __init__(self, jitted: Any, recording: Any) -> None:
        self.recording = recording
        self.graph = recording.program.graph if recording.program is not None else None

    def __repr__(self) -> str:
        return self.graph.text() if self.graph is not None else f"runs without jit: {self.recording.reason}"
