//! Sealed objects (S3.1, S3.2, S3.5).

use crate::common::{PMO, Rig, Run, skipped};
use indelible::{CreateOptions, Heap, Pool, SealKey};
use indelible_store::format::seal::Shape;
use indelible_testing::EmulatedTpm;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

fn rig() -> Rig {
    let rig = Rig::new();
    std::fs::write(rig.path("k"), [0x5a; 32]).unwrap();
    std::fs::write(rig.path("wrong"), [1; 32]).unwrap();
    std::fs::write(rig.path("phrase"), "correct horse\n").unwrap();
    rig.pmo(["create"], ["ledger", "8K", "--sealed", "--seal-key-file", "k"]).fine();
    rig
}

#[test]
fn s3_01_bytes_go_into_a_sealed_object_and_come_back() {
    let rig = rig();
    let run = rig.feed("put", ["ledger", "--seal-key-file", "k"], b"planted plaintext").fine();
    assert!(run.out.contains("17 bytes") || run.out.contains("17 B"), "{run:?}");
    let run = rig.pmo(["cat"], ["ledger", "--length", "17", "--seal-key-file", "k"]).fine();
    assert_eq!(run.out, "planted plaintext");
    let bytes = std::fs::read(&rig.pool).unwrap();
    assert!(!bytes.windows(12).any(|window| window == b"planted plai"));
    let mut command = Command::new(PMO);
    command.current_dir(rig.dir.path()).env("PMO_SEAL_KEY_FILE", "k");
    let run =
        Run::of(command.arg("cat").arg(&rig.pool).args(["ledger", "--offset", "8", "--length", "9"]), b"");
    assert_eq!(run.fine().out, "plaintext");
    rig.feed("put", ["plain", "--create"], b"open").fine();
    assert_eq!(rig.pmo(["cat"], ["plain"]).fine().out, "open");
    let json = rig.pmo(["stat"], ["ledger", "--json"]).fine().json();
    assert_eq!((&json["sealed"], &json["size"]), (&true.into(), &8192.into()));
    assert!(rig.pmo(["stat"], ["ledger"]).fine().out.contains("sealed"));
    assert_eq!(rig.line("ledger"), "D - 8 KiB ledger");
    rig.pmo(["check"], [""; 0]).fine();
}

#[test]
fn s3_05_without_the_key_the_tool_reads_nothing() {
    let rig = rig();
    rig.pmo(["cat"], ["ledger"]).fails(6, "it is sealed");
    rig.pmo(["cat"], ["ledger", "--seal-key-file", "wrong"]).fails(6, "opens none of its 1 key slots");
    rig.feed("put", ["ledger", "--seal-key-file", "wrong"], b"x").fails(6, "opens none");
    rig.feed("put", ["ledger"], b"x").fails(6, "it is sealed");
    rig.pmo(["cat"], ["ledger", "--seal-key-file", "absent"]).fails(5, "absent");
    rig.pmo(["create"], ["other", "8K", "--sealed"]).fails(2, "no seal key is given");
    std::fs::write(rig.path("short"), "short").unwrap();
    rig.pmo(["create"], ["other", "8K", "--sealed", "--seal-key-file", "short"])
        .fails(6, "at least 32 bytes");
    rig.pmo(["resize"], ["ledger", "16K"]).fails(2, "no seal key is given");
    rig.feed("put", ["ledger", "--seal-key-file", "k"], b"planted").fine();
    let json = rig.pmo(["stat"], ["ledger", "--json"]).fine().json();
    let mut bytes = std::fs::read(&rig.pool).unwrap();
    bytes[json["offset"].as_u64().unwrap() as usize + 2 * 4096 + 2000] ^= 4;
    std::fs::write(&rig.pool, bytes).unwrap();
    let run = rig.pmo(["cat"], ["ledger", "--seal-key-file", "k"]).fails(3, "page 0, of its contents");
    assert!(run.err.contains("\"ledger\"") && run.raw.is_empty(), "{run:?}");
}

