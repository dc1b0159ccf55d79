use crate::text::{Version, version};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

pub(crate) struct Corpus {
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) files: Vec<(PathBuf, Version)>,
    pub(crate) unreadable: u64,
}

pub(crate) fn default_folders() -> Vec<PathBuf> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let system = Path::new("/usr/share/doc");
    project.into_iter().chain([system]).filter(|path| path.is_dir()).map(Path::to_owned).collect()
}

impl Corpus {
    /// Regular files below `folders`; skips symbolic links, hidden folders, build output (`target`)
    /// and pools.
    pub(crate) fn walk(folders: &[PathBuf], mut seen: impl FnMut(usize)) -> Result<Corpus> {
        let mut corpus = Corpus { roots: Vec::new(), files: Vec::new(), unreadable: 0 };
        for folder in folders {
            let root = folder.canonicalize().with_context(|| format!("cannot read {}", folder.display()))?;
            corpus.roots.push(root);
        }
        let mut left = corpus.roots.clone();
        while let Some(path) = left.pop() {
            let Ok(metadata) = path.symlink_metadata() else {
                continue;
            };
            if metadata.is_file() {
                corpus.files.push((path, version(&metadata)));
                seen(corpus.files.len());
            } else if metadata.is_dir() {
                match std::fs::read_dir(&path) {
                    Ok(entries) => left
                        .extend(entries.flatten().map(|entry| entry.path()).filter(|path| !is_private(path))),
                    Err(_) => corpus.unreadable += 1,
                }
            }
        }
        corpus.files.sort_by(|a, b| a.0.cmp(&b.0));
        corpus.files.dedup_by(|a, b| a.0 == b.0);
        Ok(corpus)
    }

    pub(crate) fn covers(&self, path: &Path) -> bool {
        self.unreadable == 0 && self.roots.iter().any(|root| path.starts_with(root))
    }

    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.files.binary_search_by(|(file, _)| file.as_path().cmp(path)).is_ok()
    }
}

fn is_private(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(b".")
        || name.ends_with(b".pmo")
        || (name.starts_with(b"target") && path.join("CACHEDIR.TAG").exists())
}
