"""Checkpoints beside safetensors and np.savez, each durable: one run, round by round.

    python crates/python/bench/checkpoints.py --folder /var/tmp

Needs numpy, and safetensors if it is to be measured. Each save replaces the former one: a file is
written beside it, made durable by fsync, and renamed over it, and the folder is made durable. The
memory of a save is the growth of the process's largest resident set, in a save of its own.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import indelible
import numpy as np

State = dict[str, np.ndarray[Any, Any]]


def replaced(path: Path, write: Callable[[Path], object]) -> None:
    """Writes a file, durably, in the place of the one that is there."""
    new = path.with_name("new" + path.suffix)
    write(new)
    for each in (new, path.parent):
        if each == path.parent:
            os.replace(new, path)
        descriptor = os.open(each, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def memory(work: Callable[[], object]) -> float:
    """MiB that the process needs more while it works."""

    def kib(field: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))

    # Resets VmHWM.
    Path("/proc/self/clear_refs").write_text("5")
    before = kib("VmRSS")
    work()
    return max(0, kib("VmHWM") - before) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--mib", type=int, default=128)
    parser.add_argument("--arrays", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    each = (options.mib << 20) // options.arrays // 4
    random = np.random.default_rng(1)
    state: State = {f"layer.{n}.weight": random.random(each, "f4") for n in range(options.arrays)}
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        pool = indelible.open(folder / "pool.pmo", (4 * options.mib + 64) << 20)
        saved = pool.checkpoints("c", last=1, best=0)
        stores: dict[str, tuple[Callable[[], object], Callable[[], Any]]] = {
            "indelible": (lambda: saved.save("state", state), saved.load)
        }
        try:
            safetensors: Any = importlib.import_module("safetensors.numpy")
        except ImportError:
            print("safetensors is not installed")
        else:
            file = folder / "state.safetensors"
            stores["safetensors"] = (
                lambda: replaced(file, lambda to: safetensors.save_file(state, to)),
                lambda: safetensors.load_file(file),
            )
        npz = folder / "state.npz"
        stores["np.savez"] = (
            lambda: replaced(npz, lambda to: np.savez(to, **state)),  # type: ignore[arg-type]
            lambda: {key: array for key, array in np.load(npz).items()},
        )
        times: dict[str, tuple[list[float], list[float]]] = {key: ([], []) for key in stores}
        for number in range(options.rounds + 1):
            for key, works in stores.items():
                for work, spent in zip(works, times[key], strict=True):
                    os.sync()
                    begin = time.perf_counter()
                    work()
                    # The first round makes the files.
                    if number:
                        spent.append(time.perf_counter() - begin)
        needs = {key: memory(save) for key, (save, _) in stores.items()}
        assert all((saved.load()[key] == array).all() for key, array in state.items())
    print(
        f"{options.mib} MiB in {options.arrays} arrays, median (least to most) of {options.rounds}"
        f" rounds, ms; {os.cpu_count()} cores; indelible {indelible.__version__}, numpy {np.__version__}\n"
    )
    print("| | save | load | speed of save beside safetensors | memory of a save, MiB |\n|---|---|---|---|---|")
    base = statistics.median(times.get("safetensors", times["indelible"])[0])
    for key, (save, load) in times.items():
        said = [
            f"{statistics.median(t) * 1e3:.0f} ({min(t) * 1e3:.0f} to {max(t) * 1e3:.0f})"
            for t in (save, load)
        ]
        print(f"| {key} | {said[0]} | {said[1]} | {base / statistics.median(save):.2f} | {needs[key]:.0f} |")


if __name__ == "__main__":
    main()
