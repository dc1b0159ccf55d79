//! Places of unsafe code, commits, and constants of tests.

use crate::sources::{files, root, sources};
use std::collections::BTreeMap;

#[test]
fn the_store_forbids_unsafe_and_knows_no_mmap() {
    let files = sources("crates/store/src");
    assert!(files["crates/store/src/lib.rs"].contains("#![forbid(unsafe_code)]"));
    for (file, text) in files {
        for word in ["mmap", "libc::", "rustix", "thread::spawn"] {
            let used = text.lines().any(|l| l.contains(word) && !l.trim_start().starts_with("//"));
            assert!(!used, "{file} uses {word}");
        }
    }
}

/// The libraries are not linked together, so that nothing else compares their shared structs.
#[test]
fn libpmo_and_libpmo_tm_have_one_interface() {
    let code = |package: &str| {
        let file = root().join("crates").join(package).join("src/tm_interface.rs");
        let text = std::fs::read_to_string(file).expect("the interface");
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        lines.collect::<Vec<_>>().join("\n").trim().to_owned()
    };
    let (ours, theirs) = (code("capi"), code("tm"));
    assert!(ours.matches("#[repr(C)]").count() >= 5 && ours.contains("pub const VERSION"));
    assert!(ours == theirs, "crates/capi/src/tm_interface.rs and its copy in crates/tm/src differ");
}

fn with_other_engines(manifests: &BTreeMap<String, String>) -> Vec<&str> {
    let asks = |text: &str| text.lines().any(|line| !line.starts_with('#') && line.contains("engines"));
    manifests.iter().filter(|(_, text)| asks(text)).map(|(file, _)| file.as_str()).collect()
}

#[test]
fn nothing_but_the_benchmarks_seals_without_integrity() {
    let mut manifests = files("crates", &["Cargo.toml"]);
    for folder in ["bench", "evidence", "examples", "fuzz", "rig", "xtask"] {
        manifests.extend(files(folder, &["Cargo.toml"]));
    }
    // Two have the feature; the models, which compile the store's sources, have its name; tests run
    // with all features.
    let known = [
        "bench/Cargo.toml",
        "crates/indelible/Cargo.toml",
        "crates/models/Cargo.toml",
        "crates/store/Cargo.toml",
        "xtask/unified/Cargo.toml",
    ];
    assert_eq!(with_other_engines(&manifests), known);
    for file in &known[1..4] {
        assert!(!manifests[*file].contains("default = "), "{file}: a feature that is on by itself");
    }
}

#[test]
fn a_manifest_that_asks_for_other_engines_would_be_noticed() {
    let manifest = |text: &str| BTreeMap::from([("a".to_owned(), text.to_owned())]);
    assert_eq!(
        with_other_engines(&manifest("indelible = { workspace = true, features = [\"__engines\"] }")),
        ["a"]
    );
    assert!(with_other_engines(&manifest("# engines\nindelible.workspace = true")).is_empty());
}

#[test]
fn one_file_alone_publishes_a_commit() {
    let callers: Vec<_> = sources("crates/store/src")
        .into_iter()
        .filter(|(_, text)| text.contains(".stamp("))
        .map(|(file, _)| file)
        .collect();
    assert_eq!(callers, ["crates/store/src/commit.rs"]);
}

