#![allow(unsafe_code)]

use super::anchored::{self, Told};
use crate::error::Cause;
use crate::pool::{Anchor, Inner as PoolInner, SealKey};
use crate::shadow::Shadow;
use crate::sys::PAGE;
use indelible_store::error::{SealError, StoreError};
use indelible_store::store::{Lines, Reader, Unlocked};
use indelible_store::table::Located;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Addresses {
    Own,
    Any,
}

#[derive(Clone)]
pub(crate) struct Opener {
    owner: SealKey,
    object: Option<Unlocked>,
}

impl From<&SealKey> for Opener {
    fn from(owner: &SealKey) -> Self {
        Opener { owner: owner.clone(), object: None }
    }
}

/// Pages that may lie over a base, whatever the object's size.
const PAGES: usize = 4096;

/// Protecting one more run takes as long as protecting so many pages.
const GAP: usize = 128;

/// Each run is a mapping of its own meanwhile, of which a process has 65,530.
const RUNS: usize = 512;

fn runs(touched: &BTreeSet<usize>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for page in touched {
        let are_many = runs.len() == RUNS;
        match runs.last_mut() {
            Some(run) if page - run.end <= GAP || are_many => run.end = page + 1,
            _ => runs.push(*page..page + 1),
        }
    }
    runs
}

pub(crate) struct Follows {
    pub(super) key: Vec<u8>,
    pub(super) addresses: Addresses,
    pub(super) laid: BTreeSet<usize>,
    pub(super) opener: Option<Opener>,
}

impl Follows {
    pub(crate) fn new(key: &[u8], addresses: Addresses, opener: Option<Opener>) -> Self {
        Follows { key: key.to_vec(), addresses, laid: BTreeSet::new(), opener }
    }

    pub(super) fn anchor(&self) -> Option<&Arc<dyn Anchor>> {
        self.opener.as_ref()?.owner.anchor.as_ref()
    }

    pub(super) fn told(&self) -> Result<Option<Told>, Cause> {
        Ok(self.anchor().map(|anchor| anchored::ask(&**anchor)).transpose()?.flatten())
    }

    pub(super) fn judge(
        &self,
        object: &Located,
        reader: &Reader,
        before: Option<&Told>,
    ) -> Result<(), Cause> {
        let Some(pages) = reader.sealed_pages() else { return Ok(()) };
        anchored::check_beside(object, &pages, self.anchor(), before)
    }

    pub(super) fn open(&mut self, pool: &PoolInner, mut reader: Reader) -> Result<Reader, Cause> {
        match self.unseal(&mut reader) {
            Ok(()) => Ok(reader),
            Err(cause) => {
                let _ = pool.store.end_snapshot(reader);
                Err(cause)
            }
        }
    }

    fn unseal(&mut self, reader: &mut Reader) -> Result<(), Cause> {
        let Some(opener) = &mut self.opener else {
            let sealed = reader.object().is_sealed();
            return if sealed { Err(StoreError::from(SealError::KeyNeeded).into()) } else { Ok(()) };
        };
        let known = |unlocked: &&Unlocked| reader.key_page().is_ok_and(|page| unlocked.is_for(&page));
        let unlocked = match opener.object.as_ref().filter(known) {
            Some(unlocked) => unlocked.clone(),
            None => reader.unlock(&opener.owner.key)?,
        };
        reader.unseal(&unlocked)?;
        opener.object = Some(unlocked);
        Ok(())
    }

    /// `false`: too many, or an unreadable page.
    ///
    /// # Safety
    /// No thread reads the object meanwhile or has a reference into it.
    pub(super) unsafe fn lay(&mut self, shadow: &mut Shadow, lines: &Lines) -> bool {
        let mut touched = BTreeSet::new();
        for (offset, bytes) in lines.iter() {
            let (from, to) = (offset as usize / PAGE, (offset as usize + bytes.len()).div_ceil(PAGE));
            touched.extend(from..to);
        }
        let all = shadow.len() / PAGE;
        if touched.last().is_some_and(|last| *last >= all) {
            return false;
        }
        for page in &touched {
            if self.laid.insert(*page) && shadow.prefault(*page..page + 1).is_err() {
                return false;
            }
        }
        // SAFETY: the caller's promise; the bytes lie in these runs, which the object has.
        self.laid.len() <= PAGES.max(all / 4)
            && unsafe { shadow.lay_over(&runs(&touched), lines.iter()) }.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_all_pages_and_few_gaps() {
        assert_eq!(runs(&BTreeSet::new()), []);
        assert_eq!(runs(&[3, 4, 200].into()), [3..5, 200..201]);
        assert_eq!(runs(&[0, GAP, GAP + 1, 999].into()), [0..GAP + 2, 999..1000]);
        let many: BTreeSet<usize> = (0..2 * RUNS).map(|nth| nth * (GAP + 2)).collect();
        let found = runs(&many);
        assert_eq!(found.len(), RUNS);
        assert!(many.iter().all(|page| found.iter().any(|run| run.contains(page))));
    }
}
