//! Ends of blocks: cancelled, committed, settled.

#![allow(unsafe_code)]

use super::*;

impl Thread {
    pub(crate) fn cancel(reason: c_int) -> ! {
        let thread = Thread::own();
        if reason & reason::RETRY != 0 {
            Thread::again();
        }
        if reason & reason::CANCEL == 0 || thread.levels.is_empty() {
            fatal("the program cancels a block where none runs, or for a reason that does not exist");
        }
        if reason & reason::OUTER == 0 && thread.levels.len() > 1 {
            Thread::cancel_inner();
        }
        if std::mem::take(&mut thread.irrevocable) {
            fatal("a block is cancelled that cannot be undone any more");
        }
        let (first, called) = thread.stop(false);
        actions::call(called);
        let Some(Level { beginning, .. }) = first else { fatal("no block runs that could be cancelled") };
        // SAFETY: the block ran until here (1); the caller owns nothing (3).
        unsafe { beginning.go_on(action::ABORTED | action::RESTORE) }
    }

    pub(super) fn cancel_inner() -> ! {
        let thread = Thread::own();
        let Some(Level { beginning, marks, checkpoint: Some(checkpoint), .. }) = thread.levels.pop() else {
            fatal("an inner block is cancelled that said it would not be");
        };
        if let Some(mut running) = thread.transaction.running().filter(|_| !Mutant::CheckpointIgnored.is_on())
        {
            running.restore(&checkpoint);
        }
        drop(checkpoint);
        let called = thread.undo(marks, beginning.stack);
        thread.logs = thread.levels.iter().any(|level| level.checkpoint.is_some());
        actions::call(called);
        // SAFETY: the outer block runs, and with it the frame (1); the caller owns nothing (3).
        unsafe { beginning.go_on(action::ABORTED | action::RESTORE) }
    }

    pub(crate) fn end() {
        let thread = Thread::own();
        if thread.levels.len() > 1 {
            thread.levels.pop();
            thread.logs = thread.levels.iter().any(|level| level.checkpoint.is_some());
            return;
        }
        if thread.levels.is_empty() {
            fatal("a block ends that did not begin");
        }
        match thread.commit() {
            Some(receipt) => thread.settle(receipt),
            None => Thread::again(),
        }
        let freed = thread.allocations.take_freed();
        let called = thread.actions.take_commit();
        freed.free();
        actions::call(called);
    }

    /// `None`: a conflict.
    pub(super) fn commit(&mut self) -> Option<Option<Receipt>> {
        if self.generation != fork::generation() {
            // A fork's child in an irrevocable block: there are no others.
            self.transaction.abort(false);
            return Some(None);
        }
        self.irrevocable.then(|| objects::close(true));
        // On demand, a repeatable block learns at once that there is no room.
        if (objects::any_durable() || self.irrevocable && objects::any())
            && let Some(short) =
                self.transaction.running().and_then(|running| objects::shortage(running.writes()))
        {
            if !self.irrevocable {
                // No thread waits for its lines meanwhile.
                self.transaction.abort(false);
                objects::make_room(short);
                return None;
            }
            objects::make_room(short);
        }
        match self.transaction.commit() {
            Ok(receipt) => Some(receipt),
            Err(CommitError::Conflict(_)) => None,
            Err(CommitError::Refused(short)) if !self.irrevocable => {
                objects::make_room(short);
                None
            }
            Err(CommitError::Refused(_) | CommitError::Unacknowledged(_)) => {
                fatal("a block that cannot be run again has no room for what it changed")
            }
            Err(CommitError::Forked) => fatal("a block commits in another process than that where it began"),
        }
    }

    /// Waits until no earlier block runs, so that unlinked memory is the thread's own.
    #[inline]
    pub(super) fn settle(&mut self, receipt: Option<Receipt>) {
        (self.transacts, self.logs, self.stack) = (false, false, 0);
        self.levels.clear();
        self.log.clear();
        self.exceptions.forget();
        let was_alone = std::mem::take(&mut self.irrevocable);
        if let Some(receipt) = receipt.filter(|_| !was_alone) {
            self.transaction.quiesce(receipt.durable_from());
        }
    }
}
