//! Changes of primaries, under the lane's apply lock (invariant 3 of the lane).

use super::{State, WriterLane};
use crate::error::Result;
use crate::store::locks::lock;
use std::sync::Arc;

impl WriterLane {
    /// Begins a change of primaries or log; waits out holds. Changes do not nest: the inner would
    /// wait for a hold that waits for the outer.
    ///
    /// # Errors
    /// `HeldStill`: nothing happened.
    pub(in crate::store) fn change(self: &Arc<Self>) -> Result<Changing> {
        let (locks, mut deadline) = (&self.apply_locks, None);
        let mut state = lock(&self.state);
        loop {
            let may = match state.changing {
                0 => locks.begin(self.index)?,
                // A waiting hold admits no more changes.
                _ => !locks.is_wanted(self.index)?,
            };
            if may {
                break;
            }
            drop(state);
            locks.pause(self.index, deadline.get_or_insert_with(|| locks.deadline()))?;
            state = lock(&self.state);
        }
        state.changing += 1;
        if state.changing == 1
            && let Err(error) = self.see_revision(&mut state)
        {
            self.changed(&mut state);
            return Err(error);
        }
        let revision = state.revision;
        drop(state);
        Ok(Changing { lane: Some(self.clone()), revision })
    }

    fn see_revision(&self, state: &mut State) -> Result<()> {
        let revision = self.apply_locks.revision(self.index)?;
        if revision != state.revision {
            state.revised(revision);
        }
        Ok(())
    }

    pub(in crate::store) fn revision(&self) -> u64 {
        lock(&self.state).revision
    }

    pub(in crate::store) fn newest_revision(&self) -> Result<u64> {
        self.apply_locks.revision(self.index)
    }

    fn changed(&self, state: &mut State) {
        state.changing -= 1;
        if state.changing == 0 {
            self.apply_locks.end(self.index);
        }
    }
}

#[must_use]
pub(in crate::store) struct Changing {
    lane: Option<Arc<WriterLane>>,
    revision: u64,
}

impl Changing {
    #[inline]
    pub(in crate::store) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn end(&mut self, state: &mut State) {
        if let Some(lane) = self.lane.take() {
            lane.changed(state);
        }
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        if let Some(lane) = &self.lane {
            lane.changed(&mut lock(&lane.state));
        }
    }
}
