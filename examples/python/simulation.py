"""A gravitational n-body simulation that goes on where it was killed.

    python examples/python/simulation.py galaxy.pmo --steps 2000
    python examples/python/simulation.py galaxy.pmo --steps 2000 --kill-after 700   # SIGKILL; then again without

Bodies are a structured numpy array in one object, the energy over time an array that grows in another, and
what else there is to a run, generator of random kicks included, a dict in a third. One psync of all three
every few steps; a process that is killed between two of them goes on from the last, and ends with the same
bits as one that was never killed: --digest prints what to compare.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import sys
import time
from typing import Any

import indelible
import numpy as np

BODY = np.dtype([("mass", "f8"), ("at", "f8", 3), ("speed", "f8", 3)])
DT = 1e-3
SOFTENING = 0.05


class Simulation:
    """What is computed, all of it in the pool."""

    def __init__(self, pool: indelible.Pool, bodies: int, seed: int) -> None:
        self.run = pool.dict("run")
        self.bodies = pool.array("bodies", bodies, BODY)
        self.energy = pool.array("energy", (-1, 2), "f8")
        self.random = np.random.default_rng(seed)
        if "step" in self.run:
            if self.run["seed"] != seed:
                raise SystemExit(f"the run in this pool has seed {self.run['seed']}")
            self.random.bit_generator.state = json.loads(self.run["random"])
        else:
            self.begin(seed)

    def begin(self, seed: int) -> None:
        self.bodies["mass"] = self.random.uniform(0.5, 1.5, len(self.bodies)) / len(self.bodies)
        self.bodies["at"] = self.random.normal(size=self.bodies["at"].shape)
        self.bodies["speed"] = 0.3 * np.cross(self.bodies["at"], [0, 0, 1])
        self.run.update(step=0, seed=seed)
        self.save()

    @property
    def step(self) -> int:
        return int(self.run["step"])

    def advance(self) -> None:
        """One step of leapfrog, and a kick at random to one body."""
        mass, at, speed = (self.bodies[name] for name in ("mass", "at", "speed"))
        speed += 0.5 * DT * acceleration(mass, at)
        at += DT * speed
        speed += 0.5 * DT * acceleration(mass, at)
        speed[self.random.integers(len(mass))] += self.random.normal(scale=1e-4, size=3)
        self.run["step"] = self.step + 1
        if self.step % 10 == 0:
            self.energy = self.energy.grow(len(self.energy) + 1)
            self.energy[-1] = self.step * DT, 0.5 * np.sum(mass * np.sum(speed**2, axis=1))

    def save(self) -> None:
        """Everything since the last call becomes durable, as one step."""
        self.run["random"] = json.dumps(self.random.bit_generator.state)
        indelible.psync(self.bodies, self.energy, self.run)

    def digest(self) -> str:
        """A hash of every bit of the state."""
        found = hashlib.sha256()
        for array in (self.bodies, self.energy):
            found.update(repr((array.shape, array.dtype)).encode() + array.tobytes())
        found.update(repr(sorted((key, value) for key, value in self.run.items())).encode())
        return found.hexdigest()


def acceleration(mass: np.ndarray[Any, Any], at: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    apart = at[None, :, :] - at[:, None, :]
    distance = np.sum(apart**2, axis=2) + SOFTENING**2
    # Not by a matrix product: how that adds up may depend on where its operands lie.
    pull: np.ndarray[Any, Any] = apart * (mass[None, :] * distance**-1.5)[:, :, None]
    total: np.ndarray[Any, Any] = pull.sum(axis=1)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pool", help="file of the pool; made if absent")
    parser.add_argument(
        "--steps", type=int, default=2000, help="steps in all, those of earlier lives included"
    )
    parser.add_argument("--bodies", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save-every", type=int, default=25, metavar="N", help="steps between two psyncs")
    parser.add_argument(
        "--kill-after", type=int, metavar="N", help="die of SIGKILL after so many steps of this life"
    )
    parser.add_argument("--digest", action="store_true", help="print a hash of the final state")
    options = parser.parse_args()
    with indelible.open(options.pool, 256 << 20) as pool:
        simulation = Simulation(pool, options.bodies, options.seed)
        start, begin = simulation.step, time.monotonic()
        print(f"goes on at step {start}" if start else "begins", flush=True)
        while simulation.step < options.steps:
            simulation.advance()
            if simulation.step % options.save_every == 0 or simulation.step == options.steps:
                simulation.save()
                progress(simulation.step, options.steps)
            if simulation.step - start == options.kill_after:
                os.kill(os.getpid(), signal.SIGKILL)
        progress(simulation.step, options.steps, end="\n")
        print(
            f"{simulation.step} steps, {simulation.step - start} of them in {time.monotonic() - begin:.1f} s"
        )
        if options.digest:
            print(simulation.digest())


def progress(step: int, steps: int, end: str = "") -> None:
    if sys.stderr.isatty():
        done = 40 * step // max(steps, 1)
        print(f"\r[{'#' * done:<40}] {step} of {steps}", end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
