#!/usr/bin/env python3
"""Measures the example `kv-server` beside Redis (appendfsync always) with YCSB's workloads A to F, turn by turn.

    cargo build --release -p indelible-examples --bin kv-server
    cd go-ycsb                               a clone of pingcap/go-ycsb at v1.0.3
    git apply …/bench/ycsb-scan.patch && go build -o ../go-ycsb-scan ./cmd/go-ycsb
    bench/kv-ycsb.py --ycsb ../go-ycsb-scan --workloads ../go-ycsb/workloads

go-ycsb's binding for Redis has no scans: the patch adds them as YCSB's own binding has them, by a sorted set of all keys. It
also counts a read that failed as an error. Records have ten fields of 100 bytes, in hashes.
"""

import argparse
import importlib.util
import itertools
import json
import statistics
import sys
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("kv_server", HERE / "kv-server.py")
kv_server = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kv_server)


def ycsb(
    options: argparse.Namespace, server: object, phase: str, workload: str, keys: int
) -> tuple[float, int]:
    """Operations a second, and the 99th percentile of their times in microseconds."""
    scans = workload == "e"
    operations = options.operations // (10 if scans else 1)
    properties = {
        "redis.addr": f"127.0.0.1:{server.port}",
        "redis.index": "true" if scans else "false",
        "recordcount": keys,
        "operationcount": operations,
        "threadcount": options.clients,
        "measurement.interval": 100_000,
    }
    if scans:  # as in YCSB, not as in go-ycsb
        properties |= {"maxscanlength": 100, "requestdistribution": "zipfian"}
    command = [
        str(options.ycsb),
        phase,
        "redis",
        "-P",
        str(options.workloads / f"workload{workload}"),
    ]
    for name, value in properties.items():
        command += ["-p", f"{name}={value}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    if "ERROR" in done.stdout:
        sys.exit(f"{server.name}, workload {workload}, {phase}:\n{done.stdout[-2000:]}")
    total = [line for line in done.stdout.splitlines() if line.startswith("TOTAL")][-1]
    fields = dict(part.split(": ") for part in total.split(" - ")[1].split(", "))
    return float(fields["OPS"]), int(fields["99th(us)"])


def main() -> None:
    parser = kv_server.arguments(__doc__, [10_000])
    parser.add_argument("--ycsb", type=Path, required=True, help="go-ycsb, with the patch")
    parser.add_argument(
        "--workloads", type=Path, required=True, help="go-ycsb's folder of workloads"
    )
    parser.add_argument("--operations", type=int, default=30_000, help="a tenth of them with scans")
    parser.add_argument("--clients", type=int, default=16)
    options = kv_server.parsed(parser, "redis-server")
    rows = []
    for keys, workload in itertools.product(options.keys, "abcdef"):
        with tempfile.TemporaryDirectory(dir=options.folder, prefix="kv-ycsb-") as folder:
            servers = [
                kv_server.Server(name, Path(folder) / name, options.binary, options.threads)
                for name in ("redis", "kv-server")
            ]
            load = [ycsb(options, server, "load", workload, keys) for server in servers]
            turns = [
                [ycsb(options, server, "run", workload, keys) for server in servers]
                for _ in range(options.turns)
            ]
            for server in servers:
                server.stop()
        row = {"keys": keys, "workload": workload.upper(), "load": [one[0] for one in load]}
        for which, name in enumerate(("redis", "kv_server")):
            row[name] = statistics.median(turn[which][0] for turn in turns)
            row[f"{name}_99th_us"] = statistics.median(turn[which][1] for turn in turns)
        ratios = sorted(turn[1][0] / turn[0][0] for turn in turns)
        row |= {"ratio": statistics.median(ratios), "least": ratios[0], "most": ratios[-1]}
        rows.append(row)
        print(
            f"{keys:>7} keys, {row['workload']}: redis {row['redis']:,.0f}/s ({row['redis_99th_us']:,.0f} us), kv-server {row['kv_server']:,.0f}/s "
            f"({row['kv_server_99th_us']:,.0f} us), {row['ratio']:.2f}x ({ratios[0]:.2f}-{ratios[-1]:.2f}); load {load[0][0]:,.0f}/s, {load[1][0]:,.0f}/s",
            file=sys.stderr,
            flush=True,
        )
    if options.json:
        json.dump(rows, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main()
