//! Changes that the `with` block of a pool makes durable at its end: of all things that its handle
//! has opened, and of those without references, which the block keeps for that.
//!
//! Locks: `state` is never held while Python code runs, or while a lock of an attachment is
//! awaited.

use crate::attachment::Attachment;
use crate::held::Held;
use crate::patience;
use indelible::Heap;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A changed log, view or security context without references.
pub(crate) trait Dropped: Send {
    fn psync(&mut self) -> indelible::Result<()>;
}

/// Changes that the end of a pool's block psyncs.
#[derive(Default)]
pub(crate) struct Kept(Mutex<State>);

#[derive(Default)]
struct State {
    /// In a block: changes are kept when the last reference to them goes.
    keeps: bool,
    opened: Vec<Weak<Attachment>>,
    dropped: Vec<(String, Held)>,
    others: Vec<(String, Box<dyn Dropped>)>,
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self) {
        self.lock().keeps = true;
    }

    pub(crate) fn add(self: &Arc<Self>, attachment: &Arc<Attachment>) {
        if !attachment.opened_by(self) {
            return;
        }
        let mut state = self.lock();
        if state.opened.len() == state.opened.capacity() {
            state.opened.retain(|opened| opened.strong_count() > 0);
        }
        state.opened.push(Arc::downgrade(attachment));
    }

    /// Keeps an object's changes for the end of the block; outside of a block returns them.
    pub(crate) fn keep(&self, name: &str, held: Held) -> Option<Held> {
        let mut state = self.lock();
        if !state.keeps {
            return Some(held);
        }
        state.dropped.push((name.to_owned(), held));
        None
    }

    /// The same for other things.
    pub(crate) fn keep_other<T: Dropped + 'static>(&self, what: &str, other: T) -> Result<(), T> {
        let mut state = self.lock();
        if !state.keeps {
            return Err(other);
        }
        state.others.push((what.to_owned(), Box::new(other)));
        Ok(())
    }

    /// Returns the kept object at `address`, if it `fits`.
    pub(crate) fn take(&self, address: usize, fits: impl Fn(&Held) -> bool) -> Option<Held> {
        let mut state = self.lock();
        let found = state.dropped.iter().position(|(_, held)| held.base().addr() == address && fits(held))?;
        Some(state.dropped.swap_remove(found).1)
    }

    pub(crate) fn has_any(&self) -> bool {
        let state = self.lock();
        !state.dropped.is_empty() || !state.others.is_empty()
    }

    /// Makes the block's objects durable and detaches them, for another user.
    pub(crate) fn settle(&self) -> indelible::Result<()> {
        let (mut dropped, mut others) = {
            let mut state = self.lock();
            (std::mem::take(&mut state.dropped), std::mem::take(&mut state.others))
        };
        let done = psync_together(dropped.iter_mut().map(|(_, held)| held))
            .and_then(|()| others.iter_mut().try_for_each(|(_, other)| other.psync()));
        if done.is_err() {
            self.put_back(dropped, others);
        }
        done
    }

    /// Keeps changes that could not be made durable.
    fn put_back(&self, dropped: Vec<(String, Held)>, others: Vec<(String, Box<dyn Dropped>)>) {
        let mut state = self.lock();
        state.dropped.extend(dropped);
        state.others.extend(others);
    }

    /// Ends the block, or the pool in it: names of things whose changes are lost.
    pub(crate) fn lose(&self) -> Vec<String> {
        let mut state = self.lock();
        state.keeps = false;
        let dropped = std::mem::take(&mut state.dropped);
        let others = std::mem::take(&mut state.others);
        drop(state);
        let objects = dropped.iter().map(|(name, _)| format!("object {name:?}"));
        objects.chain(others.iter().map(|(what, _)| what.clone())).collect()
    }

    /// Ends the block: makes all changes durable, those of objects as one step; returns the names
    /// of changed objects.
    pub(crate) fn psync(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let (opened, mut dropped, mut others) = {
            let mut state = self.lock();
            let opened: Vec<_> = state.opened.iter().filter_map(Weak::upgrade).collect();
            (opened, std::mem::take(&mut state.dropped), std::mem::take(&mut state.others))
        };
        let mut opened: Vec<_> = opened.into_iter().filter(|attachment| attachment.is_ours()).collect();
        // In the order of `psync_all`.
        opened.sort_by_key(|attachment| Arc::as_ptr(attachment).addr());
        let psync = || {
            let mut locked: Vec<_> =
                opened.iter().map(|attachment| (attachment, attachment.open())).collect();
            let mut held: Vec<(&str, &mut Held)> = Vec::new();
            for (attachment, open) in &mut locked {
                if let Some(open) = open.as_mut().and_then(|open| open.as_mut()) {
                    held.push((&attachment.name, open));
                }
            }
            held.extend(dropped.iter_mut().map(|(name, held)| (&**name, held)));
            let psyncs = |held: &mut Held| held.object().map_or(0, indelible::Object::psyncs);
            let before: Vec<u64> = held.iter_mut().map(|(_, held)| psyncs(held)).collect();
            psync_together(held.iter_mut().map(|(_, held)| &mut **held))?;
            let mut names = Vec::new();
            for ((name, held), before) in held.iter_mut().zip(before) {
                if psyncs(held) > before {
                    names.push(format!("object {name:?}"));
                }
            }
            for (what, other) in &mut others {
                other.psync()?;
                names.push(what.clone());
            }
            Ok(names)
        };
        let done = patience::in_slices(py, psync);
        match &done {
            Ok(_) => py.detach(|| drop((dropped, others))),
            Err(_) => self.put_back(dropped, others),
        }
        done
    }
}

/// psync of several as one step.
fn psync_together<'a>(all: impl Iterator<Item = &'a mut Held>) -> indelible::Result<()> {
    let (mut objects, mut heaps) = (Vec::new(), Vec::new());
    for held in all {
        match held {
            Held::Writer(object) => objects.push(&mut **object),
            Held::Heap(heap) => heaps.push(&mut **heap),
            Held::Reader(_) | Held::ReadHeap(_) => {}
        }
    }
    Heap::psync_all(&mut heaps, &mut objects)
}