#[test]
fn s3_03_a_damaged_page_of_a_large_object_is_named_where_it_is_read() {
    let rig = rig();
    rig.pmo(["create"], ["large", "1M", "--sealed", "--seal-key-file", "k"]).fine();
    let bytes: Vec<u8> = (0..1 << 20_u32).map(|at| (at / 4096 + 1) as u8).collect();
    let key = ["large", "--seal-key-file", "k"];
    rig.feed("put", key, &bytes).fine();
    assert!(rig.pmo(["cat"], key).fine().raw == bytes);
    let json = rig.pmo(["stat"], ["large", "--json"]).fine().json();
    let at = json["offset"].as_u64().unwrap() + Shape::of(256).unwrap().content_page(200) * 4096;
    let mut pool = std::fs::read(&rig.pool).unwrap();
    pool[at as usize + 2000] ^= 4;
    std::fs::write(&rig.pool, pool).unwrap();
    for run in [rig.pmo(["cat"], key), rig.feed("put", key, &bytes)] {
        let run = run.fails(3, "page 200, of its contents");
        assert!(run.err.contains("\"large\""), "{run:?}");
    }
    let some = ["large", "--seal-key-file", "k", "--length", "700K"];
    assert!(rig.pmo(["cat"], some).fine().raw == bytes[..700 << 10]);
}

#[test]
fn s3_02_keys_are_listed_added_and_removed() {
    let rig = rig();
    let list = || rig.pmo(["key", "list"], ["ledger", "--json"]).fine().json();
    assert_eq!((list().as_array().unwrap().len(), &list()[0]["kind"]), (1, &"key file".into()));
    let new = ["ledger", "--seal-key-file", "k", "--new-passphrase-file", "phrase", "--label", "alice"];
    assert_eq!(rig.pmo(["key", "add"], new).fine().out, "key slot 1 of object \"ledger\" is in use now\n");
    assert!(rig.pmo(["key", "list"], ["ledger"]).fine().out.contains("alice"));
    rig.pmo(["key", "remove"], ["ledger", "0", "--seal-passphrase-file", "phrase"]).fine();
    assert_eq!(list()[0]["label"], "alice");
    rig.pmo(["key", "remove"], ["ledger", "1", "--seal-passphrase-file", "phrase"]).fails(6, "last one");
    rig.pmo(["cat"], ["ledger", "--seal-key-file", "k"]).fails(6, "opens none");
    rig.pmo(["cat"], ["ledger", "--seal-passphrase-file", "phrase"]).fine();
    rig.pmo(["key", "add"], ["ledger", "--seal-passphrase-file", "phrase"]).fails(2, "no new key is given");
    let by = ["ledger", "--seal-passphrase-file", "phrase"];
    let dear = [&by[..], &["--new-passphrase-file", "dear", "--new-passphrase-cost", "257M,1"]].concat();
    std::fs::write(rig.path("dear"), "battery staple\n").unwrap();
    rig.pmo(["key", "add"], dear).fine();
    let cat = ["ledger", "--seal-passphrase-file", "dear"];
    rig.pmo(["cat"], cat).fails(6, "give that cost with the passphrase");
    rig.pmo(["cat"], [&cat[..], &["--seal-passphrase-cost", "257M,1"]].concat()).fine();
    rig.pmo(["cat"], [&cat[..], &["--seal-passphrase-cost", "257M"]].concat()).fails(2, "such as 256M,4");
    rig.pmo(["create"], ["plain", "8K"]).fine();
    rig.pmo(["key", "list"], ["plain"]).fails(6, "not sealed");
}

/// docs/cookbook/sealed.md.
#[test]
fn s3_06_the_page_of_the_cookbook_is_true_in_the_shell() {
    let commands = crate::common::run_page(include_str!("../../../docs/cookbook/sealed.md"));
    assert!(commands > 15, "{commands}");
}

