//! Files to words.

use flate2::read::MultiGzDecoder;
use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use twox_hash::XxHash3_64;

/// Longer ones are data in disguise.
const LONGEST: usize = 48;
/// Larger texts are skipped.
const LARGEST: u64 = 64 << 20;

/// A portable hash of a word or path.
#[must_use]
pub fn hash(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// A fast hash of short text, for tables in memory.
#[derive(Debug, Default)]
pub struct Short(u64);

impl Hasher for Short {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = self.0.rotate_left(5) ^ hash(bytes);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Tells whether a file is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    pub size: u64,
    /// Modification time in nanoseconds since 1970.
    pub modified: i64,
}

/// Words of a text.
#[derive(Debug, Default)]
pub struct Digest {
    pub counts: HashMap<Box<str>, u64, BuildHasherDefault<Short>>,
    pub tokens: u64,
    pub bytes: u64,
}

impl Digest {
    fn count(&mut self, word: &mut String) {
        if !word.is_empty() && word.len() <= LONGEST {
            self.tokens += 1;
            match self.counts.get_mut(word.as_str()) {
                Some(count) => *count += 1,
                None => _ = self.counts.insert(word.as_str().into(), 1),
            }
        }
        word.clear();
    }
}

/// Words are runs of letters and digits, in lower case.
pub(crate) fn digest(text: &[u8]) -> Digest {
    let mut digest = Digest { bytes: text.len() as u64, ..Digest::default() };
    let text = String::from_utf8_lossy(text);
    let mut word = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        } else if !c.is_ascii() && c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        } else {
            digest.count(&mut word);
        }
    }
    digest.count(&mut word);
    digest
}

pub(crate) fn read(path: &Path) -> io::Result<(Version, Option<Digest>)> {
    let mut file = File::open(path)?;
    let version = version(&file.metadata()?);
    let mut text = Vec::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        if MultiGzDecoder::new(file).take(LARGEST + 1).read_to_end(&mut text).is_err() {
            return Ok((version, None));
        }
    } else {
        Read::by_ref(&mut file).take(8192).read_to_end(&mut text)?;
        if version.size > LARGEST || text.contains(&0) {
            return Ok((version, None));
        }
        file.take(LARGEST).read_to_end(&mut text)?;
    }
    if text.len() as u64 > LARGEST || text.contains(&0) {
        return Ok((version, None));
    }
    Ok((version, Some(digest(&text))))
}

pub(crate) fn version(metadata: &std::fs::Metadata) -> Version {
    let modified = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
    Version { size: metadata.len(), modified }
}
