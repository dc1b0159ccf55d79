//! Cuts on this rung, at the cost of the changed pages.
//!
//! Each look for dirty pages also protects them ([`sweep`](WpAsync::sweep)), so the next finds
//! exactly later stores. If a look finds only pages that were copied after the look before, or
//! whose stores wait, then content and primary together are the object at the begin of that look:
//! the moment of the cut.
//!
//! Invariants, while `cut`:
//! 1. All pages that the looks found are in `pending`, and `collect` reports these.
//! 2. Each of them has its copy in `copies`, or stores to it wait at the gate.
//! 3. `settle` protects nothing, so that stores after the cut are found.

#![allow(unsafe_code)]

use super::WpAsync;
use crate::dirty::backend::Backend;
use crate::dirty::cut::{Beside, Bystanders, Cut};
use crate::dirty::policy::ScanPolicy;
use crate::dirty::range::{self, PageRange};
use crate::sys::PAGE;
use std::io;

const LOOKS: u32 = 4;
/// Runs protected one by one; each is a mapping, of which a process has 65,530 by default.
const RUNS: usize = 1024;

impl<P: ScanPolicy> WpAsync<P> {
    pub(super) fn take_cut(&mut self, cut: Cut<'_>) -> io::Result<()> {
        let done = match cut {
            Cut::Copied(others) => self.copy(others),
            Cut::Frozen => Ok(false),
            Cut::Closed => self.close().map(|()| true),
            Cut::Pages(pages) => {
                let held = self.gate.begin().and_then(|()| self.gate.close(pages));
                return held.inspect_err(|_| drop(Backend::release(self)));
            }
        };
        let done = done.and_then(|done| if done { Ok(()) } else { self.freeze() });
        match &done {
            Ok(()) => self.cut = true,
            Err(_) => drop(Backend::release(self)),
        }
        done
    }

    fn copy(&mut self, others: &mut dyn Bystanders) -> io::Result<bool> {
        let mut found = self.pending.clone();
        self.sweep(&mut found)?;
        for round in 0.. {
            if found.is_empty() {
                return Ok(true);
            }
            let more: u64 = found.iter().map(|run| run.count).sum();
            match others.before_copy(round, (self.copies.count() + more as usize) * PAGE) {
                Beside::Copy => {}
                Beside::HoldUp => break,
                Beside::GiveUp => return Err(io::ErrorKind::WouldBlock.into()),
            }
            // SAFETY: pages of the range, which outlives the tracker.
            unsafe { self.copies.take(self.base, &found) };
            found.clear();
            self.sweep(&mut found)?;
        }
        self.copies.clear();
        Ok(false)
    }

    fn freeze(&mut self) -> io::Result<()> {
        self.gate.begin()?;
        let (mut frozen, mut found) = (Vec::new(), self.pending.clone());
        for _ in 0..LOOKS {
            self.sweep(&mut found)?;
            let new = range::without(&found, &frozen);
            if new.is_empty() {
                return Ok(());
            }
            if frozen.len() + new.len() > RUNS {
                break;
            }
            new.iter().try_for_each(|run| self.gate.close(*run))?;
            frozen.extend(new);
            range::normalise(&mut frozen, 0);
            found.clear();
        }
        self.close()
    }

    fn close(&mut self) -> io::Result<()> {
        self.gate.begin()?;
        self.gate.close(PageRange::new(0, self.pages))?;
        self.sweep(&mut Vec::new())
    }

    fn sweep(&mut self, found: &mut Vec<PageRange>) -> io::Result<()> {
        (self.protects, self.beside) = (true, true);
        self.protect.clear();
        self.quiet_at = None;
        let kept = found.len();
        let swept = self.gather(true, kept, found);
        let swept =
            swept.and_then(|()| if self.protect.is_empty() { Ok(false) } else { self.reveal(kept, found) });
        self.beside = false;
        range::normalise(found, 0);
        swept.map(drop)
    }
}
