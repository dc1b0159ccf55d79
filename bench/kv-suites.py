#!/usr/bin/env python3
"""Runs the test suites of Redis and memcached against `kv-server`, and lists the failures.

    cargo build --release -p indelible-examples --bin kv-server
    bench/kv-suites.py --redis FOLDER --memcached FOLDER

The folders have the sources of Redis 7.0.15 and of memcached 1.6.18.

Tests run unmodified, with one exception: memcached's `debugtime` is a wait. Left out are tests of
a command that the server lacks, tests of a server with options of its own, and EXCEPTIONS. It needs
tclsh, perl and memcached.
"""

import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("kv_server", HERE / "kv-server.py")
kv_server = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kv_server)

UNITS = (
    "type/string type/incr type/hash type/list type/list-2 type/list-3 type/zset"
    " expire keyspace scan multi protocol quit other"
).split()
TAGS = (
    "-needs:debug -needs:repl -needs:config-maxmemory -needs:save -needs:reset -slow -large-memory"
)
# Procedures whose commands do not matter: the suite's options make them do nothing.
IDLE = {"assert_encoding", "debug_digest", "debug_digest_value", "assert_refcount", "csvdump"}
# Procedures with a command in a variable.
BLOCKS = {
    "bpop_command",
    "bpop_command_two_key",
    "bzpop_command",
    "verify_bzpop_response",
    "verify_bzpop_two_key_response",
    "wait_for_blocked_client",
    "wait_for_blocked_clients_count",
}
EXCEPTIONS = {
    "ZRANGE BYSCORE REV LIMIT": "uses the data of a test that is left out",
    "ZRANGE BYLEX": "ranges by name",
    "issue_104.t": "memcached's counts of requests",
}
# Lines of tests of memcached that are about more than the protocol.
BEYOND = {
    r"new_memcached\((?!\)|['\"]-m \d+['\"]\))": "options of memcached",
    r"\b(mg|mn|ms|md|me|ma) ": "meta commands",
    r"stats (slabs|items|settings|detail|sizes|conns)|mem_stats\(\$sock, ['\"]|lru_crawler"
    r"|\blru\b|slabs|\bwatch\b|cache_memlimit|extstore": "memory of memcached",
    r"supports_(sasl|udp|tls|extstore|proxy)|enabled_tls_testing|unixsocket|binary|0x80"
    r"|shutdown": "other interfaces of memcached",
}


class Server(kv_server.Server):
    """kv-server with both protocols."""

    def __init__(self, folder: Path, binary: Path) -> None:
        self.name, self.port, self.cache = "kv-server", kv_server.free_port(), kv_server.free_port()
        command = [
            str(binary),
            str(folder / "kv.pmo"),
            "--listen",
            f"127.0.0.1:{self.port}",
            "--memcached",
            f"127.0.0.1:{self.cache}",
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        for _ in range(2):
            self.process.stdout.readline()

    def has(self, command: str) -> bool:
        with socket.create_connection(("127.0.0.1", self.port)) as client:
            client.sendall(f"*1\r\n${len(command)}\r\n{command}\r\n".encode())
            return b"unknown command" not in client.recv(1000)

    def clear(self) -> None:
        with socket.create_connection(("127.0.0.1", self.cache)) as client:
            client.sendall(b"flush_all\r\n")
            client.recv(100)


def body(text: str, at: int) -> str:
    """The block whose brace is at a place."""
    depth = 0
    for end in range(at, len(text)):
        if text[end] == "\\":
            continue
        depth += {"{": 1, "}": -1}.get(text[end], 0) if text[end - 1] != "\\" else 0
        if depth == 0:
            return text[at : end + 1]
    return text[at:]


def used(text: str, procedures: dict[str, set[str]]) -> set[str]:
    commands = {
        word.lower()
        for word in re.findall(
            r"(?:\br(?: -?\d+)?|\$r\w*|\$\w*(?:client|cli)\w*)\s+([A-Za-z]+)\b", text
        )
    }
    for name, theirs in procedures.items():
        if re.search(rf"(?<![\w$]){re.escape(name)}\b", text):
            commands |= theirs
    return commands


def excepted(source: Path, unit: str, lacks: set[str]) -> dict[str, str]:
    """Patterns of names of tests that need a command that the server lacks, and the command."""
    text = (source / f"tests/unit/{unit}.tcl").read_text(encoding="latin-1")
    both = text + (source / "tests/support/util.tcl").read_text(encoding="latin-1")
    procedures: dict[str, set[str]] = {name: {name} for name in BLOCKS}
    for found in re.finditer(r"^\s*proc (\w+) \{.*\} \{$", both, re.MULTILINE):
        if found[1] not in IDLE | BLOCKS:
            procedures[found[1]] = used(body(both, found.end() - 1), {})
    missing: dict[str, str] = {}
    for found in re.finditer(r"^\s*test\s+(?:\{(.*)\}|\"(.*)\")\s+\{", text, re.MULTILINE):
        for command in sorted(used(body(text, found.end() - 1), procedures) & lacks):
            name = found[1] or re.sub(r"\$\{?\w+\}?|\[.*?\]", "\0", found[2])
            missing.setdefault(
                "/^" + re.escape(name).replace("\\\0", ".*").replace("\0", ".*") + "$", command
            )
    # Loops that make names of tests of their commands.
    names = "|".join(sorted(lacks - BLOCKS)).upper()
    return missing | {f"/(^|[^A-Za-z])({names})([^A-Za-z]|$)": "in the name"}


def ended(
    command: list[str], folder: Path, seconds: int, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The program's end, with its output; raises `TimeoutExpired`."""
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
        check=False,
    )


def redis(source: Path, server: Server) -> dict[str, object]:
    passed, failed, left = 0, [], Counter()
    commands = {
        file.stem for file in (source / "src/commands").glob("*.json") if "-" not in file.stem
    }
    lacks = BLOCKS | {command for command in commands if not server.has(command)}
    for unit in UNITS:
        missing = excepted(source, unit, lacks)
        with tempfile.NamedTemporaryFile("w", suffix=".skip") as skips:
            skips.write("\n".join([*missing, *EXCEPTIONS]))
            skips.flush()
            command = [
                "tclsh",
                "tests/test_helper.tcl",
                "--host",
                "127.0.0.1",
                "--port",
                str(server.port),
                "--singledb",
                "--durable",
            ]
            command += [
                "--ignore-encoding",
                "--ignore-digest",
                "--tags",
                TAGS,
                "--single",
                f"unit/{unit}",
                "--skipfile",
                skips.name,
            ]
            done = ended(command, source, 900)
        said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).split("!!! WARNING")[0]
        count = len(re.findall(r"^\[ok\]", said, re.MULTILINE))
        errors = re.findall(
            r"^\[(?:err|exception)\]:? ?(.*(?:\n(?!\[).*){0,2})", said, re.MULTILINE
        )
        passed += count
        failed += [f"{unit}: {error}" for error in errors]
        skipped = len(re.findall(r"^\[skip\]", said, re.MULTILINE))
        left["tests skipped"] += skipped
        print(
            f"unit/{unit}: {count} passed, {len(errors)} failed, {skipped} need other commands",
            file=sys.stderr,
            flush=True,
        )
    return {"passed": passed, "failed": failed, "left": dict(left.most_common())}


