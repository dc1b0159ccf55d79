//! A transaction that its caller, C, runs again, naming memory by the objects' own addresses.

#![allow(unsafe_code)]

use super::attached::Attached;
use super::home::{After, Full, Home, Stuck};
use super::member::Member;
use super::run::{check, expect_together};
use super::words::{ObjectWords, Running};
use crate::error::{Cause, Error, Result, TransactionError};
use crate::pool::{Class, Inside};
use crate::sys::fork;
use indelible_stm::{CommitError, Conflict, Number};
use indelible_store::error::StoreError;
use std::sync::Arc;

pub(crate) struct OpenTx {
    inside: Option<Inside>,
    member: Member,
    objects: Vec<Arc<Home>>,
    strict: bool,
    generation: u32,
    conflicted: bool,
    full: Option<Full>,
    stuck: Vec<Stuck>,
}

impl OpenTx {
    pub(crate) fn begin(objects: Vec<Arc<Home>>) -> Result<OpenTx> {
        let Some(first) = objects.first().map(|home| &home.attached) else {
            return Err(Error::new("begin a transaction", TransactionError::NoObject));
        };
        expect_together(first, objects.iter().map(|home| &home.attached))?;
        let strict = objects.iter().any(|home| home.attached.class == Class::Transactional);
        let member = Member::of(&first.space);
        let generation = fork::generation();
        let mut open = OpenTx {
            inside: None,
            member,
            objects,
            strict,
            generation,
            conflicted: false,
            full: None,
            stuck: Vec::new(),
        };
        open.start()?;
        Ok(open)
    }

    fn first(&self) -> &Attached {
        &self.objects[0].attached
    }

    fn start(&mut self) -> Result<()> {
        let first = &self.objects[0].attached;
        let failed = |cause: Cause| first.error("begin a transaction on", cause);
        check(first).map_err(failed)?;
        let thread = self.member.thread.get_or_insert_with(|| Box::new(first.space.stm.thread()));
        first.space.prepare(thread.own(), self.strict).map_err(failed)?;
        thread.begin().map_err(|error| failed(error.into()))?;
        self.inside = Some(Inside::begin());
        self.conflicted = false;
        Ok(())
    }

    fn stop(&mut self, again: bool) {
        self.inside = None;
        if let Some(thread) = &mut self.member.thread {
            thread.abort(again);
        }
    }

    pub(crate) fn is_conflicted(&self) -> bool {
        self.conflicted
    }

    pub(crate) fn again(&mut self) -> Result<()> {
        if self.inside.is_some() {
            self.stop(self.conflicted && self.full.is_none());
        }
        if let Some(full) = self.full.take() {
            let met = full.grow_of(self.objects.iter().map(|home| &**home));
            self.stuck.extend(met.map_err(|cause| self.first().error("grow a heap of", cause))?);
        }
        self.start()
    }

    pub(crate) fn read(&mut self, address: usize, into: &mut [u8]) -> Result<()> {
        let from = self.place(address, into.len())?;
        self.step(|running| {
            // SAFETY: whole words of an object that stays attached as long as the transaction has
            // it (2); transactions alone access them (1).
            unsafe {
                match into.len() {
                    8 => into.copy_from_slice(&running.load(at::<u64>(from))?.to_ne_bytes()),
                    4 => into.copy_from_slice(&running.load(at::<u32>(from))?.to_ne_bytes()),
                    _ => running.load_bytes(at::<u8>(from), into)?,
                }
            }
            Ok(())
        })
    }

    pub(crate) fn write(&mut self, address: usize, bytes: &[u8]) -> Result<()> {
        let to = self.place(address, bytes.len())?;
        self.step(|running| {
            // SAFETY: as for `read`; the mapping may be stored to.
            unsafe {
                match bytes.len() {
                    8 => {
                        running.store(at::<u64>(to), u64::from_ne_bytes(bytes.try_into().unwrap_or_default()))
                    }
                    4 => {
                        running.store(at::<u32>(to), u32::from_ne_bytes(bytes.try_into().unwrap_or_default()))
                    }
                    _ => running.store_bytes(at::<u8>(to), bytes),
                }
            }
        })
    }

    pub(crate) fn on_commit(&mut self, action: Box<dyn FnOnce()>) -> Result<()> {
        self.step(|running| {
            running.on_commit(action);
            Ok(())
        })
    }

    pub(crate) fn on_abort(&mut self, action: Box<dyn FnOnce()>) -> Result<()> {
        self.step(|running| {
            running.on_abort(action);
            Ok(())
        })
    }

    pub(crate) fn alone(&mut self) -> Result<()> {
        if self.first().space.demand().is_some() {
            return Err(self.first().error("run a transaction alone on", TransactionError::AloneOnDemand));
        }
        self.step(|running| if running.is_alone() { Ok(()) } else { Err(running.restart_alone()) })
    }

