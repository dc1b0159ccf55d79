#!/usr/bin/env python3
"""Measures commands of `pmo`: copies of a pool beside `cp`, and lists of very many objects.

    cargo build --release -p indelible-cli
    bench/operations.py copies --folder /dev/shm       backup, restore and clone of 1 GiB, in times of cp and sync
    bench/operations.py objects --folder /dev/shm      time and memory of ls, top, metrics and check; makes a million objects

`--pmo` names another tool; given twice, both are measured by turns. Half of the 1 GiB is random, half are files of /usr.
The objects are made with the package `indelible` for Python.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HALF = 512 << 20
OBJECTS = 1_000_000


def run(*command):
    """Seconds, seconds of processors, and megabytes that a command takes."""
    begun = time.monotonic()
    child = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        raise SystemExit(f"{command} failed")
    return time.monotonic() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def spread(figures):
    low, *_, high = sorted(figures)
    return f"{statistics.median(figures):.2f} ({low:.2f}–{high:.2f})"


def random_and_files(pool, tool):
    with open("/dev/urandom", "rb") as noise:
        tar = subprocess.Popen(["tar", "cf", "-", "/usr/share", "/usr/lib"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for name, source in (("random", noise), ("files", tar.stdout)):
            part = subprocess.Popen(["head", "-c", str(HALF)], stdin=source, stdout=subprocess.PIPE)
            subprocess.run([tool, "put", pool, name, "--create", "--quiet"], stdin=part.stdout, check=True)
        tar.kill()


def copies(tools, folder, rounds):
    pool, copy, kept, new = (folder / name for name in ("p.pmo", "cp.pmo", "b.pmobackup", "n.pmo"))
    run(tools[0], "format", pool, "--size", "1200M", "--quiet")
    random_and_files(pool, tools[0])
    os.sync()
    found = {}
    # The first round is not counted: memory that a virtual machine uses for the first time is slow.
    for number in range(rounds + 1):
        base, used, _ = run("sh", "-c", f"cp {pool} {copy} && sync {copy}")
        figures = [(("cp", "cp and sync"), (base, 1.0, used))]
        copy.unlink()
        for tool in tools:
            for operation, command, needless in (
                ("clone", ("clone", pool, copy), (copy,)),
                ("backup", ("backup", pool, kept), ()),
                ("restore", ("restore", kept, new), (kept, new)),
            ):
                seconds, used, _ = run(tool, *command, "--quiet")
                figures.append(((tool, operation), (seconds, seconds / base, used)))
                for file in needless:
                    file.unlink()
            figures.append(((tool, "backup of 4 KiB new"), one_page_more(tool, pool, folder / f"backups.{number}", base)))
        for name, figure in figures if number > 0 else ():
            found.setdefault(name, []).append(figure)
    print("| | s | times of cp | s of processors |\n|---|---|---|---|")
    for (tool, operation), figures in found.items():
        columns = " | ".join(spread(column) for column in zip(*figures))
        print(f"| {operation} ({tool}) | {columns} |")


def one_page_more(tool, pool, backups, base):
    """The second backup into a folder, once a page has changed."""
    run(tool, "backup", pool, f"{backups}/", "--quiet")
    with open("/dev/urandom", "rb") as noise:
        page = subprocess.Popen(["head", "-c", "4096"], stdin=noise, stdout=subprocess.PIPE)
        subprocess.run([tool, "put", pool, "random", "--offset", "100M", "--quiet"], stdin=page.stdout, check=True)
    seconds, used, _ = run(tool, "backup", pool, f"{backups}/", "--quiet")
    shutil.rmtree(backups)
    return seconds, seconds / base, used


def make_many(path):
    """Run in a process of its own: a command that is started by a large process counts that as its memory."""
    import indelible

    pool = indelible.open(path, 6 << 30)
    for number in range(OBJECTS):
        pool.create(f"directory {number * 7919 % 1000:03}/object {number:06}", 4096, sparse=True)
    pool.close()


def objects(tools, folder, rounds, made=None):
    path = made or folder / "many.pmo"
    if made is None:
        subprocess.run([sys.executable, __file__, "make", "--many", path], check=True)
    commands = {
        "ls": ("ls", path),
        "ls, ten by a prefix": ("ls", path, "directory 007/object 00*"),
        "top": ("top", path, "--once", "--interval", "0.01"),
        "metrics": ("metrics", path),
        "check": ("check", path, "--quiet"),
    }
    print("| | s | s of processors | MB |\n|---|---|---|---|")
    for operation, command in commands.items():
        figures = [[run(tool, *command) for tool in tools] for _ in range(rounds)]
        for tool, rows in zip(tools, zip(*figures)):
            seconds, used, memory = zip(*rows)
            print(f"| {operation} ({tool}) | {spread(seconds)} | {spread(used)} | {statistics.median(memory):.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("copies", "objects", "make"))
    parser.add_argument("--folder", type=Path, default=Path.cwd())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--many", type=Path, help="a pool with the objects, made before")
    parser.add_argument("--pmo", action="append")
    given = parser.parse_args()
    if given.what == "make":
        return make_many(given.many)
    root = Path(__file__).resolve().parent.parent
    tools = [os.path.abspath(tool) for tool in given.pmo or [root / "target/release/pmo"]]
    folder = Path(tempfile.mkdtemp(dir=given.folder, prefix="operations."))
    try:
        if given.what == "copies":
            copies(tools, folder, given.rounds)
        else:
            objects(tools, folder, given.rounds, given.many)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
