"""PyTorch's checkpoints: read without running anything of the file; hostile files raise and run nothing."""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import chainrule
from chainrule.core.errors import ChainruleError
from chainrule.interop.checkpoint import CheckpointError


def saved(obj: Any) -> bytes:
    f = io.BytesIO()
    torch.save(obj, f)
    return f.getvalue()


def state() -> dict[str, Any]:
    base = torch.arange(12.0)
    return {
        "w": base.reshape(3, 4),
        "t": base.reshape(3, 4).T[1:],
        "bf": torch.ones(3, dtype=torch.bfloat16) * 1.5,
        "i": torch.arange(3),
        "z": torch.zeros(0, 2),
        "p": torch.nn.Parameter(torch.ones(2)),
        "l": [1, "a", (2.0, None, True)],
        "c": torch.tensor([1 + 2j]),
    }


def test_values() -> None:
    got, want = chainrule.load(io.BytesIO(saved(state()))), state()
    for k in ("w", "t", "i", "z", "c"):
        np.testing.assert_array_equal(got[k].numpy(), want[k].numpy())
    assert got["bf"].dtype is chainrule.bfloat16 and got["bf"].tolist() == [1.5] * 3
    assert isinstance(got["p"], chainrule.nn.Parameter) and got["l"] == want["l"]
    m, ours = torch.nn.Linear(3, 2), chainrule.nn.Linear(3, 2)
    ours.load_state_dict(chainrule.load(io.BytesIO(saved(m.state_dict()))))
    np.testing.assert_array_equal(ours.weight.detach().numpy(), m.weight.detach().numpy())
    opt = torch.optim.Adam(m.parameters())
    m(torch.ones(3)).sum().backward()
    opt.step()
    assert chainrule.load(io.BytesIO(saved(opt.state_dict())))["param_groups"][0]["lr"] == 0.001


def with_pickle(data: bytes, **more: bytes) -> bytes:
    """A checkpoint with this pickle."""
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w") as z:
        z.writestr("archive/data.pkl", data)
        z.writestr("archive/version", "3")
        for k, v in more.items():
            z.writestr(k.replace("__", "/"), v)
    return f.getvalue()


class Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, f: Any, *args: Any) -> None:
        self.call = f, args

    def __reduce__(self) -> Any:
        return self.call


def hostile(mark: str) -> dict[str, bytes]:
    """Files that try to do harm; `mark` is a file that none of them may make."""
    good = zipfile.ZipFile(io.BytesIO(saved(state())))
    body = good.read(next(n for n in good.namelist() if n.endswith("data.pkl")))
    claim = pickle.dumps({"a": 1}, 2)
    calls = {
        "os.system": Evil(os.system, f"touch {mark}"),
        "eval": Evil(eval, f"open({mark!r}, 'w')"),
        "exec": Evil(exec, f"open({mark!r}, 'w')"),
        "open": Evil(open, mark, "w"),
        "getattr": Evil(getattr, "os", "system"),
        "import": Evil(__import__, "os"),
        "bytearray": Evil(bytearray, 1 << 40),
        "nested": {"a": [Evil(os.system, f"touch {mark}")]},
        "torch load": Evil(torch.load, mark),
        "array": Evil(np.zeros, 1 << 40),
    }
    files = {name: with_pickle(pickle.dumps(v, 2)) for name, v in calls.items()}
    files["memo"] = with_pickle(b"\x80\x02]r\xff\xff\xff\xff.")
    files["inst"] = with_pickle(b"(S'touch " + mark.encode() + b"'\nios\nsystem\n.")
    files["long string"] = with_pickle(b"\x80\x04\x8d" + struct.pack("<Q", 1 << 40) + b"a.")
    files["bomb"] = _deflated(b"\x00" * (1 << 24))
    files["no pickle"] = with_pickle(claim).replace(b"data.pkl", b"data.pkx")
    files["twice"] = _twice(claim)
    files["script"] = with_pickle(claim, archive__constants__pkl=b"").replace(b"constants/pkl", b"constants.pkl")
    files["truncated"] = saved(state())[:-40]
    files["storage path"] = with_pickle(body.replace(b"X\x01\x00\x00\x000", b"X\x05\x00\x00\x00../..0"))
    files["claimed size"] = with_pickle(body, archive__data__0=b"\x00" * 8)
    return files


