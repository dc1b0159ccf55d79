"""examples/python/logboi.py: clients and servers are killed, and no line is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import indelible
from test_shared import said

PROGRAM = Path(__file__).parents[3] / "examples" / "python" / "logboi.py"
SEED = int(os.environ.get("INDELIBLE_SEED", "5"))


def start(path: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", str(PROGRAM), str(path), *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def serve(path: Path) -> subprocess.Popen[str]:
    server = start(path, "serve")
    assert said(server) == "serving"
    return server


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def test_clients_and_servers_are_killed_and_no_line_is_lost(pool: indelible.Pool) -> None:
    print(f"INDELIBLE_SEED={SEED}")
    random_, path = random.Random(SEED), Path(pool.path)
    server, acknowledged, names = serve(path), [], []
    for turn in range(6):
        name = f"client {turn}"
        names.append(name)
        client = start(path, "send", name)
        assert client.stdin is not None
        for number in range(random_.randrange(1, 6)):
            client.stdin.write(f"{name} line {number}\n")
            if number == 2 and turn % 2:
                kill(server)
                server = serve(path)
            # It says the line once that is durable.
            line = said(client)
            assert line == f"{name} line {number}"
            acknowledged.append(line)
        if turn == 2:
            kill(client)
            assert said(server) == f"{name} crashed"
        else:
            client.communicate()
            assert client.returncode == 0
    kill(server)
    with pool.log("log", "r") as reader:
        lines = [record.data.decode().split(" ", 1)[1] for record in reader]
    assert [line.removeprefix("says ") for line in lines if line.startswith("says ")] == acknowledged
    assert [line.removeprefix("hello ") for line in lines if line.startswith("hello ")] == names
    assert [line for line in lines if line.startswith("crashed")] == ["crashed (client 2)"]
    assert lines.count("bye") == 5


def test_it_ends_by_a_signal(pool: indelible.Pool) -> None:
    server = serve(Path(pool.path))
    server.send_signal(signal.SIGINT)
    server.communicate(timeout=60)
    assert server.returncode == 130
    assert start(Path(pool.path), "what").wait(60) == 1
