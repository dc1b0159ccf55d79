//! The debug mode: guard bytes behind blocks, and a pattern in freed blocks, checked before reuse.
//! Earlier attachments' blocks are not guarded.

use super::error::{HeapError, Result};
use super::window::Window;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

pub(super) const BEHIND: usize = 16;
pub const GUARD: u8 = 0xc5;
pub const FREED: u8 = 0xdd;

#[derive(Clone, Copy, Debug)]
enum Block {
    Live { asked: usize, room: usize },
    Free { room: usize },
}

#[derive(Default)]
pub(super) struct Guard {
    blocks: Mutex<BTreeMap<u64, Block>>,
}

impl Guard {
    fn blocks(&self) -> MutexGuard<'_, BTreeMap<u64, Block>> {
        self.blocks.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn given(&self, window: &Window, offset: u64, asked: usize, room: usize) -> Result<()> {
        let mut blocks = self.blocks();
        let before = blocks.insert(offset, Block::Live { asked, room });
        if let Some(Block::Free { room }) = before {
            check(window, offset, 0..room, FREED, "memory, while it was free,")?;
        }
        window.fill(offset + asked as u64, room - asked, GUARD)
    }

    pub(super) fn asked(&self, offset: u64) -> Option<usize> {
        match self.blocks().get(&offset) {
            Some(Block::Live { asked, .. }) => Some(*asked),
            _ => None,
        }
    }

    pub(super) fn check(&self, window: &Window, offset: u64) -> Result<()> {
        match self.blocks().get(&offset) {
            Some(Block::Live { asked, room }) => {
                check(window, offset, *asked..*room, GUARD, "memory behind the end")
            }
            _ => Ok(()),
        }
    }

    pub(super) fn freed(&self, window: &Window, offset: u64, room: usize, keep: bool) -> Result<()> {
        let mut blocks = self.blocks();
        window.fill(offset, room, FREED)?;
        if keep {
            blocks.insert(offset, Block::Free { room })
        } else {
            blocks.remove(&offset)
        };
        Ok(())
    }

    pub(super) fn forget(&self, range: Range<u64>) {
        let mut blocks = self.blocks();
        let gone: Vec<u64> = blocks.range(range).map(|(offset, _)| *offset).collect();
        for offset in gone {
            blocks.remove(&offset);
        }
    }

    pub(super) fn check_all(&self, window: &Window) -> Vec<HeapError> {
        let blocks = self.blocks();
        let look = |(offset, block): (&u64, &Block)| match block {
            Block::Live { asked, room } => {
                check(window, *offset, *asked..*room, GUARD, "memory behind the end")
            }
            Block::Free { room } => check(window, *offset, 0..*room, FREED, "memory, while it was free,"),
        };
        blocks.iter().filter_map(|block| look(block).err()).collect()
    }
}

fn check(window: &Window, offset: u64, range: Range<usize>, byte: u8, what: &'static str) -> Result<()> {
    let mut bytes = vec![0; range.len()];
    window.read(offset + range.start as u64, &mut bytes)?;
    if bytes.iter().all(|found| *found == byte) {
        return Ok(());
    }
    Err(HeapError::Overwritten { address: window.base() + offset as usize, what })
}