fn on_a_terminal(rig: &Rig, arguments: &str, dialogue: &[(&str, &str)]) -> Option<(String, i32)> {
    let command = format!("{PMO} {arguments}");
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).current_dir(rig.dir.path());
    let mut script = match script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
        Ok(script) => script,
        Err(error) => {
            skipped(&format!("passphrases on a terminal: no program script: {error}"));
            return None;
        }
    };
    let (mut keyboard, mut screen) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
    let (mut shown, mut byte) = (Vec::new(), [0]);
    for (prompt, line) in dialogue {
        let from = shown.len();
        while !String::from_utf8_lossy(&shown[from..]).contains(prompt) {
            assert_eq!(
                screen.read(&mut byte).unwrap(),
                1,
                "no {prompt:?}: {}",
                String::from_utf8_lossy(&shown)
            );
            shown.push(byte[0]);
        }
        keyboard.write_all(line.as_bytes()).unwrap();
    }
    screen.read_to_end(&mut shown).unwrap();
    drop(keyboard);
    let code = script.wait().unwrap().code().unwrap();
    Some((String::from_utf8(shown).unwrap(), code))
}

#[test]
fn s3_06_passphrases_are_asked_for_and_never_shown() {
    let rig = rig();
    let pool = rig.pool.display();
    let both = [("New passphrase: ", "battery staple\n"), ("again: ", "battery staple\n")];
    let create = format!("create {pool} diary 8K --sealed --seal-passphrase");
    let Some((shown, code)) = on_a_terminal(&rig, &create, &both) else { return };
    assert!(code == 0 && shown.contains("created") && !shown.contains("staple"), "{code} {shown}");
    let right = [("Passphrase: ", "no\u{15}battery stapl\u{e4}\u{7f}e\n")];
    let cat = format!("cat {pool} diary --length 1 --seal-passphrase; stty -a");
    let (shown, code) = on_a_terminal(&rig, &cat, &right).unwrap();
    assert!(code == 0 && shown.contains(" echo ") && shown.contains(" icanon"), "{code} {shown}");
    let cat = format!("cat {pool} diary --seal-passphrase");
    let (shown, code) = on_a_terminal(&rig, &cat, &[("Passphrase: ", "battery\n")]).unwrap();
    assert!(code == 6 && shown.contains("opens none") && !shown.contains("battery"), "{code} {shown}");
    let (shown, code) = on_a_terminal(&rig, &cat, &[("Passphrase: ", "batt\u{3}")]).unwrap();
    assert!(code == 1 && shown.contains("interrupted") && !shown.contains("batt"), "{code} {shown}");
    let differ = [("New passphrase: ", "one\n"), ("again: ", "two\n")];
    let create = format!("create {pool} other 8K --sealed --seal-passphrase");
    let (shown, code) = on_a_terminal(&rig, &create, &differ).unwrap();
    assert!(code == 2 && shown.contains("differ"), "{code} {shown}");
    rig.pmo(["stat"], ["other"]).fails(5, "other");
    let change = format!("key change {pool} diary --seal-passphrase --new-key-file k");
    let (shown, code) = on_a_terminal(&rig, &change, &[("Passphrase: ", "battery staple\n")]).unwrap();
    assert!(code == 0 && shown.contains("key slot 0"), "{code} {shown}");
    rig.pmo(["cat"], ["diary", "--seal-key-file", "k"]).fine();
    let (shown, code) = on_a_terminal(&rig, &cat, &[("Passphrase: ", "battery staple\n")]).unwrap();
    assert!(code == 6 && shown.contains("opens none"), "{code} {shown}");
    rig.feed("put", ["plain", "--create"], b"open").fine();
    let cat = format!("cat {pool} plain --seal-passphrase --quiet");
    let (shown, code) = on_a_terminal(&rig, &cat, &[("Passphrase: ", "battery staple\n")]).unwrap();
    assert!(code == 6 && shown.contains("not sealed"), "{code} {shown}");
}

#[test]
fn s3_06_without_a_terminal_a_passphrase_is_an_error() {
    let rig = rig();
    let run = Run::of(
        Command::new("setsid")
            .arg("--wait")
            .arg(PMO)
            .arg("cat")
            .arg(&rig.pool)
            .args(["ledger", "--seal-passphrase"]),
        b"",
    );
    let run = run.fails(2, "no terminal");
    assert!(run.err.contains("--seal-passphrase-file"), "{run:?}");
}

