//! When unattached objects may be held.
//!
//! A failed attach or detach may leave the object bound to a lane of the failed process, which
//! others find taken (`Held`). It may keep the lane while it has an object attached for writing.
//! The hold ends when the process dies, or attaches, resizes, destroys or deletes the object.

use super::model::Model;
use super::{PROCESSES, Step};

#[derive(Default)]
pub(super) struct Left(Vec<(usize, usize)>);

impl Left {
    pub(super) fn may_hold(&self, process: usize, call: &Step) -> bool {
        let (Step::Attach { object }
        | Step::Read { object }
        | Step::Resize { object, .. }
        | Step::Rollback { object, .. }
        | Step::Follow { object }
        | Step::Copy { object, .. }) = *call
        else {
            return false;
        };
        self.0.iter().any(|(owner, left)| *owner != process && *left == object)
    }

    pub(super) fn failed(&mut self, process: usize, call: &Step) {
        match *call {
            Step::Attach { object } | Step::Detach { object } | Step::Rollback { object, .. } => {
                self.0.push((process, object));
            }
            // The call may have happened.
            Step::Rename { object, to } => {
                let moved: Vec<_> = self.0.iter().filter(|(_, left)| *left == object).copied().collect();
                self.0.extend(moved.into_iter().map(|(owner, _)| (owner, to)));
            }
            _ => {}
        }
    }

    pub(super) fn done(&mut self, call: &Step) {
        match *call {
            Step::Attach { object }
            | Step::Read { object }
            | Step::Resize { object, .. }
            | Step::Rollback { object, .. }
            | Step::Follow { object }
            | Step::Copy { object, .. }
            | Step::Destroy { object }
            | Step::Delete { object } => self.0.retain(|(_, left)| *left != object),
            Step::Rename { object, to } => {
                self.0.iter_mut().filter(|(_, left)| *left == object).for_each(|(_, left)| *left = to);
            }
            _ => {}
        }
    }

    pub(super) fn settle(&mut self, worlds: &[Model]) {
        let writes = |process: usize| worlds.iter().any(|world| world.writes(process));
        let writing: Vec<bool> = (0..PROCESSES).map(writes).collect();
        self.0.retain(|(owner, _)| writing[*owner]);
    }

    pub(super) fn died(&mut self, process: usize) {
        self.0.retain(|(owner, _)| *owner != process);
    }
}
