//! Objects with a header and fixed-size entries (FORMAT.md, sections 12 and 14).

use std::ops::Range;

pub const HEADER: usize = 64;

pub struct Entries {
    pub magic: [u8; 8],
    pub version: u32,
    pub size: usize,
    pub most: usize,
    pub noun: &'static str,
}

pub const VIEW: Entries = Entries { magic: *b"PMO-VIEW", version: 1, size: 32, most: 65_536, noun: "slots" };

pub const CONTEXT: Entries =
    Entries { magic: *b"PMO-CTXT", version: 1, size: 128, most: 65_536, noun: "entries" };

#[derive(Debug)]
pub enum Misfit {
    /// They begin otherwise.
    Other,
    Version {
        found: u32,
        known: u32,
    },
    Damaged(String),
}

impl Entries {
    pub const fn len(&self, entries: usize) -> usize {
        HEADER + entries * self.size
    }

    pub fn most_bytes(&self) -> usize {
        self.len(self.most).next_multiple_of(4096)
    }

    pub fn header(&self, entries: usize) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.magic);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[12..16].copy_from_slice(&(entries as u32).to_le_bytes());
        bytes
    }

    pub const fn place(&self, number: usize) -> Range<usize> {
        self.len(number)..self.len(number + 1)
    }

    pub fn count(&self, bytes: &[u8]) -> Result<usize, Misfit> {
        let word =
            |at: usize| bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_le_bytes);
        let (Some(version), Some(entries)) = (word(8), word(12)) else { return Err(Misfit::Other) };
        if !bytes.starts_with(&self.magic) {
            return Err(Misfit::Other);
        }
        if version != self.version {
            return Err(Misfit::Version { found: version, known: self.version });
        }
        let entries = entries as usize;
        if entries > self.most || self.len(entries) > bytes.len() {
            let (noun, has) = (self.noun, bytes.len());
            return Err(Misfit::Damaged(format!(
                "it has {has} bytes, and says that it has {entries} {noun}"
            )));
        }
        Ok(entries)
    }

    pub fn all<'b>(
        &self,
        bytes: &'b [u8],
    ) -> Result<impl Iterator<Item = (usize, Option<&'b [u8]>)> + use<'b, '_>, Misfit> {
        let entries = (0..self.count(bytes)?).map(|number| (number, &bytes[self.place(number)]));
        Ok(entries.map(|(number, entry)| (number, entry.iter().any(|byte| *byte != 0).then_some(entry))))
    }
}

pub fn target(entry: &[u8]) -> Option<[u8; 16]> {
    let target: [u8; 16] = entry.get(..16)?.try_into().ok()?;
    (target != [0; 16]).then_some(target)
}