def _deflated(data: bytes) -> bytes:
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("archive/data.pkl", data)
    return f.getvalue()


def _twice(data: bytes) -> bytes:
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w") as z:
        z.writestr("a/data.pkl", data)
        z.writestr("b/data.pkl", data)
    return f.getvalue()


def test_hostile_files_run_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    for name, data in hostile(str(mark)).items():
        with pytest.raises((ChainruleError, pickle.UnpicklingError)) as e:
            chainrule.load(io.BytesIO(data))
        assert len(str(e.value)) > 10, name
        assert not mark.exists(), name


def test_a_claim_of_four_gigabytes() -> None:
    """Sizes, strides, offsets and storage lengths that the file does not have."""
    good = saved({"w": torch.arange(4.0)})
    z = zipfile.ZipFile(io.BytesIO(good))
    name = next(n for n in z.namelist() if n.endswith("data.pkl"))
    body = z.read(name)
    assert body.count(b"K\x04") >= 2  # the length of the storage, and the size
    for k in range(body.count(b"K\x04")):
        parts = body.split(b"K\x04")
        changed = b"K\x04".join(parts[: k + 1]) + b"\x8a\x05\x00\x00\x00\x00\x01" + b"K\x04".join(parts[k + 1 :])
        f = io.BytesIO()
        with zipfile.ZipFile(f, "w") as out:
            for n in z.namelist():
                out.writestr(n, changed if n == name else z.read(n))
        with pytest.raises(CheckpointError, match=r"claimed|reaches beyond|claims"):
            chainrule.load(io.BytesIO(f.getvalue()))


def test_mutated_files(tmp_path: Path) -> None:
    """300 files with bytes changed, cut, doubled or exchanged: each loads, or raises an error that says so."""
    mark = tmp_path / "ran"
    rng = np.random.default_rng(0)
    z = zipfile.ZipFile(io.BytesIO(saved(state())))
    parts = {n: z.read(n) for n in z.namelist()}
    key = next(n for n in parts if n.endswith("data.pkl"))
    whole = saved(state())
    refused = 0
    for k in range(300):
        if k % 3 == 0:  # the archive
            data = _mutate(whole, rng)
        else:  # the pickle in a sound archive
            f = io.BytesIO()
            with zipfile.ZipFile(f, "w") as out:
                for n, v in parts.items():
                    out.writestr(n, _mutate(v, rng) if n == key else v)
            data = f.getvalue()
        try:
            chainrule.load(io.BytesIO(data))
        except (ChainruleError, pickle.UnpicklingError) as e:
            refused += len(str(e)) > 10
        assert not mark.exists()
    assert refused > 150


def _mutate(data: bytes, rng: np.random.Generator) -> bytes:
    b = bytearray(data)
    way = rng.integers(4)
    at = int(rng.integers(len(b)))
    if way == 0:
        for _ in range(int(rng.integers(1, 6))):
            b[int(rng.integers(len(b)))] = int(rng.integers(256))
    elif way == 1:
        del b[at:]
    elif way == 2:
        b[at:at] = bytes(rng.integers(0, 256, 8, dtype=np.uint8))
    else:
        other = int(rng.integers(len(b)))
        b[at : at + 4], b[other : other + 4] = b[other : other + 4], b[at : at + 4]
    return bytes(b)


def test_safetensors_both_ways(tmp_path: Path) -> None:
    import safetensors.torch

    path = str(tmp_path / "a.safetensors")
    chainrule.save({"a": chainrule.ones(3, dtype=chainrule.bfloat16), "b": chainrule.arange(4).reshape(2, 2).T}, path)
    theirs = safetensors.torch.load_file(path)
    assert theirs["a"].dtype == torch.bfloat16 and theirs["b"].tolist() == [[0, 2], [1, 3]]
    safetensors.torch.save_file({"z": torch.ones(2, dtype=torch.bfloat16), "s": torch.tensor(3.0)}, path)
    ours = chainrule.load(path)
    assert ours["z"].dtype is chainrule.bfloat16 and ours["s"].shape == ()
