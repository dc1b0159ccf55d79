//! Imports and dependencies point downwards.

use crate::sources::{root, shipped, sources};

/// Modules that a file names through `prefix`, `use` lists included.
fn imports(text: &str, prefix: &str) -> Vec<String> {
    let code = shipped(text);
    code.split(prefix)
        .skip(1)
        .filter(|rest| !rest.is_empty())
        .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
        .collect()
}

/// Modules bottom-up. A module may import earlier ones and itself; those of one group are siblings,
/// without mutual imports.
fn check_layers(folder: &str, prefix: &str, layers: &[&[&str]], everywhere: &[&str]) -> Vec<String> {
    let level = |module: &str| layers.iter().position(|group| group.contains(&module));
    let mut wrong = Vec::new();
    for (file, text) in sources(folder) {
        let inner = &file[folder.len() + 1..];
        let module = inner.split('/').next().unwrap_or("").trim_end_matches(".rs");
        if ["lib", "mod"].contains(&module) {
            continue;
        }
        if everywhere.contains(&module) {
            continue;
        }
        let Some(own) = level(module) else {
            wrong.push(format!("{file}: module {module} has no place among the layers"));
            continue;
        };
        for import in imports(&text, prefix) {
            if import == module || everywhere.contains(&import.as_str()) {
                continue;
            }
            match level(&import) {
                Some(other) if other < own => {}
                Some(_) => {
                    wrong.push(format!("{file}: {module} imports {import}, which stands beside or above it"))
                }
                None => {}
            }
        }
    }
    wrong
}

const STORE: &[&[&str]] = &[
    &["format", "sync", "slices"],
    &["seal", "company"],
    &["medium"],
    &["space"],
    &["lane"],
    &["table"],
    &["commit"],
    &["recovery"],
    &["store"],
];

const ROOMS: &[&[&str]] = &[
    &["locks"],
    &["publication"],
    &["access"],
    &["lanes"],
    &["pool"],
    &["attachment"],
    &["transactions"],
    &["operations"],
    &["check"],
    &["repair"],
    &["upgrade"],
];

const TYPES: &[&[&str]] = &[&["entries", "plain", "types"], &["relative", "far"]];

const MAPPED: &[&[&str]] = &[
    &["sys"],
    &["media"],
    &["mapping", "protection"],
    &["backing", "dirty", "fault"],
    &["memory", "shadow"],
    &["pool"],
    &["object"],
    &["heap"],
    &["transaction", "shared", "security", "contents"],
    &["collections", "raw", "doctor", "maintenance"],
    &["retention", "space", "view", "log"],
];

/// The transactional memory, whose modules name each other by `super` for the models.
const STM: &[&[&str]] = &[
    &["sync", "mutant", "error", "word"],
    &["clock", "stripes", "memory", "gate", "contention", "actions", "ecc"],
    &["write_set"],
    &["sink", "pairs"],
    &["stm"],
    &["descriptor"],
    &["access"],
    &["commit"],
    &["transaction"],
    &["thread"],
];

const GUARD: &[&[&str]] = &[
    &["budget", "condition", "error", "kernel", "notify", "places", "protocol", "report"],
    &["process"],
    &["client", "note", "socket", "writer"],
    &["connection", "events", "round"],
    &["detector", "recoveries"],
    &["state"],
    &["guard"],
];

const BACKUP: &[&[&str]] = &[
    &["format", "workers"],
    &["encode", "decode"],
    &["chain"],
    &["interrupted", "part", "partial", "source"],
    &["index_file"],
    &["index"],
    &["backup"],
    &["folder"],
    &["restore"],
    &["clone", "transfer"],
];

const SQLITE: &[&[&str]] = &[
    &["abi", "failure", "partial", "undo"],
    &["header", "host", "lease"],
    &["plain", "state"],
    &["database", "memory_file"],
    &["tickets"],
    &["together"],
    &["connection"],
    &["request"],
    &["vfs"],
    &["extension"],
];