#[test]
fn s3_06_keys_come_from_commands_and_credentials() {
    let rig = rig();
    let by = |option: &'static str, value: &'static str| {
        rig.pmo(["cat"], ["ledger", "--length", "1", option, value])
    };
    by("--seal-key-command", "cat k").fine();
    by("--seal-key-command", "cat wrong").fails(6, "opens none");
    let run = by("--seal-key-command", "echo planted; echo the card is missing >&2; exit 3 # key")
        .fails(6, "exit status: 3");
    assert!(run.err.contains("the card is missing") && !run.err.contains("said: planted"), "{run:?}");
    by("--seal-key-command", "true").fails(6, "at least 32 bytes");
    by("--seal-key-command", "cat /dev/zero").fails(6, "at most 1 MiB");
    by("--seal-key-command", "kill -9 $$").fails(6, "signal: 9");
    by("--seal-credential", "k").fails(6, "CREDENTIALS_DIRECTORY is not set");
    by("--seal-credential", "../k").fails(6, "name of a credential");
    rig.pmo(["cat"], ["ledger", "--seal-tpm=none"]).fails(6, "the TPM at none cannot be opened");
    rig.pmo(["key", "add"], ["ledger", "--seal-key-file", "k", "--new-tpm=none"])
        .fails(6, "cannot be opened");
    let with = |variable: &str, value: &std::ffi::OsStr, arguments: &[&str]| {
        let mut command = Command::new(PMO);
        command.current_dir(rig.dir.path()).env(variable, value).args(arguments);
        Run::of(&mut command, b"")
    };
    let pool = rig.pool.to_str().unwrap();
    let folder = rig.dir.path().as_os_str();
    with("CREDENTIALS_DIRECTORY", folder, &["cat", pool, "ledger", "--seal-credential", "k"]).fine();
    with("CREDENTIALS_DIRECTORY", folder, &["cat", pool, "ledger", "--seal-credential", "none"])
        .fails(5, "none");
    with("PMO_SEAL_KEY_COMMAND", "cat k".as_ref(), &["cat", pool, "ledger"]).fine();
    by("--seal-key-file", "k").fine();
    let two = rig.pmo(["cat"], ["ledger", "--seal-key-file", "k", "--seal-key-command", "cat k"]);
    two.fails(2, "cannot be used with");
    let new =
        ["ledger", "--seal-key-file", "k", "--new-key-command", "cat wrong", "--label", "of the service"];
    rig.pmo(["key", "add"], new).fine();
    by("--seal-key-file", "wrong").fine();
}

#[test]
fn s3_06_every_command_that_reads_contents_takes_the_key() {
    let rig = rig();
    let key = || SealKey::from_file(rig.path("k")).unwrap();
    {
        let pool = Pool::open(&rig.pool).unwrap();
        pool.create_with("heap", &CreateOptions::new(1 << 20).sealed(&key(), "")).unwrap();
        let mut heap = Heap::open_or_format(pool.attach_sealed("heap", b"", &key()).unwrap()).unwrap();
        heap.root_or_default::<u64>("count").unwrap();
        heap.psync().unwrap();
    }
    let commands: [&[&str]; 7] = [
        &["heap", "roots"],
        &["heap", "check"],
        &["heap", "leaks"],
        &["heap", "audit"],
        &["types"],
        &["attach-check"],
        &["attach-check", "--write"],
    ];
    for words in commands {
        let run = |more: &[&str]| {
            let mut command = Command::new(PMO);
            let nested = if words[0] == "heap" { 2 } else { 1 };
            command.args(&words[..nested]).arg(&rig.pool).arg("heap").args(&words[nested..]).args(more);
            Run::of(command.current_dir(rig.dir.path()), b"")
        };
        let told = run(&[]).fails(6, "it is sealed");
        assert!(told.err.contains("--seal-key-file"), "{words:?}: {told:?}");
        run(&["--seal-key-file", "wrong"]).fails(6, "opens none");
        run(&["--seal-key-file", "k"]).fine();
    }
    let run = rig.pmo(["heap", "roots"], ["heap", "--seal-key-file", "k"]).fine();
    assert!(run.out.contains("count"), "{run:?}");
    let completions = crate::common::pmo(["completions", "bash"]).fine().out;
    for option in ["--seal-key-command", "--seal-passphrase", "--seal-credential", "--new-passphrase"] {
        assert!(completions.contains(option), "{option}");
    }
}

