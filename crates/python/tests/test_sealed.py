"""Sealed objects, and their keys."""

from __future__ import annotations

import copy
import datetime
import json
import pickle
import subprocess
import traceback
from pathlib import Path

import indelible
import numpy as np
import pytest
from conftest import MIB, Open, python
from indelible import SealKey, _indelible

KEY = bytes(range(100, 132))
PLANTED = "planted plaintext of Python"


@pytest.fixture
def seal() -> SealKey:
    return SealKey.bytes(KEY)


def test_arrays_and_dicts_are_sealed_in_the_pool(open_pool: Open, seal: SealKey) -> None:
    pool = open_pool()
    array = pool.array("array", (1000,), "u8", seal=seal)
    array[:] = np.frombuffer(PLANTED[:8].encode(), "u8")[0]
    run = pool.dict("run", seal=seal)
    run["text"] = PLANTED * 10
    indelible.psync(array, run)
    assert pool.stat("array").sealed and pool.stat("run").sealed
    run.close()
    del array
    planted = PLANTED[:8].encode()
    assert planted not in Path(pool.path).read_bytes()
    # The control: what a plain object leaves.
    plain = pool.array("plain", (10,), "u8")
    plain[:] = np.frombuffer(planted, "u8")[0]
    plain.psync()
    del plain
    assert planted in Path(pool.path).read_bytes()
    for mode in ("r+", "r"):
        assert bytes(pool.array("array", mode=mode, seal=seal)[:1]) == planted
    reading = pool.dict("run", "r", seal=seal)
    assert reading["text"] == PLANTED * 10 and reading.readonly
    reading.close()
    anew = pool.array("array", (5,), "f4", "w+", seal=seal)
    assert pool.stat("array").sealed and not anew.any()


def test_a_pool_that_is_open_in_another_process_opens_by_the_same_key(tmp_path: Path, seal: SealKey) -> None:
    with indelible.open(tmp_path / "p.pmo", 4 * MIB) as pool:
        run = pool.dict("run", seal=seal)
        run["n"] = 7
    run.close()
    (tmp_path / "k").write_bytes(KEY)
    program = """
import indelible
pool = indelible.open("p.pmo")
run = pool.dict("run", seal=indelible.SealKey.file("k"))
run["n"] += 1
run.psync()
print(run["n"])
"""
    done = subprocess.run(python(program), cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "8\n", "")


def test_nothing_is_read_without_a_key_that_opens_it(open_pool: Open, seal: SealKey) -> None:
    pool = open_pool()
    pool.create("ledger", 10_000, seal=seal, label="first")
    for attach in (lambda: pool.attach("ledger"), lambda: pool.attach("ledger", "r"), lambda: pool["ledger"]):
        with pytest.raises(indelible.Sealed, match="it is sealed.*`seal`"):
            attach()
    wrong = SealKey.bytes(bytes(32))
    with pytest.raises(indelible.WrongKey, match="opens none of its 1 key slots"):
        pool.attach_snapshot("ledger", seal=wrong)
    for mode in ("r", "r+"):
        with pytest.raises(indelible.WrongKey, match="opens none of its 1 key slots") as refused:
            pool.attach("ledger", mode, seal=wrong)
        assert refused.value.object == "ledger"
    pool.create("plain", 4096)
    with pytest.raises(indelible.Sealed, match="not sealed"):
        pool.attach("plain", seal=seal)
    with pool.attach("ledger", seal=seal) as obj:
        memoryview(obj)[:4] = b"four"
    assert bytes(memoryview(pool.attach("ledger", "r", seal=seal))[:5]) == b"four\0"


def test_keys_are_listed_added_and_removed(open_pool: Open, seal: SealKey) -> None:
    pool = open_pool()
    pool.create("ledger", 10_000, key=b"guard", seal=seal, label="first")
    phrase = SealKey.passphrase("correct horse")
    assert pool.add_key("ledger", phrase, seal=seal, key=b"guard", label="alice") == 1
    slots = pool.key_slots("ledger", key=b"guard")
    assert [(slot.slot, slot.kind, slot.label, slot.damaged) for slot in slots] == [
        (0, "key file", "first", False),
        (1, "passphrase", "alice", False),
    ]
    assert slots[0].created > 1_000_000_000
    with pytest.raises(indelible.WrongKey):
        pool.key_slots("ledger")
    pool.remove_key("ledger", 0, seal=phrase, key=b"guard")
    with pytest.raises(indelible.WrongKey):
        pool.attach("ledger", key=b"guard", seal=seal)
    with pytest.raises(indelible.Sealed, match="last one"):
        pool.remove_key("ledger", 1, seal=phrase, key=b"guard")
    pool.attach("ledger", key=b"guard", seal=phrase).close()
    assert pool.change_key("ledger", seal, seal=phrase, key=b"guard") == 1
    pool.attach("ledger", key=b"guard", seal=seal).close()
    assert pool.key_slots("ledger", key=b"guard")[0].label == "alice"
    with pytest.raises(indelible.WrongKey):
        pool.attach("ledger", key=b"guard", seal=phrase)
    dear = SealKey.passphrase("battery staple", memory=257 << 20, passes=1)
    pool.add_key("ledger", dear, seal=seal, key=b"guard")
    with pytest.raises(indelible.Sealed, match="give that cost with the passphrase"):
        pool.attach("ledger", key=b"guard", seal=SealKey.passphrase("battery staple"))
    pool.attach("ledger", key=b"guard", seal=dear).close()


