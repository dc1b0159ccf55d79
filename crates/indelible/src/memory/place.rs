//! The place of backings, and their names.

use crate::backing::{Folders, Identity, MEMORY, Origin};
use std::path::{Path, PathBuf};

/// The place of the memory of a pool's objects, and its boot.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) pool: [u8; 16],
    pub(crate) boot: [u8; 16],
    /// The pool's folder, if it is one of files.
    pub(crate) beside: Option<PathBuf>,
    /// The pool itself.
    pub(crate) origin: Origin,
}

impl Place {
    pub(crate) fn folders(&self) -> Folders<'_> {
        let memory = Path::new(MEMORY);
        Folders { memory, beside: self.beside.as_deref().unwrap_or(memory), origin: &self.origin }
    }

    /// The memory of an object, by its ID.
    pub(super) fn object(&self, number: u64, object: [u8; 16]) -> Identity {
        Identity { pool: self.pool, object, binding: number, boot: self.boot }
    }

    /// The memory that processes share of an object, which has this number in its entry.
    pub(crate) fn shared(&self, object: [u8; 16], binding: u64) -> Identity {
        self.object(binding, object)
    }

    /// A log, from 1 on; 0: the head. No object has such an ID.
    pub(super) fn part(&self, number: u64, part: u64) -> Identity {
        self.object(number, u128::from(part).to_be_bytes())
    }
}