#[test]
fn unsafe_stays_in_its_modules_and_each_block_says_why() {
    let allowed = [
        "sys/",
        "media/",
        "mapping/",
        "protection/",
        // The module above has its mappings; only tests touch their bytes.
        "backing/tests.rs",
        "dirty/",
        "fault/",
        "shadow/",
        "object/",
        "raw/",
        "space/place.rs",
        "space/at.rs",
        "space/change.rs",
        "view/memory.rs",
        "heap/layout.rs",
        "heap/leaked.rs",
        "heap/addresses.rs",
        "heap/stray.rs",
        "heap/window.rs",
        "heap/span.rs",
        "heap/allocation_bytes.rs",
        "heap/cache.rs",
        "heap/chain.rs",
        "heap/table.rs",
        "heap/allocator.rs",
        "heap/raw.rs",
        "heap/growth.rs",
        "heap/writer.rs",
        "heap/read.rs",
        "heap/rebase/image.rs",
        "heap/revert.rs",
        "collections/persist.rs",
        "collections/place.rs",
        "collections/roots.rs",
        "collections/task_root.rs",
        "collections/tuples.rs",
        "collections/root_value.rs",
        "collections/boxed.rs",
        "collections/foreign.rs",
        "collections/rc.rs",
        "collections/extensions.rs",
        "collections/option.rs",
        "collections/type_hash.rs",
        "collections/vec.rs",
        "collections/vec_deque.rs",
        "collections/vec_deque_iter.rs",
        "collections/vec_deque_middle.rs",
        "collections/vec_drain.rs",
        "collections/vec_fill.rs",
        "collections/vec_iter.rs",
        "collections/vec_retain.rs",
        "collections/binary_heap.rs",
        "collections/ordered_set.rs",
        "collections/string.rs",
        "collections/group.rs",
        "collections/slots.rs",
        "collections/table.rs",
        "collections/hash_map.rs",
        "collections/hash_entry.rs",
        "collections/hash_iter.rs",
        "collections/hash_scan.rs",
        "collections/hash_set.rs",
        "collections/node.rs",
        "collections/tree.rs",
        "collections/tree_iter.rs",
        "collections/ordered_map.rs",
        "collections/ordered_retain.rs",
        "collections/ordered_entry.rs",
        "collections/mutex.rs",
        "memory/area.rs",
        "shared/memory.rs",
        "shared/value.rs",
        "transaction/exposed.rs",
        "transaction/cell.rs",
        "transaction/checked.rs",
        "transaction/growth.rs",
        "transaction/open.rs",
        "transaction/heap.rs",
        "transaction/home.rs",
        "transaction/pointer.rs",
        "transaction/words.rs",
        "transaction/attached.rs",
        "transaction/object.rs",
        "transaction/durable.rs",
        "transaction/run.rs",
        "transaction/space.rs",
    ];
    for (file, text) in sources("crates/indelible/src") {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let uses = code.filter(|line| line.contains("unsafe {") || line.contains("unsafe impl")).count();
        let inner = file.trim_start_matches("crates/indelible/src/");
        assert!(uses == 0 || allowed.iter().any(|a| inner.starts_with(a)), "{file} has unsafe code");
    }
    for (file, text) in sources("crates/types/src") {
        let allowed = ["/plain.rs", "/relative.rs", "/src/far.rs"].iter().any(|name| file.ends_with(name));
        assert!(allowed || !text.contains("unsafe "), "{file} has unsafe code");
    }
    for (file, text) in sources("crates/stm/src") {
        let allowed = ["access", "commit", "ecc/crc", "memory", "pairs", "transaction"];
        let inner = file.trim_start_matches("crates/stm/src/").trim_end_matches(".rs");
        assert!(allowed.contains(&inner) || !text.contains("unsafe {"), "{file} has unsafe code");
    }
    // `args` checks arguments from C; the other modules pass them on.
    for (file, text) in sources("crates/capi/src") {
        let inner = file.trim_start_matches("crates/capi/src/");
        let follows =
            |line: &str| ["from_raw_parts", "from_ptr(", ".write("].iter().any(|word| line.contains(word));
        let used = text.lines().any(follows);
        assert!(!used || inner == "args.rs", "{file} follows pointers of the caller's");
    }
    for (file, text) in sources("crates/python/src") {
        let allowed =
            ["block.rs", "bystanders.rs", "buffer.rs", "object.rs"].iter().any(|name| file.ends_with(name));
        assert!(allowed || !text.contains("unsafe "), "{file} has unsafe code");
    }
    for (file, text) in sources("crates/guard/src") {
        assert!(file.ends_with("/kernel.rs") || !text.contains("unsafe {"), "{file} has unsafe code");
    }
    for (file, text) in sources("crates/sqlite/src") {
        let allowed = ["/vfs.rs", "/host.rs", "/extension.rs"].iter().any(|name| file.ends_with(name));
        let mut code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        assert!(allowed || !code.any(|line| line.contains("unsafe {")), "{file} has unsafe code");
    }
    for folder in ["crates/cli/src", "crates/testing/src"] {
        for (file, text) in sources(folder) {
            assert!(!text.contains("unsafe {"), "{file} has unsafe code");
        }
    }
}

