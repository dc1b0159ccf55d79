//! Statics with locks: a forked child would find them held for ever (docs/decisions/0085).

use crate::sources::{shipped, sources};

const LOCKS: [&str; 6] = ["Mutex<", "RwLock<", "OnceLock<", "LazyLock<", "Condvar", "Once"];

/// Their locks are held for a store, or in tests alone.
const KNOWN: [&str; 5] = [
    // Set once, by a store.
    "crates/sqlite/src/extension.rs: EXEC",
    "crates/sqlite/src/extension.rs: SQL",
    "crates/sqlite/src/host.rs: HOST",
    "crates/store/src/seal/secret.rs: KEEPER",
    // Of tests.
    "crates/store/src/mutant/selected.rs: CHOSEN",
];

/// Names of statics with locks that are no value of each process.
fn shared_with_children(text: &str) -> Vec<&str> {
    let declared = text.split("static ").skip(1).filter_map(|rest| rest.split_once('=')?.0.split_once(':'));
    // No lifetime.
    let is_name =
        |name: &str| name.trim().chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let shared = |(name, kind): &(&str, &str)| {
        let kind = kind.trim();
        is_name(name) && !kind.starts_with("PerProcess<") && LOCKS.iter().any(|lock| kind.contains(lock))
    };
    declared.filter(shared).map(|(name, _)| name.trim()).collect()
}

#[test]
fn locks_are_of_one_process() {
    let mut found = Vec::new();
    for package in ["indelible", "posix", "sqlite", "stm", "store", "types"] {
        for (file, text) in sources(&format!("crates/{package}/src")) {
            let text = shipped(&text);
            // Tests have files of their own, too.
            if !file.ends_with("tests.rs") {
                found.extend(shared_with_children(&text).iter().map(|name| format!("{file}: {name}")));
            }
        }
    }
    let unknown: Vec<_> = found.iter().filter(|found| !KNOWN.contains(&found.as_str())).collect();
    assert!(unknown.is_empty(), "make each a PerProcess, or say why it needs to be none: {unknown:#?}");
}

#[test]
fn a_lock_that_a_child_inherits_would_be_noticed() {
    let text = "static A: Mutex<u8> = Mutex::new(0);\nstatic B: PerProcess<Mutex<u8>> = PerProcess::new();
        pub(super) static C:\n    std::sync::OnceLock<u8> = OnceLock::new(); static D: u8 = 7;";
    assert_eq!(shared_with_children(text), ["A", "C"]);
}
