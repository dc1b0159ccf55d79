#![allow(unsafe_code)]

use super::{Core, pages};
use crate::dirty::PageRange;
use crate::error::Cause;
use crate::object::compare::{LINE, extend};
use crate::object::origin::Trust;
use crate::object::tracked::Tracked;
use crate::shadow::{Shadow, each_run};
use crate::sys::PAGE;
use indelible_store::error::StoreError;
use indelible_store::store::PageImage;
use std::ops::ControlFlow;

struct Undo {
    page: u64,
    lines: u64,
    then: Option<Box<PageImage>>,
}

impl Undo {
    fn apply(&self, shadow: &Shadow) {
        let bytes = shadow.page_bytes(self.page).cast_mut();
        each_run(self.lines, |first, count| {
            let (at, len) = (first * LINE, count * LINE);
            // SAFETY: lines of a page of the shadow, which the caller of `revert` has exclusively.
            unsafe {
                match &self.then {
                    Some(then) => bytes.add(at).copy_from_nonoverlapping(then.0.as_ptr().add(at), len),
                    None => bytes.add(at).write_bytes(0, len),
                }
            }
        });
    }
}

impl Core {
    /// After an error nothing is undone: everything is read before the first store. The caller has
    /// the object exclusively.
    pub(crate) fn revert(&mut self) -> Result<(), Cause> {
        // Only the next attach tells whether the failed psync took effect.
        if self.writer()?.is_poisoned() {
            return Err(StoreError::Poisoned.into());
        }
        let fresh = self.fresh()?;
        let mut undo = Vec::new();
        self.each_difference(|page, lines, then| {
            let then = (page < fresh).then(|| {
                let mut copy = Box::new(PageImage([0; PAGE]));
                copy.0.copy_from_slice(&then.0);
                copy
            });
            undo.push(Undo { page, lines, then });
            ControlFlow::Continue(())
        })?;
        let shadow = self.tracked.shadow()?;
        undo.iter().for_each(|undo| undo.apply(shadow));
        for range in &self.tracked.ranges {
            let start = range.start.max(fresh);
            if start < range.end() {
                // A failed psync may have changed the primary: the next one compares.
                shadow.mark_again(PageRange { start, count: range.end() - start });
            }
        }
        settle_undone(&mut self.tracked, &undo);
        if self.writer()?.sealed_pages().is_some() {
            undo.iter_mut().filter_map(|undo| undo.then.as_mut()).for_each(|then| then.0.fill(0));
            std::hint::black_box(&undo);
        }
        if self.trust == Trust::Verified {
            self.trust = Trust::Foreign;
        }
        Ok(())
    }
}

fn settle_undone(tracked: &mut Tracked, undone: &[Undo]) {
    tracked.changed.clear();
    tracked.unchanged.clear();
    let mut changed = undone.iter().map(|undo| undo.page).peekable();
    for page in pages(&tracked.ranges) {
        let runs = match changed.next_if_eq(&page) {
            Some(_) => &mut tracked.changed,
            None => &mut tracked.unchanged,
        };
        extend(runs, page);
    }
    let _ = tracked.settle();
}
