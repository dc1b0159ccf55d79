//! The project's files, for the other modules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

pub fn files(folder: &str, endings: &[&str]) -> BTreeMap<String, String> {
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

pub fn sources(folder: &str) -> BTreeMap<String, String> {
    let files = files(folder, &[".rs"]);
    assert!(!files.is_empty(), "no sources in {folder}: the test looks in the wrong place");
    files
}

pub fn shipped(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut parts = code.split("#[cfg(test)]");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|part| kept += behind_item(part));
    kept
}

/// The code behind its first item: a `mod` or `use` line, or anything with a body.
fn behind_item(code: &str) -> &str {
    let mut depth = 0;
    for (at, letter) in code.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return &code[at..];
        }
        if depth == 0 && (letter == ';' || letter == '}') {
            // A `use` line with braces ends at its semicolon.
            let rest = &code[at + 1..];
            return rest.strip_prefix(';').unwrap_or(rest);
        }
    }
    ""
}
