//! Actions that a program has asked for, to be done once its transaction has ended.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

type Action = Box<dyn FnOnce()>;

/// Actions of one try of a transaction.
#[derive(Default)]
pub(crate) struct Actions {
    committed: Vec<Action>,
    aborted: Vec<Action>,
}

impl Actions {
    pub(crate) fn on_commit(&mut self, action: Action) {
        self.committed.push(action);
    }

    pub(crate) fn on_abort(&mut self, action: Action) {
        self.aborted.push(action);
    }

    #[inline]
    pub(crate) fn forget(&mut self) {
        self.committed.clear();
        self.aborted.clear();
    }

    /// The transaction has committed: in the order in which they were asked for.
    #[inline]
    pub(crate) fn committed(&mut self) {
        self.aborted.clear();
        if !self.committed.is_empty() {
            run(self.committed.drain(..));
        }
    }

    /// It was aborted: the last one first, as one undoes.
    #[inline]
    pub(crate) fn aborted(&mut self) {
        self.committed.clear();
        if !self.aborted.is_empty() {
            run(self.aborted.drain(..).rev());
        }
    }
}

/// Runs all of them, also if one panics; that goes on afterwards, unless the thread unwinds already.
#[cold]
fn run(actions: impl Iterator<Item = Action>) {
    let mut panicked = None;
    for action in actions {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(action)) {
            panicked.get_or_insert(payload);
        }
    }
    if let Some(payload) = panicked
        && !std::thread::panicking()
    {
        resume_unwind(payload);
    }
}
