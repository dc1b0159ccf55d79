//! The program's functions to call after a block has committed or is undone.

use crate::blocks::{Thread, fatal};
use crate::mutant::Mutant;
use std::ffi::c_void;

type Function = extern "C" fn(*mut c_void);
pub(crate) type Called = Vec<(Function, *mut c_void)>;

#[derive(Default)]
pub(crate) struct Actions {
    commit: Vec<(Function, *mut c_void)>,
    undo: Vec<(Function, *mut c_void)>,
}

impl Actions {
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.commit.len(), self.undo.len())
    }

    pub(crate) fn take_commit(&mut self) -> Called {
        self.undo.clear();
        std::mem::take(&mut self.commit)
    }

    pub(crate) fn take_undo(&mut self, (commit, undo): (usize, usize)) -> Called {
        self.commit.truncate(commit);
        let mut all = self.undo.split_off(undo);
        all.reverse();
        if Mutant::UndoActionsForgotten.is_on() { Called::new() } else { all }
    }
}

/// Calls them; they may use the thread's state, as any block may.
pub(crate) fn call(all: Called) {
    for (function, argument) in all {
        function(argument);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn _ITM_addUserCommitAction(function: Function, transaction: u64, argument: *mut c_void) {
    if Thread::with(|thread| {
        if transaction > 1 && transaction != thread.id() {
            fatal("an action on commit is for another transaction than the one that runs");
        }
        thread.actions.commit.push((function, argument));
    })
    .is_none()
    {
        function(argument);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn _ITM_addUserUndoAction(function: Function, argument: *mut c_void) {
    Thread::with(|thread| thread.actions.undo.push((function, argument)));
}
