"""Trains a classifier of two spirals. Killed at any moment, it goes on from the last checkpoint,
and ends with the numbers of a run that was never killed.

    python examples/python/training.py run.pmo --epochs 60
    python examples/python/training.py run.pmo --show
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import indelible
import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
Weights = dict[str, Array]


class Adam(NamedTuple):
    """The state of the optimizer."""

    steps: int
    mean: Weights
    square: Weights


class State(NamedTuple):
    """A checkpoint: all that the next epoch depends on."""

    epoch: int
    weights: Weights
    adam: Adam
    random: np.random.Generator


def begin(seed: int) -> State:
    random = np.random.default_rng(seed)
    shapes = {"w1": (2, 32), "b1": (32,), "w2": (32, 1), "b2": (1,)}
    weights = {name: random.normal(scale=0.5, size=shape) for name, shape in shapes.items()}
    zeros = {name: np.zeros(shape) for name, shape in shapes.items()}
    return State(0, weights, Adam(0, zeros, zeros), random)


def spirals(random: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Points of two spirals, and which of the two each is of."""
    label = random.integers(2, size=(count, 1)).astype(float)
    turn = np.sqrt(random.uniform(size=(count, 1))) * 2 * np.pi
    angle = turn + np.pi * label
    points = turn / np.pi * np.hstack([np.cos(angle), np.sin(angle)])
    return points + random.normal(scale=0.05, size=(count, 2)), label


def predict(weights: Weights, points: Array) -> tuple[Array, Array]:
    """The hidden layer, and how likely each point is of the second spiral."""
    hidden = np.tanh(points @ weights["w1"] + weights["b1"])
    return hidden, 1 / (1 + np.exp(-(hidden @ weights["w2"] + weights["b2"])))


def step(weights: Weights, adam: Adam, points: Array, label: Array) -> tuple[Weights, Adam]:
    hidden, found = predict(weights, points)
    error = (found - label) / len(points)
    below = error @ weights["w2"].T * (1 - hidden**2)
    slope = {"w1": points.T @ below, "b1": below.sum(0), "w2": hidden.T @ error, "b2": error.sum(0)}
    steps = adam.steps + 1
    mean = {name: 0.9 * adam.mean[name] + 0.1 * slope[name] for name in slope}
    square = {name: 0.999 * adam.square[name] + 0.001 * slope[name] ** 2 for name in slope}
    rate = 0.02 * np.sqrt(1 - 0.999**steps) / (1 - 0.9**steps)
    change = {name: rate * mean[name] / (np.sqrt(square[name]) + 1e-8) for name in slope}
    return {name: weights[name] - change[name] for name in weights}, Adam(steps, mean, square)


def train(pool: indelible.Pool, epochs: int, seed: int) -> None:
    saved = pool.checkpoints("spirals", last=3, best=1)
    state: State = saved.load() if saved else begin(seed)
    print(f"goes on after epoch {state.epoch}" if saved else "begins", flush=True)
    points, label = spirals(np.random.default_rng(seed + 1), 1000)
    for epoch in range(state.epoch + 1, epochs + 1):
        weights, adam = state.weights, state.adam
        for _ in range(20):
            weights, adam = step(weights, adam, *spirals(state.random, 64))
        state = State(epoch, weights, adam, state.random)
        wrong = float(np.mean((predict(weights, points)[1] > 0.5) != label))
        # Durable as a whole when this returns, the generator in its present state.
        saved.save(f"epoch {epoch}", state, score=wrong)
        print(f"epoch {epoch}: {wrong:.1%} wrong", flush=True)
    print("weights add up to", sum(float(each.sum()) for each in state.weights.values()))


def show(pool: indelible.Pool) -> None:
    """Also beside a process that trains."""
    saved = pool.checkpoints("spirals", mode="r")
    best: State = saved.load(saved.best)
    print(f"{', '.join(saved)}; best: {saved.best}, {best.adam.steps} steps")


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains a classifier of two spirals.")
    parser.add_argument("pool", help="file of the pool; made if absent")
    parser.add_argument("--epochs", type=int, default=60, help="in all, with earlier runs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="list the checkpoints")
    options = parser.parse_args()
    with indelible.open(options.pool, 64 << 20) as pool:
        show(pool) if options.show else train(pool, options.epochs, options.seed)


if __name__ == "__main__":
    main()
