//! Sources of seal keys: files, commands, a TPM (S3.6), which swtpm emulates where installed.

use super::support::{Ground, World, seal_key as file};
use indelible::{CreateOptions, ErrorKind, Pool, SealKey, TpmAnchor, Tracking};
use indelible_testing::EmulatedTpm;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(100);

fn start(state: &Path) -> Option<EmulatedTpm> {
    EmulatedTpm::start(state, "keys that a TPM keeps")
}

fn of(emulator: &EmulatedTpm) -> SealKey {
    SealKey::tpm(Some(emulator.socket())).unwrap()
}

fn kind<T>(result: indelible::Result<T>) -> (ErrorKind, String) {
    let error = result.err().expect("an error");
    (error.kind(), error.to_string())
}

fn made(world: &World) -> Pool {
    let pool = world.format();
    pool.create_with("a", &CreateOptions::new(9000).sealed(&file(), "file")).unwrap();
    let mut a = pool.attach_sealed("a", b"", &file()).unwrap();
    a.range_mut(0..7).copy_from_slice(b"planted");
    a.psync().unwrap();
    a.detach().unwrap();
    pool
}

#[test]
fn a_tpm_opens_the_slots_that_it_made_until_it_is_reset() {
    let state = tempfile::tempdir().unwrap();
    let world = World::new(Ground::File, Tracking::Auto, false);
    let pool = made(&world);
    let Some(emulator) = start(state.path()) else { return };
    let slot = pool.add_key("a", b"", &file(), &of(&emulator), "this machine").unwrap();
    let slots = pool.key_slots("a", b"").unwrap();
    assert_eq!(
        (slots.len(), slots[1].kind_word(), slots[1].label.as_str()),
        (2, "TPM".into(), "this machine")
    );
    drop(emulator);

    let emulator = start(state.path()).unwrap();
    let mut a = pool.attach_sealed("a", b"", &of(&emulator)).unwrap();
    assert_eq!(&a.as_slice()[..7], b"planted");
    a.range_mut(0..7).copy_from_slice(b"changed");
    a.psync().unwrap();
    a.detach().unwrap();
    drop(emulator);

    let (found, text) = kind(SealKey::tpm(Some(&state.path().join("socket"))));
    assert!(
        found == ErrorKind::Sealed && text.contains("cannot be opened") && text.contains("TPM 2.0"),
        "{text}"
    );
    assert_eq!(&pool.attach_read_sealed("a", b"", &file()).unwrap().as_slice()[..7], b"changed");

    let other = tempfile::tempdir().unwrap();
    let emulator = start(other.path()).unwrap();
    let (found, text) = kind(pool.attach_sealed("a", b"", &of(&emulator)));
    assert!(found == ErrorKind::Sealed && text.contains("did not make this blob"), "{text}");
    let second = pool.add_key("a", b"", &file(), &of(&emulator), "the other machine").unwrap();
    pool.attach_sealed("a", b"", &of(&emulator)).unwrap().detach().unwrap();
    pool.remove_key("a", b"", &of(&emulator), slot).unwrap();
    pool.remove_key("a", b"", &of(&emulator), 0).unwrap();
    let (found, text) = kind(pool.remove_key("a", b"", &of(&emulator), second));
    assert!(found == ErrorKind::Sealed && text.contains("last one"), "{text}");
    assert_eq!(kind(pool.attach_sealed("a", b"", &file())).0, ErrorKind::WrongKey);
}

fn answered(tpm: &mut UnixStream, command: u32, handles: &[u32], password: &[u8], parameters: &[u8]) -> u32 {
    let handles: Vec<u8> = handles.iter().flat_map(|handle| handle.to_be_bytes()).collect();
    let session =
        [&0x4000_0009_u32.to_be_bytes()[..], &[0, 0, 0, 0, password.len() as u8], password].concat();
    let body = [&handles[..], &(session.len() as u32).to_be_bytes(), &session, parameters].concat();
    let length = (10 + body.len() as u32).to_be_bytes();
    tpm.write_all(&[&0x8002_u16.to_be_bytes()[..], &length, &command.to_be_bytes(), &body].concat()).unwrap();
    let mut answer = [0; 4096];
    let got = tpm.read(&mut answer).unwrap();
    u32::from_be_bytes(answer[..got][6..10].try_into().unwrap())
}

fn locked(emulator: &EmulatedTpm) {
    const INDEX: u32 = 0x0180_0099;
    let mut tpm = UnixStream::connect(emulator.socket()).unwrap();
    let numbers = |all: &[u32]| all.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<u8>>();
    assert_eq!(answered(&mut tpm, 0x13a, &[0x4000_000a], b"", &numbers(&[1, 1000, 1000])), 0);
    let public =
        [&INDEX.to_be_bytes()[..], &[0, 0x0b], &(1_u32 << 18 | 1 << 2).to_be_bytes(), &[0, 0, 0, 8]].concat();
    let parameters = [&[0, 1, b'x', 0, public.len() as u8][..], &public].concat();
    assert_eq!(answered(&mut tpm, 0x12a, &[0x4000_0001], b"", &parameters), 0);
    let wrong = (0..10).map(|_| answered(&mut tpm, 0x14e, &[INDEX, INDEX], b"wrong", &[0, 8, 0, 0]));
    assert!(wrong.into_iter().any(|code| code == 0x921), "it is not locked");
}

