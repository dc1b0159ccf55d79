//! Documentation of published packages, whose readers lack the project's checklist and decisions.

use crate::sources::{root, sources};
use std::collections::BTreeMap;

fn published() -> Vec<String> {
    let folders = std::fs::read_dir(root().join("crates")).expect("the packages").flatten();
    let is = |path: &std::path::Path| {
        let manifest = std::fs::read_to_string(path.join("Cargo.toml")).expect("a manifest");
        !manifest.contains("publish = false")
    };
    let folders = folders.map(|entry| entry.path()).filter(|path| path.is_dir() && is(path));
    let mut names: Vec<_> =
        folders.map(|path| format!("crates/{}", path.file_name().expect("a name").display())).collect();
    names.sort();
    names
}

fn has_number(line: &str) -> bool {
    line.match_indices('S').any(|(at, _)| {
        let apart = !line[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        let rest = line[at + 1..].trim_start_matches(|letter: char| letter.is_ascii_digit());
        let digits = rest.len() < line.len() - at - 1;
        let behind = rest.strip_prefix('.').unwrap_or_default();
        apart && digits && behind.starts_with(|letter: char| letter.is_ascii_digit())
    })
}

/// Lines of documentation that cite the checklist, decisions or the design. A module's head counts
/// if the module is public.
fn sent_elsewhere(text: &str, is_public: bool) -> Vec<&str> {
    let shown = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("///") || is_public && line.starts_with("//!")
    };
    let names =
        |line: &str| ["docs/", "DESIGN", "CHECKLIST", "paper 00"].iter().any(|word| line.contains(word));
    text.lines().filter(shown).filter(|line| has_number(line) || names(line)).collect()
}

/// Whether users see a file's head: it is the package's, or each module above is `pub mod`.
fn is_public(file: &str, files: &BTreeMap<String, String>) -> bool {
    let (folder, inner) = file.split_once("/src/").expect("a source");
    let path = inner.trim_end_matches(".rs").trim_end_matches("/mod");
    let mut parent = String::from("lib");
    for name in path.split('/').filter(|name| !["lib", "main"].contains(name)) {
        let declares = |ending: &str| {
            let text = files.get(&format!("{folder}/src/{parent}{ending}"));
            text.is_some_and(|text| text.lines().any(|line| line == format!("pub mod {name};")))
        };
        if !declares(".rs") && !declares("/mod.rs") {
            return false;
        }
        parent = if parent == "lib" { name.to_owned() } else { format!("{parent}/{name}") };
    }
    true
}

#[test]
fn documentation_of_packages_sends_nobody_to_what_readers_lack() {
    let folders = published();
    assert!(folders.len() > 5 && folders.contains(&"crates/indelible".to_owned()), "{folders:?}");
    let mut wrong = Vec::new();
    for folder in folders {
        let files = sources(&format!("{folder}/src"));
        for (file, text) in files.iter().filter(|(file, _)| !file.contains("tests")) {
            let lines = sent_elsewhere(text, is_public(file, &files));
            wrong.extend(lines.iter().map(|line| format!("{file}: {}", line.trim_start())));
        }
    }
    assert!(
        wrong.is_empty(),
        "readers of a published package have neither the checklist nor the decisions. Say the idea in words, and leave the number out, or \
         move it into a comment that begins with `//`:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn documentation_that_sends_readers_elsewhere_would_be_noticed() {
    for line in
        ["/// Rights (S2.10).", "    /// As S1.5 says.", "/// See docs/decisions/0001-x.md.", "/// DESIGN.md"]
    {
        assert_eq!(sent_elsewhere(line, false), [line]);
    }
    let head = "//! Pointers (S2.9).";
    assert_eq!(sent_elsewhere(head, true), [head]);
    let fine = "// S2.10\nlet s = \"S2.10\";\n/// AES2.1, S3, S.5 and CAS1.2 are none.\n//! S2.9";
    assert_eq!(sent_elsewhere(fine, false), [""; 0]);
}

#[test]
fn a_module_is_public_if_all_above_it_are() {
    let texts =
        [("lib.rs", "pub mod a;\nmod b;"), ("a/mod.rs", "pub mod c;\nmod d;"), ("b.rs", "pub mod e;")];
    let files = texts.map(|(name, text)| (format!("x/src/{name}"), text.to_owned())).into();
    for (name, public) in
        [("lib.rs", true), ("a/mod.rs", true), ("a/c.rs", true), ("a/d.rs", false), ("b/e.rs", false)]
    {
        assert_eq!(is_public(&format!("x/src/{name}"), &files), public, "{name}");
    }
}

/// Features used by a source but missing in its manifest: their code is never compiled.
fn unknown_features<'a>(text: &'a str, manifest: &str) -> Vec<&'a str> {
    let features = manifest.split("[features]").nth(1).unwrap_or_default();
    let features = features.split("\n[").next().unwrap_or_default();
    let named = text.split("feature = \"").skip(1).filter_map(|rest| rest.split('"').next());
    named.filter(|name| !features.lines().any(|line| line.starts_with(&format!("{name} = ")))).collect()
}

#[test]
fn features_that_sources_ask_for_exist() {
    for folder in published() {
        let manifest = std::fs::read_to_string(root().join(&folder).join("Cargo.toml")).expect("a manifest");
        for (file, text) in sources(&folder) {
            assert_eq!(
                unknown_features(&text, &manifest),
                [""; 0],
                "{file}: that of the tests is `__mutants`"
            );
        }
    }
    let manifest = "[features]\n__mutants = []\n[dependencies]\nmutants = \"1\"\n";
    let text = "#[cfg(feature = \"mutants\")]\n#[cfg(any(test, feature = \"__mutants\"))]";
    assert_eq!(unknown_features(text, manifest), ["mutants"]);
}
