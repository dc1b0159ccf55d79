//! The expected index, counted in memory by other code.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

pub type Model = BTreeMap<String, BTreeMap<PathBuf, u64>>;

pub fn model(corpus: &Path) -> Model {
    let mut model = Model::new();
    let mut left = vec![corpus.canonicalize().unwrap()];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let mut bytes = fs::read(&path).unwrap();
        if path.extension().is_some_and(|extension| extension == "gz") {
            let packed = std::mem::take(&mut bytes);
            flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
        }
        if bytes.contains(&0) {
            continue;
        }
        let text = String::from_utf8(bytes).unwrap().to_lowercase();
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| (1..=48).contains(&word.len())) {
            *model.entry(word.into()).or_default().entry(path.clone()).or_default() += 1;
        }
    }
    model
}
