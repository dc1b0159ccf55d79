//! Headers of a compiler, such as `stddef.h`: libclang expects them beside itself, where
//! distributions may lack them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn flags(version: &str) -> Vec<String> {
    let number =
        version.split_whitespace().find(|word| word.starts_with(|letter: char| letter.is_ascii_digit()));
    let major = number.and_then(|number| number.split('.').next()).unwrap_or_default();
    if let Some(folder) = resources(major) {
        return vec!["-resource-dir".to_owned(), folder.display().to_string()];
    }
    let output = Command::new("cc").arg("-print-file-name=include").output();
    let folder = output.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    match Path::new(folder.trim()).is_absolute() {
        true => vec!["-isystem".to_owned(), folder.trim().to_owned()],
        false => Vec::new(),
    }
}

fn resources(major: &str) -> Option<PathBuf> {
    let roots =
        [format!("/usr/lib/llvm-{major}/lib/clang"), "/usr/lib/clang".into(), "/usr/lib64/clang".into()];
    let mut all = roots.iter().flat_map(|root| fs::read_dir(root).into_iter().flatten().flatten());
    let same = |name: &str| name == major || name.starts_with(&format!("{major}."));
    let found = all.find(|entry| {
        entry.file_name().to_str().is_some_and(same) && entry.path().join("include/stddef.h").exists()
    });
    found.map(|entry| entry.path())
}