/// Macros that panic where their output is full or closed.
fn panicking_outputs(text: &str) -> Vec<String> {
    let code = crate::sources::shipped(text);
    let panics = |line: &&str| ["print!(", "println!("].iter().any(|word| line.contains(word));
    code.lines().filter(panics).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn programs_and_libraries_survive_outputs_that_cannot_be_written() {
    for (file, text) in sources("crates") {
        let (package, inner) = file["crates/".len()..].split_once('/').unwrap_or_default();
        // Of tests: helpers, and modules that only they compile.
        let of_tests = package == "testing" || file.ends_with("/tests.rs") || file.ends_with("/mutant.rs");
        if inner.starts_with("src/") && !of_tests {
            let found = panicking_outputs(&text);
            assert_eq!(found, [""; 0], "{file}: `let _ = writeln!(…)`, or report the error");
        }
    }
}

#[test]
fn an_output_that_panics_would_be_noticed() {
    for name in ["print", "println", "eprint", "eprintln"] {
        let text = format!("fn f() {{\n    {name}!(\"x\");\n}}\n");
        assert_eq!(panicking_outputs(&text).len(), 1, "{name}");
    }
    let right = "// println!()\nwriteln!(out)?;\n#[cfg(test)]\nmod tests {\n    println!();\n}\n";
    assert_eq!(panicking_outputs(right), [""; 0]);
}

fn shipped(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or_default()
}

/// Lines that choose a value by a test feature or interpreter: tests would not run what is shipped.
fn chosen_for_tests(text: &str) -> Vec<&str> {
    let (mut wrong, mut conditional) = (Vec::new(), false);
    for line in shipped(text).lines().filter(|line| !line.trim_start().starts_with("//")) {
        let of_tests = ["feature = \"__mutants\"", "miri"].iter().any(|word| line.contains(word));
        let constant = ["const ", "static "].iter().any(|word| line.contains(word)) && !line.contains(" fn ");
        if (of_tests && line.contains("cfg!(")) || (conditional && constant) {
            wrong.push(line);
        }
        conditional = of_tests && line.contains("#[cfg(");
    }
    wrong
}

#[test]
fn constants_are_the_same_in_every_build() {
    for (file, text) in ["store", "types", "indelible", "stm"]
        .into_iter()
        .flat_map(|name| sources(&format!("crates/{name}/src")))
    {
        // An interpreter chooses its own addresses, and lacks kernel facilities.
        let of_the_machine =
            file.ends_with("operations/window.rs") || file.starts_with("crates/indelible/src/sys/");
        if !file.contains("tests") && !of_the_machine {
            assert_eq!(chosen_for_tests(&text), [""; 0], "{file}: inject it (medium/transfers.rs shows how)");
        }
    }
}

#[test]
fn a_constant_made_for_tests_would_be_noticed() {
    let wrong = [
        "const N: usize = if cfg!(miri) { 16 } else { 1024 };",
        "} else if cfg!(feature = \"__mutants\") {",
        "#[cfg(feature = \"__mutants\")]\nconst N: usize = 2;",
    ];
    for text in wrong {
        assert_eq!(chosen_for_tests(text).len(), 1, "{text}");
    }
    let right = "#[cfg(feature = \"__mutants\")]\npub const fn f() {}\n#[cfg(test)]\nconst N: usize = 1;";
    assert_eq!(chosen_for_tests(right), [""; 0]);
}