#[test]
fn s3_01_a_sealed_object_is_resized() {
    let rig = rig();
    rig.feed("put", ["ledger", "--seal-key-file", "k"], b"planted").fine();
    rig.pmo(["resize"], ["ledger", "1M", "--seal-key-file", "wrong"]).fails(6, "opens none");
    rig.pmo(["resize"], ["ledger", "1M", "--seal-key-file", "k"]).fine();
    assert_eq!(rig.line("ledger"), "D - 1 MiB ledger");
    rig.pmo(["resize"], ["ledger", "4", "--seal-key-file", "k"]).fails(2, "--shrink");
    rig.pmo(["resize"], ["ledger", "4", "--seal-key-file", "k", "--shrink"]).fine();
    assert_eq!(rig.pmo(["cat"], ["ledger", "--seal-key-file", "k"]).fine().out, "plan");
    rig.pmo(["check"], [""; 0]).fine();
}

#[test]
fn s3_02_an_object_gets_another_key() {
    let rig = rig();
    rig.feed("put", ["ledger", "--seal-key-file", "k"], b"planted").fine();
    let new = ["ledger", "--seal-key-file", "k", "--new-key-file", "wrong", "--label", "alice"];
    rig.pmo(["key", "add"], new).fine();
    let run = rig.pmo(["key", "rotate"], ["ledger", "--seal-key-file", "k"]);
    run.fails(2, "would lose the key slots 1 \"alice\"");
    rig.pmo(["key", "rotate"], ["ledger", "--seal-key-file", "k", "--keep-key-file", "wrong"]).fine();
    rig.pmo(["cat"], ["ledger", "--seal-key-file", "wrong"]).fine();
    let run = rig.pmo(["key", "rotate"], ["ledger", "--seal-key-file", "k", "--yes"]).fine();
    assert_eq!(run.out, "object \"ledger\" has a new key; key slots: 1 kept, 1 gone\n");
    rig.pmo(["cat"], ["ledger", "--seal-key-file", "wrong"]).fails(6, "opens none of its 1 key slots");
    assert!(rig.pmo(["cat"], ["ledger", "--seal-key-file", "k"]).fine().out.starts_with("planted"));
}

#[test]
fn s3_05_an_older_state_is_refused_by_the_anchor() {
    let rig = rig();
    let with = ["ledger", "--seal-key-file", "k", "--anchor", "anchor"];
    rig.feed("put", with, b"older").fine();
    rig.pmo(["cat"], ["ledger", "--seal-key-file", "k"]).fails(6, "it has an anchor");
    let older = std::fs::read(&rig.pool).unwrap();
    rig.feed("put", with, b"newer").fine();
    std::fs::write(&rig.pool, older).unwrap();
    rig.pmo(["cat"], with).fails(3, "was put back to an older state");
    rig.feed("put", with, b"x").fails(3, "was put back to an older state");
    rig.pmo(["key", "anchor"], ["ledger", "--seal-key-file", "k"]).fails(2, "--none");
    rig.pmo(["key", "anchor"], with).fine();
    assert!(rig.pmo(["cat"], with).fine().out.starts_with("older"));
    rig.pmo(["key", "anchor"], ["ledger", "--seal-key-file", "k", "--none"]).fine();
    rig.pmo(["cat"], ["ledger", "--seal-key-file", "k"]).fine();
}

