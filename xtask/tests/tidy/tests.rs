//! Tests named by documentation exist, and every file of tests runs.

use crate::sources::root;
use std::path::Path;

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

/// Files of `tests/`, and of its folders with a program, that belong to no program in the package's
/// manifest.
fn unlisted(package: &Path) -> Vec<String> {
    let manifest = std::fs::read_to_string(package.join("Cargo.toml")).unwrap_or_default();
    if !manifest.contains("autotests = false") {
        return Vec::new();
    }
    let programs = manifest.lines().filter_map(|line| line.strip_prefix("path = \"tests/"));
    let programs: Vec<_> = programs.map(|path| path.trim_end_matches('"')).collect();
    let folders = programs.iter().filter_map(|program| program.strip_suffix("/main.rs"));
    std::iter::once("").chain(folders).flat_map(|folder| unlisted_in(package, &programs, folder)).collect()
}

fn unlisted_in(package: &Path, programs: &[&str], folder: &str) -> Vec<String> {
    let inside = |program: &&&str| program.rsplit_once('/').map_or("", |(folder, _)| folder) == folder;
    let text =
        |program: &&str| std::fs::read_to_string(package.join("tests").join(program)).expect("a program");
    let modules: String = programs.iter().filter(inside).map(text).collect();
    let listed = |name: &str| {
        let (module, path) = (name.trim_end_matches(".rs"), Path::new(folder).join(name));
        let is_program = programs
            .iter()
            .any(|program| path == Path::new(program) || path.join("main.rs") == Path::new(program));
        is_program || modules.lines().any(|line| line == format!("mod {module};"))
    };
    let entries = std::fs::read_dir(package.join("tests").join(folder)).expect("tests").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| !name.ends_with(".c") && !listed(name)).collect()
}

#[test]
fn every_file_of_tests_is_run() {
    let mut looked_at = 0;
    for package in std::fs::read_dir(root().join("crates")).expect("crates").flatten() {
        assert_eq!(
            unlisted(&package.path()),
            [""; 0],
            "{}: list it in tests/main.rs",
            package.path().display()
        );
        looked_at += usize::from(package.path().join("tests/main.rs").exists());
    }
    assert!(looked_at >= 4, "only {looked_at} packages list their tests");
}

/// Nonexistent files and tests that a page names between backquotes, as `path` or `path::test`.
fn missing(page: &str) -> Vec<String> {
    let mut missing = Vec::new();
    for word in page.split('`').skip(1).step_by(2).filter(|word| word.contains('/') && !word.contains(' ')) {
        let (path, test) = word.split_once("::").map_or((word, None), |(path, test)| (path, Some(test)));
        let source = std::fs::read_to_string(root().join(path)).unwrap_or_default();
        let there = test.is_none_or(|test| source.contains(&format!("fn {test}(")));
        if !root().join(path).exists() || !there {
            missing.push(word.to_owned());
        }
    }
    missing
}

#[test]
fn everything_that_where_to_change_names_exists() {
    let page = std::fs::read_to_string(root().join("docs/where-to-change.md")).expect("the page");
    assert_eq!(missing(&page), [""; 0]);
    assert!(page.matches("\n| ").count() > 25, "the page has lost its tables");
}

#[test]
fn everything_that_the_threat_table_names_exists() {
    let page = std::fs::read_to_string(root().join("SECURITY.md")).expect("the page");
    assert_eq!(missing(&page), [""; 0]);
    assert!(page.matches(".rs::").count() > 20, "the page has lost its tests");
}

#[test]
fn a_file_that_is_gone_would_be_noticed() {
    let page =
        "`README.md`, `docs/gone.md`, `cargo test`, `xtask/src/main.rs::nothing`, `xtask/src/main.rs::main`";
    assert_eq!(missing(page), ["docs/gone.md", "xtask/src/main.rs::nothing"]);
}