def memcached(source: Path, server: Server, folder: Path) -> dict[str, object]:
    tests, passed, failed, left = folder / "memcached", 0, [], Counter()
    shutil.copytree(source / "t", tests / "t")
    for name in ("memcached", "memcached-debug"):
        (tests / name).symlink_to(shutil.which("memcached") or "")
    library = tests / "t/lib/MemcachedTest.pm"
    code = re.sub(
        r"(sub mem_move_time \{)", r"\1 sleep($_[1]); return;", library.read_text(encoding="utf-8")
    )
    library.write_text(code, encoding="utf-8")
    for test in sorted((tests / "t").glob("*.t")):
        text = test.read_text(encoding="latin-1")
        reason = next(
            (reason for words, reason in BEYOND.items() if re.search(words, text)),
            EXCEPTIONS.get(test.name),
        )
        if reason is not None:
            left[reason] += 1
            continue
        server.clear()
        environment = os.environ | {"T_MEMD_USE_DAEMON": f"127.0.0.1:{server.cache}"}
        try:
            done = ended(["perl", f"t/{test.name}"], tests, 240, environment)
            said, code_ = done.stdout, done.returncode
        except subprocess.TimeoutExpired:
            said, code_ = "", -1
        passed += len(re.findall(r"^ok", said, re.MULTILINE))
        errors = re.findall(r"^not ok.*", said, re.MULTILINE) or (
            [f"ended with {code_}"] if code_ != 0 else []
        )
        failed += [f"{test.name}: {error}" for error in errors[:5]]
        print(f"{test.name}: {len(errors)} failed", file=sys.stderr, flush=True)
    return {"passed": passed, "failed": failed, "left": dict(left.most_common())}


def main() -> None:
    parser = kv_server.places(__doc__)
    parser.add_argument("--redis", type=Path, help="a checkout of Redis")
    parser.add_argument("--memcached", type=Path, help="a checkout of memcached")
    options = kv_server.parsed(parser, "tclsh", "perl", "memcached")
    found = {}
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="kv-suites-") as folder:
        server = Server(Path(folder), options.binary)
        if options.redis is not None:
            found["redis"] = redis(options.redis, server)
        if options.memcached is not None:
            found["memcached"] = memcached(options.memcached, server, Path(folder))
        server.stop()
    for name, suite in found.items():
        failed = len(suite["failed"])
        print(
            f"{name}: {suite['passed']} passed, {failed} failed; left out: {suite['left']}",
            file=sys.stderr,
        )
        for line in suite["failed"]:
            print(f"  {line}", file=sys.stderr)
    if options.json:
        json.dump(found, sys.stdout, indent=1)
        print()
    sys.exit(any(suite["failed"] for suite in found.values()))


if __name__ == "__main__":
    main()