const KEEPER: &str = "command:read -r what record; case $what in get) cat kept || true ;; put) echo \"$record\" >kept; echo stored ;; esac";

#[test]
fn s3_05_anchors_are_files_commands_and_counters_of_a_tpm() {
    let state = tempfile::tempdir().unwrap();
    let tpm = EmulatedTpm::start(state.path(), "anchors in a TPM, by the tool");
    let counted = tpm.as_ref().map(|tpm| format!("tpm:0x1800042@{}:counted", tpm.socket().display()));
    for anchor in ["./tpm:1", KEEPER].into_iter().chain(counted.as_deref()) {
        let rig = rig();
        let with = ["ledger", "--seal-key-file", "k", "--anchor", anchor];
        rig.feed("put", with, b"older").fine();
        let older = std::fs::read(&rig.pool).unwrap();
        rig.feed("put", with, b"newer").fine();
        std::fs::write(&rig.pool, older).unwrap();
        rig.pmo(["cat"], with).fails(3, "was put back to an older state");
        let run = rig.pmo(["key", "anchor"], with).fine();
        assert!(run.out.contains(anchor), "{run:?}");
        assert!(rig.pmo(["cat"], with).fine().out.starts_with("older"));
    }
    let rig = rig();
    for bad in ["tpm:", "tpm:7:x", "tpm:0x1800042", "tpm:0x1800042:"] {
        let run = rig.feed("put", ["ledger", "--seal-key-file", "k", "--anchor", bad], b"x");
        run.fails(2, "names no anchor");
    }
    let absent = ["ledger", "--seal-key-file", "k", "--anchor", "tpm:0x1800042@/nowhere/tpm:x"];
    rig.feed("put", absent, b"x").fails(1, "the TPM at /nowhere/tpm cannot be used");
    let silent = ["ledger", "--seal-key-file", "k", "--anchor", "command:true"];
    rig.feed("put", silent, b"x").fails(1, "did not answer \"stored\"");
}

#[test]
fn s3_06_keys_expire_and_are_listed_beside_a_writer() {
    let rig = rig();
    let add = |expires| {
        let new = ["--seal-key-file", "k", "--new-key-file", "wrong", "--expires", expires];
        rig.pmo(["key", "add"], [&["ledger", "--label", "guest"][..], &new].concat())
    };
    for bad in ["30", "x", "0d", "30y"] {
        add(bad).fails(2, "12h, 30d or 52w");
    }
    add("30d").fine();
    rig.pmo(["cat"], ["ledger", "--seal-key-file", "wrong"]).fine();
    rig.pmo(["key", "remove"], ["ledger", "0", "--seal-key-file", "wrong"])
        .fails(6, "last one that does not expire");
    let pool = Pool::open(&rig.pool).unwrap();
    let key = SealKey::from_file(rig.path("k")).unwrap();
    let ledger = pool.attach_sealed("ledger", b"", &key).unwrap();
    let json = rig.pmo(["key", "list"], ["ledger", "--json"]).fine().json();
    assert_eq!((&json[0]["expires"], &json[0]["expired"]), (&serde_json::Value::Null, &false.into()));
    assert!(json[1]["expires"].as_str().unwrap().ends_with('Z') && json[1]["expired"] == false, "{json}");
    ledger.detach().unwrap();
    let phrase = SealKey::passphrase("correct horse".into()).unwrap().until(std::time::UNIX_EPOCH);
    pool.add_key("ledger", b"", &key, &phrase, "intern").unwrap();
    drop(pool);
    let run = rig.pmo(["cat"], ["ledger", "--seal-passphrase-file", "phrase"]);
    run.fails(6, "labelled \"intern\", which the seal key opens, expired at 1970-01-01");
    let run = rig.pmo(["key", "list"], ["ledger"]).fine();
    assert!(run.out.contains("EXPIRES") && run.out.contains("intern (expired)"), "{run:?}");
}

