//! Commits of compiled blocks, whose library has the memory of words.
//!
//! On demand, a commit's lines are in the thread's log, valid until the block has stored them; an
//! epoch waits for that.

use super::attached::Attached;
use super::demand::Changed;
use super::member::Member;
use crate::error::{Cause, Result, TransactionError};
use crate::pool::Class;
use indelible_store::error::StoreError;
use indelible_store::store::ChangedLine;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::Arc;

pub(crate) struct BlockLine<'a> {
    pub(crate) object: &'a Attached,
    pub(crate) offset: u64,
    pub(crate) bytes: [u8; 64],
}

/// Outcome of telling of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Told; whether the caller must wait.
    Told(bool),
    /// Lacks so much room; not told.
    Short(u64),
}

pub(crate) fn shortage(lines: &[(&Attached, u64)]) -> u64 {
    let Some((first, _)) = lines.first() else { return 0 };
    if first.space.demand().is_some() {
        let mut member = Member::of(&first.space);
        let own = member.thread.as_mut().map(|thread| thread.own());
        return own.map_or(0, |own| first.space.shortage_of_block(own, lines.len()));
    }
    let places: Vec<_> = lines.iter().map(|(object, offset)| (object.slot(), *offset)).collect();
    first.space.commits().shortage(places.len(), || places.into_iter())
}

/// No other thread can change the lines.
pub(crate) fn tell(lines: &[BlockLine<'_>]) -> Result<()> {
    let Some(BlockLine { object: first, .. }) = lines.first() else { return Ok(()) };
    let failed = |cause: Cause| first.error("commit a block on", cause);
    first.pool.alive().map_err(failed)?;
    first.expect_in_block(lines.iter().map(|line| line.object)).map_err(failed)?;
    let changed = |line: &BlockLine<'_>| ChangedLine {
        object: line.object.slot(),
        offset: line.offset,
        bytes: line.bytes,
    };
    first.space.tell(lines.iter().map(changed).collect()).map_err(|error| failed(error.into()))
}

thread_local! {
    /// This thread's told commit, whose lines are not stored yet. No destructor: blocks also run in
    /// a thread's last destructors.
    static TOLD: Cell<Option<ManuallyDrop<(Member, u64)>>> = const { Cell::new(None) };
}

/// [`stored`] must follow.
pub(crate) fn tell_on_demand<L: Iterator<Item = (usize, [u64; 8])>>(
    demand: usize,
    find: impl FnOnce() -> Result<Member, Cause>,
    lines: impl Fn() -> L,
) -> Result<Telling, Cause> {
    let mut member = Member::known(demand).map_or_else(find, Ok)?;
    let Some(thread) = &mut member.thread else { return Err(Cause::Detached) };
    // An epoch does not wait for this thread's lines.
    thread.enter()?;
    let (sink, own) = thread.sink_and_own();
    let whole = |(address, words)| Changed { address, mask: u64::MAX, words };
    match sink.log_block(own, || lines().map(whole)) {
        Ok(number) => {
            let awaited = own.is_strict();
            TOLD.set(Some(ManuallyDrop::new((member, number))));
            Ok(Telling::Told(awaited))
        }
        Err(cause) => {
            thread.leave();
            match cause {
                Cause::Store(StoreError::NoRoom { .. }) => Ok(Telling::Short(lines().count() as u64)),
                cause => Err(cause),
            }
        }
    }
}

pub(crate) fn stored() {
    let Some((mut member, number)) = TOLD.take().map(ManuallyDrop::into_inner) else { return };
    if let Some(thread) = &mut member.thread {
        thread.own().end_log();
        thread.own().note(number);
        thread.leave();
    }
}

impl Attached {
    pub(crate) fn expect_in_block<'o>(
        &self,
        objects: impl Iterator<Item = &'o Attached>,
    ) -> Result<(), Cause> {
        self.expect_together(objects, TransactionError::BlockClasses)
    }

    pub(crate) fn demand(&self) -> usize {
        self.space.demand().map_or(0, |_| Arc::as_ptr(&self.space).addr())
    }

    pub(crate) fn member(&self) -> Member {
        Member::of(&self.space)
    }

    pub(crate) fn make_room(&self, short: u64) -> Result<()> {
        let mut member = self.member();
        let room = member.thread.as_mut().map_or(Ok(()), |thread| self.space.make_room(thread.own(), short));
        room.map_err(|cause| self.error("commit a block on", cause))
    }

    pub(crate) fn wait(&self) -> Result<()> {
        let waited = match self.class {
            Class::OnDemand => self.space.sync(self.space.last()),
            _ => self.space.publish(),
        };
        waited.map_err(|cause| self.error("commit a block on", cause))
    }
}