    /// `false`: it must be run again.
    pub(crate) fn commit(&mut self) -> Result<bool> {
        let failed = |open: &OpenTx, cause: Cause| Err(open.first().error("commit a transaction on", cause));
        if fork::is_stale(self.generation) {
            return failed(self, Cause::Forked);
        }
        if self.conflicted || self.inside.is_none() {
            return Ok(false);
        }
        if let Some(lost) = self.lost() {
            return Err(lost);
        }
        let (first, Some(thread)) = (&self.objects[0].attached, &mut self.member.thread) else {
            return Ok(false);
        };
        let Some(mut running) = thread.running() else { return Ok(false) };
        let once = running.is_alone() && first.space.demand().is_none();
        let lines = first.space.lines_told(&running);
        match first.space.room_for(&mut running, lines) {
            Ok(None) => {}
            Ok(Some(short)) => {
                self.stop(false);
                return self.make_room(short);
            }
            Err(error) => return failed(self, error.into()),
        }
        self.inside = None;
        match thread.commit() {
            Ok(_) => Ok(true),
            Err(CommitError::Conflict(_)) => Ok(false),
            Err(CommitError::Refused(StoreError::NoRoom { .. })) if !once => self.make_room(lines as u64),
            Err(CommitError::Refused(error) | CommitError::Unacknowledged(error)) => {
                failed(self, first.space.explained(error))
            }
            Err(CommitError::Forked) => failed(self, Cause::Forked),
        }
    }

    fn make_room(&mut self, short: u64) -> Result<bool> {
        let (first, Some(thread)) = (&self.objects[0].attached, &mut self.member.thread) else {
            return Ok(false);
        };
        let room = first.space.make_room(thread.own(), short);
        room.map_or_else(|cause| Err(first.error("commit a transaction on", cause)), |()| Ok(false))
    }

    /// A heap without room grows before the transaction is run again, or at once if that is alone.
    pub(super) fn in_heap<R>(
        &mut self,
        address: usize,
        operation: &'static str,
        what: impl Fn(&Home, &mut ObjectWords<'_, '_>) -> Result<R, Cause>,
    ) -> Result<R> {
        let around = |home: &&Arc<Home>| home.attached.place(address, 1).is_some();
        let Some(home) = self.objects.iter().find(around).cloned() else {
            return Err(refused(TransactionError::Elsewhere));
        };
        let failed = |cause: Cause| home.attached.error(operation, cause);
        let mut limit = None;
        loop {
            let running = match &mut self.member.thread {
                Some(thread) if self.inside.is_some() => thread.running(),
                _ => None,
            };
            let Some(mut running) = running else {
                self.conflicted = true;
                return Err(refused(TransactionError::Conflict));
            };
            let alone = running.is_alone();
            let words = ObjectWords::of(&mut running, &mut self.conflicted, self.generation, &home.attached);
            let done = words.and_then(|mut words| what(&home, &mut words));
            match home.after(done, (&self.stuck, alone), &mut limit) {
                After::Done(done) => return done.map_err(failed),
                After::Again => {}
                After::Grow(full) => {
                    (self.full, self.conflicted) = (Some(full), true);
                    return Err(failed(TransactionError::Conflict.into()));
                }
            }
        }
    }

    fn place(&self, address: usize, len: usize) -> Result<usize> {
        if fork::is_stale(self.generation) {
            return Err(refused(Cause::Forked));
        }
        let mut places = self.objects.iter().map(|object| object.attached.place(address, len));
        places.find_map(|place| place).ok_or_else(|| refused(TransactionError::Elsewhere))
    }

    fn step<T>(&mut self, act: impl FnOnce(&mut Running<'_>) -> Result<T, Conflict>) -> Result<T> {
        let running = match &mut self.member.thread {
            Some(thread) if self.inside.is_some() => thread.running(),
            _ => None,
        };
        let done = running.map_or(Err(None), |mut running| act(&mut running).map_err(Some));
        done.map_err(|_| {
            self.lost().unwrap_or_else(|| {
                self.conflicted = true;
                refused(TransactionError::Conflict)
            })
        })
    }

    #[cold]
    fn lost(&mut self) -> Option<Error> {
        let address = self.member.thread.as_mut()?.running()?.lost()?;
        let offset = |object: &Attached| address.wrapping_sub(object.range().start);
        let object =
            self.objects.iter().map(|home| &home.attached).find(|object| offset(object) < object.size())?;
        Some(object.error("read", TransactionError::Lost { offset: offset(object) as u64 }))
    }
}

fn at<T: Number>(address: usize) -> *mut T {
    std::ptr::with_exposed_provenance_mut(address)
}

#[cold]
fn refused(cause: impl Into<Cause>) -> Error {
    Error::new("use memory in a transaction", cause)
}

impl Drop for OpenTx {
    fn drop(&mut self) {
        if self.inside.is_some() {
            self.stop(false);
        }
    }
}
