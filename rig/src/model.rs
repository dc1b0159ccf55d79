//! The expected content of the pool after each step.

use crate::program::{Change, GUEST, OBJECTS, step};
use std::collections::BTreeMap;
use twox_hash::XxHash3_64;

/// The objects and their bytes after some step.
#[derive(Clone, Debug)]
pub struct Model {
    seed: u64,
    pub number: u64,
    pub objects: BTreeMap<&'static str, Vec<u8>>,
}

impl Model {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let objects = OBJECTS.iter().map(|(name, size)| (*name, vec![0; *size as usize])).collect();
        Model { seed, number: 0, objects }
    }

    pub fn advance(&mut self) {
        self.number += 1;
        match step(self.seed, self.number).change {
            Change::Psync(stores) => {
                for (name, puts) in stores {
                    // A store acts only on an existing object.
                    let Some(object) = self.objects.get_mut(name) else { continue };
                    for put in puts {
                        object[put.at..][..put.bytes.len()].copy_from_slice(&put.bytes);
                    }
                }
            }
            Change::Create(size) => drop(self.objects.insert(GUEST, vec![0; size as usize])),
            Change::Grow(size) => {
                if let Some(object) = self.objects.get_mut(GUEST) {
                    object.resize(size as usize, 0);
                }
            }
            Change::Destroy => drop(self.objects.remove(GUEST)),
        }
    }

    /// The state after step `number`, not before this one.
    #[must_use]
    pub fn at(mut self, number: u64) -> Self {
        while self.number < number {
            self.advance();
        }
        self
    }

    /// A line that identifies the whole state.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint(self.objects.iter().map(|(name, bytes)| (*name, bytes.as_slice())))
    }
}

/// A line that identifies all objects, in the order of names.
pub fn fingerprint<'a>(objects: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let words: Vec<_> = objects
        .map(|(name, bytes)| format!("{name}:{}:{:016x}", bytes.len(), XxHash3_64::oneshot(bytes)))
        .collect();
    words.join(" ")
}
