//! Changes of primaries, which begin and end under the lane's apply lock (invariant 3 of the lane).

use super::{State, WriterLane};
use crate::error::Result;
use crate::store::locks::lock;
use crate::sync::MutexGuard;

impl WriterLane {
    /// Begins a change of primaries of the lane's objects, or of its log. Waits while another process, or another thread, holds
    /// them still.
    ///
    /// # Errors
    /// `HeldStill`: nothing happened.
    pub(in crate::store) fn change(&self) -> Result<Changing<'_>> {
        let (changing, state) = self.change_with(lock(&self.state))?;
        drop(state);
        Ok(changing)
    }

    pub(super) fn change_with<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> Result<(Changing<'a>, MutexGuard<'a, State>)> {
        let (locks, mut deadline) = (&self.apply_locks, None);
        loop {
            let may = match state.changing {
                0 => locks.begin(self.index)?,
                // Others come in as long as nobody waits for all to be out.
                _ => !locks.is_wanted(self.index)?,
            };
            if may {
                state.changing += 1;
                return Ok((Changing { lane: self }, state));
            }
            drop(state);
            locks.pause(self.index, deadline.get_or_insert_with(|| locks.deadline()))?;
            state = lock(&self.state);
        }
    }

    /// A change ends.
    fn changed(&self, state: &mut State) {
        state.changing -= 1;
        if state.changing == 0 {
            self.apply_locks.end(self.index);
        }
    }
}

/// A change of primaries that was begun; see invariant 3 of the lane. Ends when it is dropped, which takes the lane's lock.
#[must_use]
pub(in crate::store) struct Changing<'a> {
    lane: &'a WriterLane,
}

impl Changing<'_> {
    /// Ends it, with the lane's lock taken.
    pub(super) fn end(self, state: &mut State) {
        self.lane.changed(state);
        std::mem::forget(self);
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.lane.changed(&mut lock(&self.lane.state));
    }
}