#[test]
fn a_tpm_that_is_locked_opens_its_slots_and_counts() {
    let state = tempfile::tempdir().unwrap();
    let world = World::new(Ground::File, Tracking::Auto, false);
    let pool = made(&world);
    let Some(emulator) = start(state.path()) else { return };
    pool.add_key("a", b"", &file(), &of(&emulator), "this machine").unwrap();
    locked(&emulator);
    let anchor = TpmAnchor::new(state.path().join("record"), 0x0180_0042, Some(emulator.socket()));
    let key = of(&emulator).anchored(anchor);
    for _ in 0..2 {
        let a = pool.attach_sealed("a", b"", &key).unwrap();
        assert_eq!(&a.as_slice()[..7], b"planted");
        a.detach().unwrap();
    }
    pool.add_key("a", b"", &key, &of(&emulator), "again").unwrap();
}

#[test]
fn commands_give_keys_within_their_time() {
    let key = |command: &str| SealKey::command(command, LONG);
    let world = World::new(Ground::File, Tracking::Auto, false);
    let pool = made(&world);
    let path = world.path().with_extension("key");
    std::fs::write(&path, [0x5a; 32]).unwrap();
    let same = key(&format!("cat '{}'", path.display())).unwrap();
    pool.attach_sealed("a", b"", &same).unwrap().detach().unwrap();
    // The command's end counts, even if its outputs close late, early, or stay with others.
    pool.attach_read_sealed(
        "a",
        b"",
        &key(&format!("cat '{}'; exec 1>&- 2>&-; exit 0", path.display())).unwrap(),
    )
    .unwrap();
    for (command, words) in [
        ("echo planted; exit 7", "exit status: 7, and said nothing"),
        ("echo of the card >&2; exit 1", "said: of the card"),
        ("exec /no/such/program", "127"),
        ("exec 1>&- 2>&-; exit 9", "exit status: 9"),
    ] {
        let (found, text) = kind(key(command));
        assert!(found == ErrorKind::Sealed && text.contains(words), "{command}: {text}");
    }
    for command in ["exec sleep 1000", "exec 1>&- 2>&-; exec sleep 1000", "while true; do echo x >&2; done"] {
        let (found, text) = kind(SealKey::command(command, Duration::from_millis(30)));
        assert!(found == ErrorKind::Sealed && text.contains("no end after 0.03 s"), "{command}: {text}");
        assert!(text.len() < 5000, "{command}: {} bytes", text.len());
    }
    let (_, text) = kind(key("cat /dev/zero"));
    assert!(text.contains("at most 1 MiB"), "{text}");
    for timeout in [LONG, Duration::MAX] {
        let (_, text) = kind(SealKey::command("printf short", timeout));
        assert!(text.contains("at least 32 bytes"), "{text}");
    }
    std::fs::remove_file(path).unwrap();
}

// S3.6
#[test]
fn a_process_that_ignores_sigchld_takes_no_key_of_a_command_without_a_status() {
    let mut again = std::process::Command::new("env");
    again.arg("--ignore-signal=CHLD").arg(std::env::current_exe().unwrap());
    again.args(["--exact", "key_sources::ignoring", "--ignored"]).env("SIGCHLD_IGNORED", "1");
    let output = again.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn ignoring() {
    if std::env::var_os("SIGCHLD_IGNORED").is_none() {
        return;
    }
    for command in ["head -c 32 /dev/zero", "head -c 32 /dev/zero; exit 7", "exec 1>&- 2>&-; exit 0"] {
        let (found, text) = kind(SealKey::command(command, LONG));
        assert!(found == ErrorKind::Sealed && text.contains("ignores SIGCHLD"), "{command}: {text}");
    }
}

// S3.6
#[test]
fn files_give_keys_and_passphrases() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("phrase"), "correct horse\n").unwrap();
    std::fs::write(path("bytes"), [0xff; 40]).unwrap();
    let world = World::new(Ground::File, Tracking::Auto, false);
    let pool = made(&world);
    let phrase = SealKey::passphrase_from_file(path("phrase")).unwrap();
    pool.add_key("a", b"", &file(), &phrase, "").unwrap();
    let same = SealKey::passphrase("correct horse".into()).unwrap();
    pool.attach_read_sealed("a", b"", &same).unwrap();
    assert_eq!(format!("{phrase:?}"), "SealKey(passphrase)");
    let (found, text) = kind(SealKey::passphrase_from_file(path("bytes")));
    assert!(found == ErrorKind::Sealed && text.contains("not UTF-8"), "{text}");
    let (found, text) = kind(SealKey::from_file(path("none")));
    assert!(found == ErrorKind::Io && text.contains("none"), "{text}");
    assert_eq!(kind(SealKey::from_file(folder.path())).0, ErrorKind::Io);
    assert_eq!(kind(SealKey::from_file("/dev/zero")).0, ErrorKind::Sealed);
    for name in ["", ".", "..", "a/b"] {
        let (found, text) = kind(SealKey::credential(name));
        assert!(found == ErrorKind::Sealed && text.contains("name of a credential"), "{text}");
    }
    let new = SealKey::from_file(path("bytes")).unwrap();
    assert_eq!(pool.change_key("a", b"", &file(), &new, Some("renamed")).unwrap(), 0);
    assert_eq!(kind(pool.attach_sealed("a", b"", &file())).0, ErrorKind::WrongKey);
    assert_eq!(pool.key_slots("a", b"").unwrap()[0].label, "renamed");
    assert_eq!(&pool.attach_sealed("a", b"", &new).unwrap().as_slice()[..7], b"planted");
}