#[test]
fn s3_01_seals_are_checked_page_by_page() {
    let rig = rig();
    rig.feed("put", ["ledger", "--seal-key-file", "k"], &[7; 8192]).fine();
    rig.pmo(["snapshot"], ["ledger", "--as", "monday"]).fine();
    rig.feed("put", ["ledger", "--seal-key-file", "k"], b"later").fine();
    rig.pmo(["check"], ["--seals", "--seal-key-file", "k"]).fine();
    rig.pmo(["check"], ["--seals"]).fails(2, "no seal key is given");
    rig.pmo(["check"], ["--seals", "--seal-key-file", "wrong"]).fails(6, "opens no object");
    rig.pmo(["create"], ["other", "8K", "--sealed", "--seal-key-file", "wrong"]).fine();
    let run = rig.pmo(["check"], ["--seals", "--seal-key-file", "wrong"]).fine();
    assert!(run.out.contains("object \"ledger\" is sealed by another key: it was not verified"), "{run:?}");
    rig.pmo(["rm"], ["other"]).fine();
    let json = rig.pmo(["check"], ["--seals", "--seal-key-file", "k", "--json"]).fine().json();
    assert_eq!((json["seals"].as_array().unwrap().len(), &json["seals"][0]["opened"]), (2, &true.into()));
    let offset = rig.pmo(["stat"], ["monday", "--json"]).fine().json()["offset"].as_u64().unwrap() as usize;
    let mut bytes = std::fs::read(&rig.pool).unwrap();
    for page in [0, 1] {
        bytes[offset + 4096 * (2 + page) + 2000] ^= 4;
    }
    std::fs::write(&rig.pool, bytes).unwrap();
    rig.pmo(["check"], [""; 0]).fine();
    let run = rig.pmo(["check"], ["--seals", "--seal-key-file", "k"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    let errors: Vec<&str> = run.out.lines().filter(|line| line.starts_with("error: ")).collect();
    let page = |name, page| {
        format!("error: object \"{name}\": page {page}, of its contents, is not what was sealed")
    };
    assert_eq!(errors, [page("ledger", 1), page("monday", 0), page("monday", 1)]);
    assert!(run.out.ends_with("3 problems found\n"), "{run:?}");
}

#[test]
fn s3_01_sealed_objects_are_kept_compared_copied_moved_and_backed_up_without_their_seal_key() {
    let rig = rig();
    let cat = |name| rig.pmo(["cat"], [name, "--length", "5", "--seal-key-file", "k"]).fine().out;
    rig.feed("put", ["ledger", "--seal-key-file", "k"], b"first").fine();
    rig.pmo(["snapshot"], ["ledger", "--as", "monday"]).fine();
    rig.feed("put", ["ledger", "--seal-key-file", "k"], b"later").fine();
    let json = rig.pmo(["diff"], ["monday", "ledger", "--json"]).fine().json();
    assert_eq!((&json["pages"], &json["roots"]), (&1.into(), &().into()));
    let monday = ["monday", "--length", "5", "--seal-key-file", "k", "--sealed-as", "ledger"];
    assert_eq!(rig.pmo(["cat"], monday).fine().out, "first");
    assert_eq!(cat("ledger"), "later");
    rig.pmo(["rollback"], ["ledger", "monday"]).fine();
    assert_eq!(cat("ledger"), "first");
    rig.pmo(["create"], ["plain", "8K"]).fine();
    rig.pmo(["diff"], ["plain", "ledger"]).fails(6, "it cannot be compared with \"plain\"");
    let folder = rig.path("b");
    assert_eq!(Run::of(rig.command(["backup"]).arg(&folder), b"").code, Some(0));
    let restored = rig.path("c.pmo");
    let run = Run::of(Command::new(PMO).arg("restore").args([&folder, &restored]), b"");
    assert_eq!(run.code, Some(0), "{run:?}");
    let mut command = Command::new(PMO);
    command.arg("cat").arg(&restored).args(["ledger", "--length", "5", "--seal-key-file"]).arg(rig.path("k"));
    assert_eq!(Run::of(&mut command, b"").fine().out, "first");
    rig.pmo(["cat"], ["ledger"]).fails(6, "it is sealed");
}
