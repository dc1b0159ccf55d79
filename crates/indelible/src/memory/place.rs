//! The place of backings, and their names.

use crate::backing::{Folders, Identity, MEMORY, Origin};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub(crate) struct MemoryLocation {
    pub(crate) pool: [u8; 16],
    pub(crate) boot: [u8; 16],
    pub(crate) beside: Option<PathBuf>,
    pub(crate) origin: Origin,
}

impl MemoryLocation {
    pub(crate) fn folders(&self) -> Folders<'_> {
        let memory = Path::new(MEMORY);
        Folders { memory, beside: self.beside.as_deref().unwrap_or(memory), origin: &self.origin }
    }

    pub(super) fn object(&self, number: u64, object: [u8; 16]) -> Identity {
        Identity { pool: self.pool, object, binding: number, boot: self.boot }
    }

    pub(crate) fn shared(&self, object: [u8; 16], binding: u64) -> Identity {
        self.object(binding, object)
    }

    pub(super) fn part(&self, number: u64, part: u64) -> Identity {
        self.object(number, u128::from(part).to_be_bytes())
    }
}
