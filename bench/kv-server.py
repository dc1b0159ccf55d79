#!/usr/bin/env python3
"""Measures the example `kv-server` beside Redis (appendfsync always), with redis-benchmark, turn by turn.

    cargo build --release -p indelible-examples --bin kv-server
    bench/kv-server.py                       requests a second, in a folder beside this one
    bench/kv-server.py --folder /mnt/disk    elsewhere
    bench/kv-server.py --bytes               bytes written to the device for each SET; the folder has to be alone on it

Needs redis-server and redis-benchmark (Debian: redis-server, redis-tools). Values are random. Redis does not rewrite its log.
`kv-ycsb.py` has the same options, `kv-suites.py` some of them.
"""

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

VALUE = "v:" + "__rand_int__" * 5
LOADS = {
    "SET": ["SET", "key:__rand_int__", VALUE],
    "GET": ["GET", "key:__rand_int__"],
    "INCR": ["INCR", "count:__rand_int__"],
    "ZADD": ["ZADD", "scores", "__rand_int__", "member:__rand_int__"],
}
# Clients, pipeline, requests per turn.
SHAPES = [(1, 1, 1_500), (1, 16, 16_000), (50, 1, 30_000), (50, 16, 200_000)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """One of the two, with its data in a folder of its own."""

    def __init__(self, name: str, folder: Path, binary: Path, threads: int | None) -> None:
        self.name, self.port = name, free_port()
        folder.mkdir()
        if name == "redis":
            command = [
                "redis-server",
                "--port",
                str(self.port),
                "--bind",
                "127.0.0.1",
                "--dir",
                str(folder),
                "--save",
                "",
            ]
            command += [
                "--appendonly",
                "yes",
                "--appendfsync",
                "always",
                "--auto-aof-rewrite-percentage",
                "0",
            ]
        else:
            command = [str(binary), str(folder / "kv.pmo"), "--listen", f"127.0.0.1:{self.port}"]
            command += [] if threads is None else ["--threads", str(threads)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        for _ in range(200):
            if self.process.poll() is not None:
                sys.exit(f"{name} ended at once: {command}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        sys.exit(f"{name} does not listen")

    def run(self, load: str, clients: int, pipeline: int, requests: int, keys: int) -> float:
        """Requests a second."""
        command = [
            "redis-benchmark",
            "-p",
            str(self.port),
            "-c",
            str(clients),
            "-P",
            str(pipeline),
            "-n",
            str(requests),
        ]
        command += ["-r", str(keys), "--csv", *LOADS[load]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
        return float(done.stdout.strip().splitlines()[-1].split('","')[1].strip('"'))

    def busy(self) -> float:
        """Seconds of CPU that it has used."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def written(folder: Path) -> int:
    """Bytes that the device under the folder got, once all is there."""
    subprocess.run(["sync", "-f", str(folder)], check=True)
    device = os.stat(folder).st_dev
    counts = (
        Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
        .read_text(encoding="ascii")
        .split()
    )
    return int(counts[6]) * 512


def speed(options: argparse.Namespace, folder: Path) -> list[dict[str, object]]:
    servers = [
        Server(name, folder / name, options.binary, options.threads)
        for name in ("redis", "kv-server")
    ]
    rows: list[dict[str, object]] = []
    for keys in options.keys:
        for load in options.loads:
            for clients, pipeline, least in SHAPES:
                requests = least * options.times
                before = [server.busy() for server in servers]
                turns = [
                    [server.run(load, clients, pipeline, requests, keys) for server in servers]
                    for _ in range(options.turns)
                ]
                costs = [
                    (server.busy() - was) / (options.turns * requests) * 1e6
                    for server, was in zip(servers, before, strict=True)
                ]
                ratios = sorted(kv / redis for redis, kv in turns)
                redis, kv = (statistics.median(turn[which] for turn in turns) for which in (0, 1))
                row = {
                    "keys": keys,
                    "load": load,
                    "clients": clients,
                    "pipeline": pipeline,
                    "redis": redis,
                    "kv_server": kv,
                }
                row |= {"ratio": statistics.median(ratios), "least": ratios[0], "most": ratios[-1]}
                row |= {"redis_cpu_us": costs[0], "kv_server_cpu_us": costs[1]}
                rows.append(row)
                print(
                    f"{keys:>7} keys, {load:<4} {clients:>2} clients, pipeline {pipeline:>2}: redis {redis:>9,.0f}/s, kv-server {kv:>9,.0f}/s, "
                    f"{row['ratio']:.2f}x ({ratios[0]:.2f}-{ratios[-1]:.2f}); CPU {costs[0]:.2f} us, {costs[1]:.2f} us",
                    file=sys.stderr,
                    flush=True,
                )
    for server in servers:
        server.stop()
    return rows


def device(options: argparse.Namespace, folder: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for keys in options.keys:
        found: dict[str, list[float]] = {}
        for name in ("redis", "kv-server"):
            place = folder / f"{name}-{keys}"
            server = Server(name, place, options.binary, options.threads)
            server.run("SET", 50, 16, 12 * keys, keys)
            for clients, pipeline, requests in SHAPES:
                before = written(folder)
                server.run("SET", clients, pipeline, 3 * requests, keys)
                found.setdefault(name, []).append((written(folder) - before) / (3 * requests))
            server.stop()
            shutil.rmtree(place)
        for (clients, pipeline, _), redis, kv in zip(
            SHAPES, found["redis"], found["kv-server"], strict=True
        ):
            rows.append(
                {
                    "keys": keys,
                    "clients": clients,
                    "pipeline": pipeline,
                    "redis": redis,
                    "kv_server": kv,
                    "ratio": kv / redis,
                }
            )
            print(
                f"{keys:>7} keys, {clients:>2} clients, pipeline {pipeline:>2}: redis {redis:,.0f} bytes a SET, kv-server {kv:,.0f}, {kv / redis:.2f}x",
                file=sys.stderr,
                flush=True,
            )
    return rows


def places(about: str | None) -> argparse.ArgumentParser:
    """The options of all programs that run kv-server."""
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folder", type=Path, default=root / "target", help="data go to a new folder in here"
    )
    parser.add_argument("--binary", type=Path, default=root / "target/release/kv-server")
    parser.add_argument("--json", action="store_true", help="results as JSON on standard output")
    return parser


def arguments(about: str | None, keys: list[int]) -> argparse.ArgumentParser:
    """Also those of programs that measure it beside another server."""
    parser = places(about)
    parser.add_argument("--threads", type=int, help="of kv-server; its default if not given")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument(
        "--keys", type=int, nargs="+", default=keys, help="keys that requests choose from"
    )
    return parser


def parsed(parser: argparse.ArgumentParser, *programs: str) -> argparse.Namespace:
    """The options, once what they need is there."""
    options = parser.parse_args()
    for program in programs:
        if shutil.which(program) is None:
            sys.exit(
                f"{program} is not installed (Debian: redis-server, redis-tools, memcached, tcl)"
            )
    if not options.binary.exists():
        sys.exit(
            f"{options.binary} is missing: cargo build --release -p indelible-examples --bin kv-server"
        )
    return options


def main() -> None:
    parser = arguments(__doc__, [1_000, 100_000])
    parser.add_argument("--loads", nargs="+", choices=LOADS, default=list(LOADS))
    parser.add_argument(
        "--times", type=int, default=1, help="multiplies the requests of a turn: turns in memory are short"
    )
    parser.add_argument(
        "--bytes",
        action="store_true",
        help="bytes written for each SET instead of requests a second",
    )
    options = parsed(parser, "redis-server", "redis-benchmark")
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="kv-server-") as folder:
        rows = (device if options.bytes else speed)(options, Path(folder))
    if options.json:
        json.dump(rows, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main()
