//! Rules that can be enforced, enforced: layers, unsafe, commits, sizes of files, words.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// Every file below `folder` with one of these endings, with its text.
fn files(folder: &str, endings: &[&str]) -> BTreeMap<String, String> {
    fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let skipped = ["target", ".git"].iter().any(|skip| name.to_string_lossy().starts_with(skip));
            if path.is_dir() && !skipped {
                walk(&path, out);
            } else if path.is_file() {
                out.push(path);
            }
        }
    }
    let root = root();
    let mut paths = Vec::new();
    walk(&root.join(folder), &mut paths);
    paths
        .into_iter()
        .filter(|path| endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)))
        .map(|path| {
            let name = path.strip_prefix(&root).expect("below the root").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap_or_default())
        })
        .collect()
}

fn sources(folder: &str) -> BTreeMap<String, String> {
    let files = files(folder, &[".rs"]);
    assert!(!files.is_empty(), "no sources in {folder}: the test looks in the wrong place");
    files
}

/// Modules that a file names through `crate::`, `use` lists included.
fn imports(text: &str) -> Vec<String> {
    let code: String = text
        .split("#[cfg(test)]")
        .next()
        .unwrap_or("")
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    code.split("crate::")
        .skip(1)
        .filter(|rest| !rest.is_empty())
        .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
        .collect()
}

