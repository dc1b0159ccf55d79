"""A job queue. A job is durable when its submitter is told so, and its result when it is listed:
kill submitters, workers or the server, and start the server again.

    python examples/python/jobs.py jobs.pmo serve --workers 2
    seq 1000000007 1000000027 | python examples/python/jobs.py jobs.pmo submit
    python examples/python/jobs.py jobs.pmo results
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import indelible


def work(job: str) -> str:
    """Does a job: finds the prime factors of a number."""
    number, factor, found = int(job), 2, []
    while factor * factor <= number:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return " * ".join(map(str, [*found, number] if number > 1 or not found else found))


def submitted(pool: indelible.Pool) -> indelible.Queue:
    """The queue to the server, in shared memory that is empty after a restart of the machine."""
    return pool.queue("submitted", slots=1024, most=512)


def end_with_the_server() -> None:
    """Ends a worker whose server is gone."""
    server = multiprocessing.parent_process()
    assert server is not None
    server.join()
    os._exit(1)


def begin_worker() -> None:
    threading.Thread(target=end_with_the_server, daemon=True).start()


class Server:
    """The log has all jobs in their order, the dict the results of those that were done."""

    def __init__(self, pool: indelible.Pool, workers: int) -> None:
        self.workers = workers
        self.log, self.results = pool.log("jobs"), pool.dict("results")
        indelible.psync(self.results)
        self.log.psync()
        self.jobs = [record.data.decode() for record in pool.log("jobs", "r")]
        self.begin()

    def begin(self) -> None:
        """Starts workers, and gives them the jobs without results."""
        # Not by fork, which would copy threads and attached objects.
        context = multiprocessing.get_context("spawn")
        self.executor = ProcessPoolExecutor(self.workers, context, begin_worker)
        self.running: dict[int, Future[str]] = {}
        for number in range(len(self.jobs)):
            self.start(number)

    def start(self, number: int) -> None:
        if str(number) not in self.results:
            self.running[number] = self.executor.submit(work, self.jobs[number])

    def take(self, consumer: indelible.Consumer) -> None:
        """Takes jobs from the queue. A submitter is told so once its job is durable in the log."""
        first = len(self.jobs)
        self.jobs += [job.decode() for job in self.log.collect(consumer, timeout=0.1)]
        for number in range(first, len(self.jobs)):
            self.start(number)

    def finish(self) -> None:
        """Makes finished results durable."""
        done = [number for number, future in self.running.items() if future.done()]
        for number in done:
            error = self.running[number].exception()
            if isinstance(error, BrokenProcessPool):
                raise error
            result = f"failed: {error}" if error else self.running[number].result()
            self.results[str(number)] = result
            del self.running[number]
        if done:
            self.results.psync()

    def serve(self, consumer: indelible.Consumer) -> None:
        print("serving", flush=True)
        while True:
            try:
                self.take(consumer)
                self.finish()
            except BrokenProcessPool:
                print("a worker died", flush=True)
                self.begin()


def submit(pool: indelible.Pool) -> None:
    with submitted(pool).producer() as producer:
        for line in sys.stdin:
            number = producer.send(line.strip().encode())
            assert number is not None
            producer.wait_taken(number)
            print(line.strip(), flush=True)


def show(pool: indelible.Pool) -> None:
    """Also beside the server."""
    results = pool.dict("results", mode="r")
    for number, record in enumerate(pool.log("jobs", "r")):
        print(f"{record.data.decode()} = {results.get(str(number), '...')}")


def main() -> None:
    parser = argparse.ArgumentParser(description="A job queue that finds prime factors.")
    parser.add_argument("pool", help="file of the pool; made if absent")
    parser.add_argument("what", choices=["serve", "submit", "results"])
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    pool = indelible.open(options.pool, 64 << 20)
    if options.what == "serve":
        with submitted(pool).consumer() as consumer:
            Server(pool, options.workers).serve(consumer)
    elif options.what == "submit":
        submit(pool)
    else:
        show(pool)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
