//! Accesses to non-extension fields of an extendible struct compile to a plain struct's
//! instructions.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

/// A struct before its program became extendible: with the word at its end, as part of its size.
const PLAIN: &str = "
#[repr(C)]
pub struct Item<'h> {
    pub name: PString<'h>,
    pub count: u32,
    pub marks: [u16; 3],
    pub weight: f64,
    link: u64,
}
";

const EXTENDIBLE: &str = "
#[extendible]
#[derive(Persist)]
#[repr(C)]
pub struct Item<'h> {
    pub name: PString<'h>,
    pub count: u32,
    pub marks: [u16; 3],
    pub weight: f64,
    #[extension(1, init = |item| i64::from(item.count))]
    pub price: i64,
    #[extension(2)]
    pub code: [u8; 5],
}
";

const FUNCTIONS: &str = "
#[unsafe(no_mangle)] pub fn at_load(item: &Item<'_>) -> u32 { item.count }
#[unsafe(no_mangle)] pub fn at_store(item: &mut Item<'_>, count: u32) { item.count = count }
#[unsafe(no_mangle)] pub fn at_add(item: &mut Item<'_>) { item.weight += f64::from(item.count) }
#[unsafe(no_mangle)] pub fn at_array(item: &mut Item<'_>, index: usize) { if let Some(mark) = item.marks.get_mut(index) { *mark += 1 } }
#[unsafe(no_mangle)] pub fn at_text(item: &Item<'_>) -> usize { item.name.len() }
#[unsafe(no_mangle)] pub fn at_sum(items: &[Item<'_>]) -> u64 { items.iter().map(|item| u64::from(item.count)).sum() }
#[unsafe(no_mangle)] pub fn at_raise(items: &mut [Item<'_>]) { items.iter_mut().for_each(|item| item.weight += item.weight) }
";

const EXTENSION: &str = "#[unsafe(no_mangle)] pub fn at_price(item: &Item<'_>) -> i64 { item.price() ^ 1 }";
const NO_EXTENSION: &str =
    "#[unsafe(no_mangle)] pub fn at_price(item: &Item<'_>) -> i64 { i64::from(item.count) ^ 1 }";

fn libraries() -> Vec<PathBuf> {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libindelible-") && name.ends_with(".rlib")
    };
    let mut all: Vec<_> = files.filter(is_library).collect();
    let made = |path: &Path| path.metadata().and_then(|of| of.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    all.sort_by_key(|path| std::cmp::Reverse(made(path)));
    all
}

fn compile(source: &Path, library: &Path) -> std::io::Result<Output> {
    let found = |name: &str, path: &Path| format!("{name}={}", path.display());
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition", "2024", "--crate-type", "lib", "--crate-name", "probe", "--emit", "asm"])
        .args(["-C", "opt-level=3", "-C", "codegen-units=1", "-C", "debuginfo=0", "-A", "warnings"])
        .args(["--extern", &found("indelible", library)])
        .args(["-L", &found("dependency", library.parent().unwrap())])
        .arg("-o")
        .arg(source.with_extension("s"))
        .arg(source)
        .output()
}

fn functions(assembly: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in assembly.lines().map(str::trim) {
        if let Some(name) = line.strip_suffix(':').filter(|name| name.starts_with("at_")) {
            all.push((name.to_owned(), String::new()));
            inside = true;
        } else if line.starts_with(".Lfunc_end") {
            inside = false;
        } else if inside && (!line.starts_with('.') || line.ends_with(':')) {
            let words: Vec<_> = line.split_whitespace().map(without_function).collect();
            let _ = writeln!(all.last_mut().unwrap().1, "{}", words.join(" "));
        }
    }
    all.sort();
    all
}

fn without_function(word: &str) -> String {
    match word.split_once(".LBB").map(|(before, label)| (before, label.split_once('_'))) {
        Some((before, Some((_, label)))) => format!("{before}.LBB_{label}"),
        _ => word.to_owned(),
    }
}

#[test]
fn other_fields_compile_to_the_instructions_of_a_plain_struct() {
    let dir = tempfile::tempdir().unwrap();
    let compiled = |name: &str, item: &str, more: &str| {
        let source = dir.path().join(name);
        let head = "use indelible::Persist; use indelible::collections::PString; use indelible::retention::extendible;";
        std::fs::write(&source, [head, item, FUNCTIONS, more].concat()).unwrap();
        let mut failed = String::new();
        for library in libraries() {
            let output = match compile(&source, &library) {
                Ok(output) => output,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
                Err(error) => panic!("rustc: {error}"),
            };
            if output.status.success() {
                return Some(functions(&std::fs::read_to_string(source.with_extension("s")).unwrap()));
            }
            failed = String::from_utf8_lossy(&output.stderr).into_owned();
        }
        panic!("{name} does not compile with any library of this build: {failed}")
    };
    let plain = compiled("plain.rs", PLAIN, NO_EXTENSION);
    let (Some(plain), Some(extended)) = (plain, compiled("extendible.rs", EXTENDIBLE, EXTENSION)) else {
        return indelible_testing::not_tested("instructions of extendible structs: there is no rustc");
    };
    let names: Vec<_> = plain.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["at_add", "at_array", "at_load", "at_price", "at_raise", "at_store", "at_sum", "at_text"]
    );
    for ((name, plain), (other, extended)) in plain.iter().zip(&extended) {
        assert!(name == other && !plain.is_empty(), "{name}, {other}");
        if name == "at_price" {
            assert_ne!(plain, extended, "the comparison sees no difference");
        } else {
            assert_eq!(plain, extended, "{name}");
        }
    }
}
