"""A gravitational n-body simulation. Killed between two psyncs, it goes on from the last one, and
ends with the same bits as a run that was never killed.

    python examples/python/simulation.py galaxy.pmo --steps 2000
    python examples/python/simulation.py galaxy.pmo --steps 2000 --kill-after 700
    python examples/python/simulation.py galaxy.pmo --steps 2000
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
from typing import Any

import indelible
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
BODY = np.dtype([("mass", "f8"), ("at", "f8", 3), ("speed", "f8", 3)])
DT = 1e-3
SOFTENING = 0.05


class Simulation:
    """Bodies are an array in one object, the energy over time an array that grows in another, step
    and generator values of a dict in a third.
    """

    def __init__(self, pool: indelible.Pool, bodies: int, seed: int) -> None:
        self.run = pool.dict("run")
        self.bodies = pool.array("bodies", bodies, BODY)
        self.energy = pool.array("energy", (-1, 2), "f8")
        if "step" not in self.run:
            self.begin(seed)
        elif self.run["seed"] != seed:
            raise SystemExit(f"the run in this pool has seed {self.run['seed']}")
        self.random: np.random.Generator = self.run["random"]

    def begin(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.bodies["mass"] = random.uniform(0.5, 1.5, len(self.bodies)) / len(self.bodies)
        self.bodies["at"] = random.normal(size=self.bodies["at"].shape)
        self.bodies["speed"] = 0.3 * np.cross(self.bodies["at"], [0, 0, 1])
        self.run.update(step=0, seed=seed, random=random)
        indelible.psync(self.bodies, self.energy, self.run)

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
        """Makes everything since the last call durable, as one step."""
        self.run["random"] = self.random
        indelible.psync(self.bodies, self.energy, self.run)

    def digest(self) -> str:
        """A hash of every bit of the state."""
        found = hashlib.sha256(repr((self.step, self.random.bit_generator.state)).encode())
        for array in (self.bodies, self.energy):
            found.update(repr((array.shape, array.dtype)).encode() + array.tobytes())
        return found.hexdigest()


def acceleration(mass: Array, at: Array) -> Array:
    apart = at[None, :, :] - at[:, None, :]
    distance = np.sum(apart**2, axis=2) + SOFTENING**2
    # No matrix product: the order of its additions may depend on the addresses of its operands.
    pull: Array = apart * (mass[None, :] * distance**-1.5)[:, :, None]
    return np.asarray(pull.sum(axis=1))


def main() -> None:
    parser = argparse.ArgumentParser(description="A gravitational n-body simulation.")
    parser.add_argument("pool", help="file of the pool; made if absent")
    parser.add_argument("--steps", type=int, default=2000, help="in all, with earlier runs")
    parser.add_argument("--bodies", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save-every", type=int, default=25, help="steps between psyncs")
    parser.add_argument("--kill-after", type=int, metavar="N", help="die of SIGKILL after N steps")
    options = parser.parse_args()
    with indelible.open(options.pool, 256 << 20) as pool:
        simulation = Simulation(pool, options.bodies, options.seed)
        start = simulation.step
        print(f"goes on at step {start}" if start else "begins", flush=True)
        while simulation.step < options.steps:
            simulation.advance()
            if simulation.step % options.save_every == 0 or simulation.step == options.steps:
                simulation.save()
            if simulation.step - start == options.kill_after:
                os.kill(os.getpid(), signal.SIGKILL)
        print(f"{simulation.step} steps; digest {simulation.digest()}")


if __name__ == "__main__":
    main()