/// Modules bottom-up. A module may import what stands before it, and itself; those of one group are
/// siblings, which do not import each other.
fn check_layers(crate_folder: &str, layers: &[&[&str]], everywhere: &[&str]) -> Vec<String> {
    let level = |module: &str| layers.iter().position(|group| group.contains(&module));
    let mut wrong = Vec::new();
    for (file, text) in sources(crate_folder) {
        let inner = &file[crate_folder.len() + 1..];
        let module = inner.split('/').next().unwrap_or("").trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        if everywhere.contains(&module) {
            continue;
        }
        let Some(own) = level(module) else {
            wrong.push(format!("{file}: module {module} has no place among the layers"));
            continue;
        };
        for import in imports(&text) {
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
    &["format", "seal", "sync"],
    &["medium"],
    &["space"],
    &["lane"],
    &["table"],
    &["commit"],
    &["recovery"],
    &["store"],
];

const MAPPED: &[&[&str]] = &[
    &["sys", "plain", "types"],
    &["relative"],
    &["media"],
    &["mapping"],
    &["dirty", "fault"],
    &["shadow"],
    &["pool"],
    &["object"],
    &["heap"],
    &["collections", "raw", "doctor", "maintenance"],
];

#[test]
fn imports_point_downwards_in_the_store() {
    let wrong = check_layers("crates/store/src", STORE, &["error", "entropy", "mutant"]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_point_downwards_in_the_mapped_half() {
    let wrong = check_layers("crates/indelible/src", MAPPED, &["error"]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wrong_import_would_be_noticed() {
    assert_eq!(imports("use crate::store::Store;\nfn f() { crate::lane::scan() }"), ["store", "lane"]);
    assert_eq!(imports("// crate::store\n#[cfg(test)]\nuse crate::store;"), [""; 0]);
}

#[test]
fn crates_depend_downwards_only() {
    let order = ["indelible-store", "indelible-derive", "indelible", "indelible-capi", "indelible-cli"];
    for (name, folder) in [
        ("indelible-store", "crates/store"),
        ("indelible-derive", "crates/derive"),
        ("indelible", "crates/indelible"),
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
        assert!(!dependencies.contains("indelible-testing"), "{name} ships the test rigs");
    }
}

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
        "dirty/",
        "fault/",
        "shadow/",
        "object/",
        "plain.rs",
        "raw/",
        "relative.rs",
        "heap/layout.rs",
        "heap/leaked.rs",
        "heap/window.rs",
        "heap/span.rs",
        "heap/allocation_bytes.rs",
        "heap/cache.rs",
        "heap/table.rs",
        "heap/allocator.rs",
        "heap/raw.rs",
        "heap/writer.rs",
        "heap/read.rs",
        "collections/persist.rs",
        "collections/place.rs",
        "collections/roots.rs",
        "collections/boxed.rs",
        "collections/option.rs",
        "collections/vec.rs",
        "collections/vec_drain.rs",
        "collections/vec_iter.rs",
        "collections/string.rs",
        "collections/group.rs",
        "collections/slots.rs",
        "collections/table.rs",
        "collections/hash_map.rs",
        "collections/hash_entry.rs",
        "collections/hash_iter.rs",
        "collections/hash_set.rs",
        "collections/node.rs",
        "collections/tree.rs",
        "collections/tree_iter.rs",
        "collections/ordered_map.rs",
        "collections/ordered_retain.rs",
        "collections/ordered_entry.rs",
        "collections/mutex.rs",
    ];
    for (file, text) in sources("crates/indelible/src") {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let uses = code.filter(|line| line.contains("unsafe {") || line.contains("unsafe impl")).count();
        let inner = file.trim_start_matches("crates/indelible/src/");
        assert!(uses == 0 || allowed.iter().any(|a| inner.starts_with(a)), "{file} has unsafe code");
    }
    // Arguments from C are checked in `args`; the other modules pass them on.
    for (file, text) in sources("crates/capi/src") {
        let inner = file.trim_start_matches("crates/capi/src/");
        let follows =
            |line: &str| ["from_raw_parts", "from_ptr(", ".write("].iter().any(|word| line.contains(word));
        let used = text.lines().any(follows);
        assert!(!used || inner == "args.rs", "{file} follows pointers of the caller's");
    }
    for (file, text) in sources("crates/python/src") {
        let allowed = ["block.rs", "buffer.rs", "object.rs"].iter().any(|name| file.ends_with(name));
        assert!(allowed || !text.contains("unsafe "), "{file} has unsafe code");
    }
    for folder in ["crates/cli/src", "crates/testing/src"] {
        for (file, text) in sources(folder) {
            assert!(!text.contains("unsafe {"), "{file} has unsafe code");
        }
    }
}

/// The part of a source that is shipped.
fn shipped(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or_default()
}

/// Lines that choose a value by a feature or an interpreter that only tests use: what is tested is not what is shipped
/// then.
fn chosen_for_tests(text: &str) -> Vec<&str> {
    let (mut wrong, mut conditional) = (Vec::new(), false);
    for line in shipped(text).lines().filter(|line| !line.trim_start().starts_with("//")) {
        let of_tests = ["feature = \"mutants\"", "miri"].iter().any(|word| line.contains(word));
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
    for (file, text) in sources("crates/store/src").into_iter().chain(sources("crates/indelible/src")) {
        // An interpreter places memory where it likes, and lacks facilities of the kernel.
        let of_the_machine =
            file.ends_with("store/window.rs") || file.starts_with("crates/indelible/src/sys/");
        if !file.contains("tests") && !of_the_machine {
            assert_eq!(chosen_for_tests(&text), [""; 0], "{file}: inject it (medium/transfers.rs shows how)");
        }
    }
}

#[test]
fn a_constant_made_for_tests_would_be_noticed() {
    let wrong = [
        "const N: usize = if cfg!(miri) { 16 } else { 1024 };",
        "} else if cfg!(feature = \"mutants\") {",
        "#[cfg(feature = \"mutants\")]\nconst N: usize = 2;",
    ];
    for text in wrong {
        assert_eq!(chosen_for_tests(text).len(), 1, "{text}");
    }
    let right = "#[cfg(feature = \"mutants\")]\npub const fn f() {}\n#[cfg(test)]\nconst N: usize = 1;";
    assert_eq!(chosen_for_tests(right), [""; 0]);
}

#[test]
fn files_stay_short() {
    for (file, text) in files("crates", &[".rs", ".py", ".pyi"]) {
        let lines = text.lines().count();
        let limit = if file.contains("/tests") { 700 } else { 450 };
        assert!(lines <= limit, "{file} has {lines} lines: which noun is missing?");
    }
}

#[test]
fn the_project_speaks_only_of_itself() {
    let registry = ["crates", ".io"].concat();
    let forge = ["github", ".com"].concat();
    let words =
        [["Co-", "Authored"].concat(), ["sub", "agent"].concat(), registry, forge, ["/work", "/"].concat()];
    for (file, text) in files("", &[".rs", ".py", ".pyi", ".md", ".toml", ".sh"]) {
        for word in &words {
            let found = text.lines().any(|line| line.contains(word.as_str()));
            assert!(!found, "{file} mentions {word}");
        }
    }
}

/// Lines of comments that begin a sentence with a pronoun where its subject, a noun, should be.
fn without_subject(text: &str) -> Vec<&str> {
    let begins = |line: &&str| {
        let said = line.trim_start().trim_start_matches(['/', '!', '#', '*']).trim_start();
        let is_comment = line.trim_start().starts_with(['/', '#', '*']);
        let first = said.split_whitespace().next().unwrap_or_default();
        is_comment
            && ["Who", "What", "Where", "Whoever", "Whatever"].contains(&first)
            && !said.ends_with(['?', ':'])
    };
    text.lines().filter(begins).collect()
}

#[test]
fn sentences_of_comments_have_a_subject() {
    for (file, text) in files("", &[".rs", ".py", ".c", ".h", ".hpp", ".sh"]) {
        assert_eq!(without_subject(&text), [""; 0], "{file}: name the subject");
    }
}

#[test]
fn a_sentence_without_a_subject_would_be_noticed() {
    for line in
        ["    /// What was psynced stays.", "// Who holds it waits.", "# Where it lies does not matter."]
    {
        assert_eq!(without_subject(line), [line]);
    }
    assert_eq!(
        without_subject("let what = 1; // What else?\n/// What is it?\n/// The holder waits."),
        [""; 0]
    );
}

#[test]
fn every_test_that_coverage_names_exists() {
    let text = std::fs::read_to_string(root().join("docs/coverage.md")).expect("docs/coverage.md");
    let mut named = 0;
    for (file, test) in text.split('`').skip(1).step_by(2).filter_map(|word| word.split_once("::")) {
        let source = std::fs::read_to_string(root().join(file)).unwrap_or_default();
        let word = if file.ends_with(".py") { "def" } else { "fn" };
        assert!(source.contains(&format!("{word} {test}(")), "{file} has no test {test}");
        named += 1;
    }
    assert!(named > 40, "only {named} tests are named");
}
