"""A log of many clients: each line that a client sends is durable before the client goes on, and the log says which clients left, and which crashed.

    python examples/python/logboi.py data.pmo serve
    python examples/python/logboi.py data.pmo send NAME < lines
    pmo log data.pmo log --follow

Kill any of them, at any time, the server as well: run it again, and it goes on. It is examples/src/logboi.rs in Python; clients of one talk to the server of the other.
"""

from __future__ import annotations

import sys

import indelible

LOOK = 0.1
"""Seconds after which the server looks for clients that crashed."""


def clients(pool: indelible.Pool) -> indelible.Queue:
    """The queue of lines, made anew after the machine was started."""
    return pool.queue("clients", slots=1024, most=512)


class Clients(dict[int, str]):
    """Names of the clients that are there, by the numbers of their lives."""

    def see(self, line: bytes) -> None:
        """Takes in a line of the log: "LIFE hello NAME", "LIFE says TEXT", "LIFE bye", "LIFE crashed (NAME)"."""
        life, what, *rest = line.decode(errors="replace").split(" ", 2)
        if what == "hello":
            self[int(life, 16)] = " ".join(rest)
        elif what in ("bye", "crashed"):
            self.pop(int(life, 16), None)


def serve(pool: indelible.Pool) -> None:
    queue, there = clients(pool), Clients()
    with queue.consumer() as consumer, pool.log("log") as log:
        log.psync()
        # Clients that an earlier server has seen.
        with pool.log("log", "r") as reader:
            for record in reader:
                there.see(record.data)
        print("serving", flush=True)
        while True:
            for line in log.collect(consumer, 256, LOOK):
                there.see(line)
            for life, name in list(there.items()):
                if not queue.shared.is_alive(life):
                    line = f"{life:08x} crashed ({name})".encode()
                    log.append(line)
                    log.psync()
                    there.see(line)
                    print(f"{name} crashed", flush=True)


def send(pool: indelible.Pool, name: str) -> None:
    queue = clients(pool)
    life = queue.shared.life
    with queue.producer() as producer:

        def tell(text: str) -> None:
            number = producer.send(f"{life:08x} {text}".encode())
            assert number is not None
            # Durable: the server takes a line out once it is in the log.
            producer.wait_taken(number)

        tell(f"hello {name}")
        for line in sys.stdin:
            tell(f"says {line.rstrip()}")
            print(line.rstrip(), flush=True)
        tell("bye")


def main(arguments: list[str]) -> None:
    match arguments:
        case [path, "serve"]:
            serve(indelible.open(path, 64 << 20))
        case [path, "send", name]:
            send(indelible.open(path, 64 << 20), name)
        case _:
            sys.exit("usage: logboi.py POOL serve | logboi.py POOL send NAME")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