def test_keys_come_from_files_commands_and_credentials(
    open_pool: Open, seal: SealKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "k"
    file.write_bytes(KEY)
    pool = open_pool()
    pool.create("ledger", 10_000, seal=seal)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    for same in (SealKey.file(file), SealKey.command(f"cat '{file}'"), SealKey.credential("k")):
        pool.attach("ledger", seal=same).close()
    with pytest.raises(FileNotFoundError) as missing:
        SealKey.file(tmp_path / "none")
    assert missing.value.filename == str(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        SealKey.file(tmp_path)
    with pytest.raises(indelible.Sealed, match="at least 32 bytes"):
        SealKey.bytes(b"short")
    with pytest.raises(indelible.Sealed, match="empty"):
        SealKey.passphrase("")
    with pytest.raises(indelible.Error, match="out of bounds"):
        SealKey.passphrase("x", memory=2 << 30)
    with pytest.raises(indelible.Sealed, match="exit status: 3, and said: no card"):
        SealKey.command("echo no card >&2; exit 3")
    with pytest.raises(indelible.Sealed, match="no end after 0.01 s, and was killed"):
        SealKey.command("exec sleep 1000", timeout=0.01)
    with pytest.raises(ValueError, match="timeout"):
        SealKey.command("true", timeout=-1)
    with pytest.raises(indelible.Sealed, match="name of a credential"):
        SealKey.credential("../k")
    with pytest.raises(indelible.Sealed, match="the TPM at .*none cannot be opened"):
        SealKey.tpm(tmp_path / "none")
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    with pytest.raises(indelible.Sealed, match="CREDENTIALS_DIRECTORY is not set"):
        SealKey.credential("k")


def test_a_key_is_in_no_representation_error_traceback_or_pickle(open_pool: Open) -> None:
    secret = "planted secret of a passphrase"
    seal = SealKey.passphrase(secret)
    assert repr(seal) == str(seal) == "<indelible.SealKey, passphrase>"
    assert repr(SealKey.bytes(KEY)) == "<indelible.SealKey, bytes>"
    assert not [name for name in dir(seal) if not name.startswith("__") and not callable(getattr(seal, name))]
    for give in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            give(seal)
    pool = open_pool()
    pool.create("ledger", 4096, seal=SealKey.bytes(KEY))
    del secret
    try:
        pool.attach("ledger", seal=seal)
    except indelible.WrongKey as error:
        told = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
        assert "SealKey, passphrase" in told
        assert "planted secret" not in told.split("seal = ", 1)[1] + str(error)
    else:
        raise AssertionError("it was opened by a wrong key")


def test_the_name_of_an_object_is_sealed_with_it(open_pool: Open, seal: SealKey) -> None:
    pool = open_pool()
    array = pool.array("a", (10,), "u8", seal=seal)
    array[:] = 7
    array.psync()
    del array
    with pytest.raises(indelible.Sealed, match="its name is sealed with it"):
        pool.rename("a", "b")
    pool.rename("a", "b", seal=seal)
    assert pool.array("b", mode="r", seal=seal)[0] == 7
    pool.create_from("b", "copy")
    with pytest.raises(indelible.Sealed, match="it was sealed under another name"):
        pool.array("copy", mode="r", seal=seal)
    assert pool.array("copy", mode="r", seal=seal.sealed_as("b"))[0] == 7
    pool.bind_name("copy", seal=seal.sealed_as("b"))
    assert pool.array("copy", mode="r", seal=seal)[0] == 7
    array = pool.array("a", (10,), "u8", seal=seal)
    array[:] = 1
    array.psync()
    del array
    # Begun anew: made under another name, and renamed.
    assert pool.array("a", (20,), "u8", mode="w+", seal=seal).tolist() == [0] * 20


def test_a_changed_page_is_an_error_that_names_it(
    tmp_path: Path, seal: SealKey, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.pmo"
    with indelible.open(path, 4 * MIB, medium="file") as pool:
        array = pool.array("array", (10_000,), "u8", seal=seal)
        array[:] = 7
    del array
    capfd.readouterr()
    assert _indelible.pmo(["pmo", "stat", str(path), "array", "--json"]) == 0
    at = json.loads(capfd.readouterr().out)["offset"] + (2 + 9) * 4096 + 100
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    with indelible.open(path) as pool, pytest.raises(indelible.Damaged, match="page 9, of its contents") as damaged:
        pool.array("array", seal=seal)
    assert damaged.value.object == "array"


WRITER = """
import sys
import indelible
pool = indelible.open("p.pmo")
seal = indelible.SealKey.file("k")
array, run = pool.array("array", seal=seal), pool.dict("run", seal=seal)
for line in sys.stdin:
    array[:] = int(line)
    run["step"] = int(line)
    indelible.psync(array, run)
    print(line.strip(), flush=True)
"""


def test_sealed_objects_are_read_beside_the_process_that_writes_them(tmp_path: Path, seal: SealKey) -> None:
    with indelible.open(tmp_path / "p.pmo", 16 * MIB) as pool:
        pool.array("array", (50_000,), "u4", seal=seal)
        pool.dict("run", seal=seal).close()
    (tmp_path / "k").write_bytes(KEY)
    writer = subprocess.Popen(
        python(WRITER), cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert writer.stdin is not None and writer.stdout is not None

    def write(step: int) -> None:
        assert writer.stdin is not None and writer.stdout is not None
        writer.stdin.write(f"{step}\n")
        assert writer.stdout.readline() == f"{step}\n"

    write(1)
    with indelible.open(tmp_path / "p.pmo") as pool:
        array, run = pool.array("array", mode="r", seal=seal), pool.dict("run", "r", seal=seal)
        assert array[0] == array[-1] == 1 and run["step"] == 1
        write(2)
        assert array[0] == array[-1] == 1 and run["step"] == 1
        newer = array.refresh()
        run.refresh()
        assert newer[0] == newer[-1] == 2 and array[0] == 1 and run["step"] == 2
        assert [slot.kind for slot in pool.key_slots("array")] == ["key file"]
        run.close()
        with pytest.raises(indelible.WrongKey):
            pool.dict("run", "r", seal=SealKey.bytes(bytes(32)))
        with pytest.raises(indelible.Held):
            pool.array("array", mode="r", lock=True, seal=seal)
        del array, newer
    writer.stdin.close()
    assert writer.wait(300) == 0


def test_objects_get_other_sizes_and_keys_of_their_own(open_pool: Open, seal: SealKey) -> None:
    pool = open_pool()
    other = SealKey.bytes(bytes(range(32)))
    pool.create("ledger", 10_000, seal=seal)
    pool.create("plain", 10_000)
    pool.resize("ledger", 20_000, seal=seal)
    pool.resize("plain", 20_000)
    assert pool.stat("ledger").size == pool.stat("plain").size == 20_000
    with pytest.raises(indelible.Sealed, match="sealed"):
        pool.resize("ledger", 5)
    with pytest.raises(indelible.WrongKey):
        pool.resize("ledger", 5, seal=other)
    pool.add_key("ledger", other, seal=seal)
    pool.reencrypt("ledger", [seal])
    with pytest.raises(indelible.WrongKey):
        pool.attach("ledger", seal=other)
    with pytest.raises(indelible.Sealed, match="at least one key"):
        pool.reencrypt("ledger", [])
    pool.attach("ledger", seal=seal).close()


def test_an_erasable_object_has_one_key_file(open_pool: Open, seal: SealKey) -> None:
    pool = open_pool()
    other = SealKey.bytes(bytes(range(32)))
    pool.create("patient", 10_000, seal=seal.erasable())
    with pytest.raises(indelible.Sealed, match="one key slot"):
        pool.add_key("patient", other, seal=seal)
    with pytest.raises(indelible.WrongKey):
        pool.renew_key("patient", seal, seal=other)
    pool.renew_key("patient", other, seal=seal)
    with pytest.raises(indelible.WrongKey):
        pool.attach("patient", seal=seal)
    pool.attach("patient", seal=other).close()
    with pytest.raises(indelible.Sealed, match="can be destroyed"):
        SealKey.passphrase("correct horse").erasable()


def test_a_key_is_for_a_time(open_pool: Open, seal: SealKey) -> None:
    pool = open_pool()
    pool.create("ledger", 10_000, seal=seal, label="owner")
    other = SealKey.bytes(bytes(range(32)))
    past = datetime.datetime(2001, 9, 9, tzinfo=datetime.timezone.utc)
    assert repr(other.until(past)) == repr(other)
    pool.add_key("ledger", other.until(past), seal=seal, label="intern")
    with pytest.raises(indelible.Sealed, match='"intern", which the seal key opens, expired at 2001-09-09'):
        pool.attach("ledger", seal=other)
    assert [slot.expires for slot in pool.key_slots("ledger")] == [None, int(past.timestamp())]
    pool.add_key("ledger", other.until(1e12), seal=seal)
    pool.attach("ledger", seal=other).close()
    with pytest.raises(indelible.Sealed, match="last one that does not expire"):
        pool.remove_key("ledger", 0, seal=other)
    with pytest.raises(indelible.Sealed, match="does not expire"):
        pool.create("x", 10_000, seal=seal.until(1e12))
    for wrong in (-1, float("nan"), datetime.datetime(2001, 9, 9)):
        with pytest.raises(ValueError, match="expires"):
            seal.until(wrong)


def test_an_older_state_is_told_from_the_newest_by_an_anchor(tmp_path: Path, seal: SealKey) -> None:
    record, kept, path = tmp_path / "record", tmp_path / "kept", tmp_path / "p.pmo"
    command = f"read -r what record; case $what in get) cat '{kept}' || true ;; put) echo \"$record\" >'{kept}'; echo stored ;; esac"
    for anchored in (seal.anchored(record, interval=5), seal.anchored(command=command, timeout=100)):
        path.unlink(missing_ok=True)
        with indelible.open(path, 4 * MIB) as pool:
            run = pool.dict("run", seal=anchored)
            run["step"] = 1
            run.psync()
            run.close()
            with pytest.raises(indelible.Sealed, match="it has an anchor"):
                pool.attach("run", seal=seal)
        older = path.read_bytes()
        with indelible.open(path) as pool:
            run = pool.dict("run", seal=anchored)
            run["step"] = 2
            run.psync()
            run.close()
        path.write_bytes(older)
        with indelible.open(path) as pool:
            with pytest.raises(indelible.PoolBehind, match="put back to an older state"):
                pool.dict("run", seal=anchored)
            pool.set_anchor("run", seal=anchored)
            run = pool.dict("run", seal=anchored)
            assert run["step"] == 1
            run.close()
            pool.set_anchor("run", seal=seal)
            pool.attach("run", seal=seal).close()
    for wrong in ({}, {"file": record, "command": command}, {"tpm_index": 7}, {"file": record, "tpm": "/dev/x"}):
        with pytest.raises(ValueError, match="an anchor is a file"):
            seal.anchored(**wrong)
    with indelible.open(path) as pool, pytest.raises(indelible.Error, match="/nowhere/tpm"):
        pool.set_anchor("run", seal=seal.anchored(record, tpm_index=0x01800042, tpm="/nowhere/tpm"))


def test_a_signed_object_is_read_by_all_and_stored_to_by_its_sign_key(
    open_pool: Open, seal: SealKey, tmp_path: Path
) -> None:
    writer, other = tmp_path / "writer", tmp_path / "other"
    writer.write_bytes(bytes(range(32)))
    other.write_bytes(bytes(range(1, 33)))
    signs, verifies = seal.signed_by(writer), seal.verified_by(indelible.verify_key(writer))
    assert len(indelible.verify_key(writer)) == 64
    with open_pool() as pool:
        run = pool.dict("run", seal=signs)
        run["step"] = 1
        run.psync()
        run.close()
        with pytest.raises(indelible.Sealed, match="give its sign key"):
            pool.dict("run", seal=verifies)
        with pytest.raises(indelible.Sealed, match="the key that verifies"):
            pool.attach("run", "r", seal=seal)
        run = pool.dict("run", "r", seal=verifies)
        assert run["step"] == 1
        run.close()
        pool.change_signer("run", other, seal=signs)
        with pytest.raises(indelible.Damaged, match="its signature is not of the key"):
            pool.dict("run", "r", seal=verifies)
        pool.dict("run", "r", seal=seal.verified_by(indelible.verify_key(other))).close()
    with pytest.raises(FileNotFoundError):
        indelible.verify_key(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        seal.signed_by(tmp_path / "none")
    with pytest.raises(indelible.Sealed, match="64 hexadecimal digits"):
        seal.verified_by("12")
    with pytest.raises(indelible.Sealed, match="is the seal key"):
        SealKey.file(writer).signed_by(writer)
