use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

type Action = Box<dyn FnOnce()>;

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
        forget(&mut self.committed);
        forget(&mut self.aborted);
    }

    #[inline]
    pub(crate) fn committed(&mut self) {
        forget(&mut self.aborted);
        if !self.committed.is_empty() {
            run(self.committed.drain(..));
        }
    }

    #[inline]
    pub(crate) fn aborted(&mut self) {
        forget(&mut self.committed);
        if !self.aborted.is_empty() {
            run(self.aborted.drain(..).rev());
        }
    }
}

#[inline]
fn forget(actions: &mut Vec<Action>) {
    if !actions.is_empty() {
        actions.clear();
    }
}

/// Runs all, even if one panics; the panic resumes afterwards, unless the thread unwinds.
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