const POSIX: &[&[&str]] = &[
    &["format"],
    &["look"],
    &["change"],
    &["attributes", "beside", "data", "names"],
    &["volume"],
    &["operations", "partial", "paths", "check"],
    &["copy"],
];

#[test]
fn imports_point_downwards_in_volumes_of_files() {
    let wrong = check_layers("crates/posix/src", "crate::", POSIX, &["error"]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_point_downwards_in_the_store() {
    let wrong = check_layers("crates/store/src", "crate::", STORE, &["error", "entropy", "mutant"]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_rooms_of_a_pool_stack() {
    let folder = "crates/store/src/store";
    let mut wrong = check_layers(folder, "crate::store::", ROOMS, &[]);
    for (file, text) in sources(folder) {
        // Another room is named by its path, which the check above reads.
        let is_room = file[folder.len() + 1..].matches('/').count() == 0 || file.ends_with("/mod.rs");
        let beyond = if is_room { "super::" } else { "super::super::" };
        wrong.extend(text.contains(beyond).then(|| format!("{file} names another room by {beyond}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_point_downwards_in_the_transactional_memory() {
    let wrong = check_layers("crates/stm/src", "super::", STM, &[]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_point_downwards_in_backups() {
    let wrong = check_layers("crates/backup/src", "crate::", BACKUP, &["error", "Progress"]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_point_downwards_in_the_guard() {
    let wrong = check_layers("crates/guard/src", "crate::", GUARD, &[]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_point_downwards_in_the_vfs_of_sqlite() {
    let wrong = check_layers("crates/sqlite/src", "crate::", SQLITE, &["offered"]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_point_downwards_in_the_types() {
    let wrong = check_layers("crates/types/src", "crate::", TYPES, &[]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_point_downwards_in_the_mapped_half() {
    let wrong = check_layers("crates/indelible/src", "crate::", MAPPED, &["error", "events"]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wrong_import_would_be_noticed() {
    assert_eq!(
        imports("use crate::store::Store;\nfn f() { crate::lane::scan() }", "crate::"),
        ["store", "lane"]
    );
    assert_eq!(imports("// crate::store\n#[cfg(test)]\nuse crate::store;", "crate::"), [""; 0]);
}

#[test]
fn crates_depend_downwards_only() {
    let order = [
        "indelible-store",
        "indelible-stm",
        "indelible-derive",
        "indelible-types",
        "indelible-files",
        "indelible",
        "indelible-backup",
        "indelible-leds",
        "indelible-guard",
        "indelible-sqlite",
        "indelible-posix",
        "indelible-mount",
        "indelible-replicate",
        "indelible-capi",
        "indelible-cli",
    ];
    for (name, folder) in [
        ("indelible-store", "crates/store"),
        ("indelible-stm", "crates/stm"),
        ("indelible-derive", "crates/derive"),
        ("indelible-types", "crates/types"),
        ("indelible-files", "crates/files"),
        ("indelible", "crates/indelible"),
        ("indelible-backup", "crates/backup"),
        ("indelible-leds", "crates/leds"),
        ("indelible-guard", "crates/guard"),
        ("indelible-sqlite", "crates/sqlite"),
        ("indelible-posix", "crates/posix"),
        ("indelible-mount", "crates/mount"),
        ("indelible-replicate", "crates/replicate"),
        ("indelible-capi", "crates/capi"),
    ] {
        let text = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).expect("manifest");
        let dependencies = text.split("[dependencies]").nth(1).unwrap_or("");
        let dependencies = dependencies.split("\n[").next().unwrap_or("");
        let own = order.iter().position(|n| *n == name).expect("listed");
        for above in &order[own..] {
            let named = dependencies
                .lines()
                .any(|line| line.starts_with(&format!("{above}.")) || line.starts_with(&format!("{above} ")));
            assert!(!named, "{name} depends on {above}");
        }
        let knows_pools = name == "indelible-stm" && dependencies.contains("indelible");
        assert!(!knows_pools, "{name} knows nothing of pools, so that it can be replaced");
        assert!(!dependencies.contains("indelible-testing"), "{name} ships the test rigs");
    }
}
