#![allow(unsafe_code)]

use super::attached::Attached;
use super::cell::TxCell;
use super::checked::Words;
use super::durable::Durable;
use super::home::{Full, Home, Stuck, Transactional};
use super::member::{Member, Thread};
use crate::error::{Cause, Error, Result, TransactionError};
use crate::plain::Plain;
use crate::pool::{self, Class, Inside};
use crate::sys::fork;
use indelible_stm::{CommitError, Conflict, Transaction};
use indelible_store::error::StoreError;
use std::mem::MaybeUninit;
use std::ops::Range;

/// A running transaction: see [`transaction`].
///
/// It shows all cells as of one moment, with its own changes, invisible to other threads until it
/// commits.
pub struct Tx<'t> {
    pub(super) running: Transaction<'t, 'static, Words, Durable>,
    pub(super) objects: &'t [&'t dyn Transactional],
    range: Range<usize>,
    /// That of the first object: most pointers lead to it.
    pub(super) first_home: Option<&'t Home>,
    pub(super) generation: u32,
    pub(super) conflicted: bool,
    /// A heap lacks room, and may grow: the closure is run again, whatever it returns.
    pub(super) full: Option<Full>,
    pub(super) stuck: &'t [Stuck],
    /// A collection could not finish a change: undoes the transaction, whatever the closure
    /// returns.
    pub(super) failed: Option<Error>,
}

/// Runs `body` as a serializable transaction on these objects of one pool: all its changes are
/// durable as one step before this returns, or none is.
///
/// On a conflict `body` is run again, so it must do nothing that cannot be repeated, and pass on
/// errors of calls on the transaction with `?`. Any other error, and a panic, undo it.
///
/// Everything that it read is also durable on return. On objects on demand it outlives the process
/// instead.
///
/// ```
/// # fn main() -> Result<(), indelible::Error> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// # let how = indelible::CreateOptions::new(4096).class(indelible::Class::Transactional);
/// # pool.create_with("stock", &how)?;
/// # pool.create_with("orders", &how)?;
/// use indelible::{TxCell, transaction};
///
/// let stock = pool.attach_transactional::<TxCell<u64>>("stock")?;
/// let orders = pool.attach_transactional::<[TxCell<u64>; 100]>("orders")?;
/// transaction(&[&stock, &orders], |tx| {
///     tx.write(&stock, 7)?;
///     tx.write(&orders[3], 1)
/// })?;
/// # assert_eq!(transaction(&[&stock, &orders], |tx| tx.read(&stock))?, 7);
/// # Ok(()) }
/// ```
///
/// # Errors
/// The error of `body`; nothing of the transaction is left. Errors of its own, converted:
///
/// - `InTransaction`: one runs on this thread. `DifferentPools`, `Forked`.
/// - `ClassMismatch`: some objects are transactional, others on demand.
/// - `NoRoom`: its changes, or on-demand commits before it that it waits for, exceed the pool's
///   room in its log. Nothing happened, and it may be run again.
/// - `Poisoned`, `Io`, `Gone`, `NoSpace`, `Busy`: neither it nor later transactions in this pool
///   can be made durable. Detach all transactional objects of the pool, and attach them again: all
///   acknowledged transactions are there; this one as a whole or, unless the medium failed, not at
///   all.
pub fn transaction<R, E: From<Error>>(
    objects: &[&dyn Transactional],
    mut body: impl FnMut(&mut Tx<'_>) -> Result<R, E>,
) -> Result<R, E> {
    let (first, strict) = first_of(objects)?;
    let mut member = Member::of(&first.space);
    let mut stuck = Vec::new();
    loop {
        if let Err(cause) = check(first) {
            return Err(first.error("begin a transaction on", cause).into());
        }
        let thread = member.thread.get_or_insert_with(|| Box::new(first.space.stm.thread()));
        if let Err(cause) = first.space.prepare(thread.own(), strict) {
            return Err(first.error("begin a transaction on", cause).into());
        }
        let tried = attempt(thread, (first, objects, &stuck), &mut body);
        match tried.map_err(|cause| first.error("commit a transaction on", cause))? {
            Attempt::Done(value) => return Ok(value),
            Attempt::Failed(error) => return Err(error),
            Attempt::Again => {}
            Attempt::Full(full) => {
                let limit = full.grow(objects).map_err(|error| first.error("grow a heap of", error))?;
                stuck.extend(limit);
            }
            Attempt::Short(short) => {
                let room = first.space.make_room(thread.own(), short);
                room.map_err(|error| first.error("commit a transaction on", error))?;
            }
        }
    }
}

#[inline]
fn first_of<'o>(objects: &[&'o dyn Transactional]) -> Result<(&'o Attached, bool)> {
    let mut all = objects.iter().map(|object| object.attached());
    let Some(first) = all.next() else {
        return Err(Error::new("begin a transaction", TransactionError::NoObject));
    };
    let mut strict = first.class == Class::Transactional;
    expect_together(first, all.inspect(|object| strict |= object.class == Class::Transactional))?;
    Ok((first, strict))
}

#[inline]
pub(super) fn expect_together<'o>(
    first: &Attached,
    objects: impl Iterator<Item = &'o Attached>,
) -> Result<()> {
    let together = first.expect_together(objects, TransactionError::Classes);
    together.map_err(|cause| first.error("begin a transaction on", cause))?;
    if pool::inside_transaction() {
        return Err(first.error("begin a transaction on", TransactionError::Inside));
    }
    Ok(())
}

#[inline]
pub(super) fn check(first: &Attached) -> Result<(), Cause> {
    first.pool.alive()?;
    first.space.check()
}

pub(super) fn alone<R>(attached: &Attached, what: impl FnOnce() -> Result<R, Cause>) -> Result<R, Cause> {
    if pool::inside_transaction() {
        return Err(TransactionError::Inside.into());
    }
    attached.pool.alive()?;
    let mut member = Member::of(&attached.space);
    let thread = member.thread.get_or_insert_with(|| Box::new(attached.space.stm.thread()));
    let alone = thread.alone()?;
    let _inside = Inside::begin();
    let done = what();
    drop(alone);
    done
}

enum Attempt<R, E> {
    Done(R),
    Failed(E),
    Again,
    Full(Full),
    /// The log lacks so much room, for [`Space::make_room`].
    Short(u64),
}

fn attempt<R, E: From<Error>>(
    thread: &mut Thread,
    (first, objects, stuck): (&Attached, &[&dyn Transactional], &[Stuck]),
    body: &mut impl FnMut(&mut Tx<'_>) -> Result<R, E>,
) -> Result<Attempt<R, E>, Cause> {
    thread.begin()?;
    let mut ends = Ends { thread, again: Some(false) };
    let inside = Inside::begin();
    let Some(running) = ends.thread.running() else { return Ok(Attempt::Again) };
    let generation = fork::generation();
    let (range, first_home) = (first.range(), objects.first().and_then(|object| object.home()));
    let mut tx = Tx {
        running,
        objects,
        range,
        first_home,
        generation,
        conflicted: false,
        full: None,
        stuck,
        failed: None,
    };
    let result = body(&mut tx);
    if let Some(full) = tx.full {
        return Ok(Attempt::Full(full));
    }
    if tx.conflicted {
        ends.again = Some(true);
        return Ok(Attempt::Again);
    }
    let value = match result {
        Ok(value) => value,
        Err(error) => return Ok(Attempt::Failed(error)),
    };
    if let Some(error) = tx.lost().or(tx.failed.take()) {
        return Ok(Attempt::Failed(error.into()));
    }
    // On demand only conflicts make a transaction alone, and it may be run again.
    let once = tx.running.is_alone() && first.space.demand().is_none();
    if fork::is_stale(generation) {
        return Err(Cause::Forked);
    }
    let mut lines = 0;
    if !tx.running.writes().is_empty() {
        lines = first.space.lines_told(&tx.running);
        if let Some(short) = first.space.room_for(&mut tx.running, lines)? {
            return Ok(Attempt::Short(short));
        }
    }
    drop(inside);
    ends.again = None;
    let error = match ends.thread.commit() {
        Ok(_) => return Ok(Attempt::Done(value)),
        Err(error) => error,
    };
    match error {
        CommitError::Conflict(_) => Ok(Attempt::Again),
        CommitError::Refused(StoreError::NoRoom { .. }) if !once => Ok(Attempt::Short(lines as u64)),
        CommitError::Refused(error) | CommitError::Unacknowledged(error) => Err(first.space.explained(error)),
        CommitError::Forked => Err(Cause::Forked),
    }
}

struct Ends<'a> {
    thread: &'a mut Thread,
    again: Option<bool>,
}

impl Drop for Ends<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(again) = self.again {
            self.thread.abort(again);
        }
    }
}

impl Tx<'_> {
    /// The value of a cell, as of the transaction's moment.
    ///
    /// # Errors
    /// `Conflict`: to be passed on. `NotAttached`: the cell lies in no object of the transaction.
    #[inline(always)]
    pub fn read<T: Plain + Copy>(&mut self, cell: &TxCell<T>) -> Result<T> {
        let from = self.own(cell)?;
        let mut value = MaybeUninit::<T>::zeroed();
        // SAFETY: the bytes of a value that is zeroed.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(value.as_mut_ptr().cast::<u8>(), size_of::<T>()) };
        // SAFETY: whole words of a cell that the transaction has borrowed (2), changed by
        // transactions alone (1).
        let read = unsafe {
            match <&mut [u8; 8]>::try_from(&mut *bytes) {
                Ok(word) => self.running.load_word(from.cast()).map(|bits| *word = bits.to_ne_bytes()),
                Err(_) => self.running.load_bytes(from.cast(), bytes),
            }
        };
        self.step(read)?;
        // SAFETY: every bit pattern is a T.
        Ok(unsafe { value.assume_init() })
    }

    /// Changes a cell, if the transaction commits.
    ///
    /// # Errors
    /// As for [`read`](Tx::read).
    #[inline]
    pub fn write<T: Plain + Copy>(&mut self, cell: &TxCell<T>, value: T) -> Result<()> {
        let to = self.own(cell)?;
        // SAFETY: the bytes of a `Plain` value, which has no padding.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const value).cast::<u8>(), size_of::<T>()) };
        // SAFETY: as for `read`; the memory is mapped for storing.
        let written = unsafe {
            match <[u8; 8]>::try_from(bytes) {
                Ok(word) => self.running.store_word(to.cast(), u64::from_ne_bytes(word)),
                Err(_) => self.running.store_bytes(to.cast(), bytes),
            }
        };
        self.step(written)
    }

    /// Changes the value of a cell by `change`.
    ///
    /// # Errors
    /// As for [`read`](Tx::read).
    #[inline]
    pub fn update<T: Plain + Copy>(&mut self, cell: &TxCell<T>, change: impl FnOnce(T) -> T) -> Result<()> {
        let value = self.read(cell)?;
        self.write(cell, change(value))
    }

    /// Registers an action for when the transaction is durable, in the order of calls; a try that
    /// does not commit drops it.
    pub fn on_commit(&mut self, action: impl FnOnce() + 'static) {
        self.running.on_commit(Box::new(action));
    }

    /// Registers an action for when this try does not commit; the last call goes first.
    pub fn on_abort(&mut self, action: impl FnOnce() + 'static) {
        self.running.on_abort(Box::new(action));
    }

    /// Runs the transaction again, alone in its pool: code behind this call runs once, and may do
    /// what cannot be undone. An error still undoes its changes.
    ///
    /// # Errors
    /// `Conflict`: to be passed on. `ClassMismatch`: the objects are on demand.
    pub fn alone(&mut self) -> Result<()> {
        if self.objects.iter().any(|object| object.attached().space.demand().is_some()) {
            return Err(Error::new("run a transaction alone", TransactionError::AloneOnDemand));
        }
        if self.running.is_alone() {
            return Ok(());
        }
        let conflict = self.running.restart_alone();
        self.step(Err(conflict))
    }

    #[inline(always)]
    fn own<T: Plain + Copy>(&mut self, cell: &TxCell<T>) -> Result<*mut T> {
        let () = TxCell::<T>::LAYOUT;
        let address = cell.address();
        if !is_within(&self.range, address.addr(), size_of::<T>()) {
            self.find_range(address.addr(), size_of::<T>())?;
        }
        if fork::is_stale(self.generation) {
            return Err(refused(Cause::Forked));
        }
        Ok(address)
    }

    #[cold]
    fn find_range(&mut self, address: usize, size: usize) -> Result<()> {
        let mut ranges = self.objects.iter().map(|object| object.attached().range());
        let found = ranges.find(|range| is_within(range, address, size));
        self.range = found.ok_or_else(|| refused(TransactionError::Elsewhere))?;
        Ok(())
    }

    #[inline]
    fn step<T>(&mut self, done: Result<T, Conflict>) -> Result<T> {
        done.map_err(|Conflict { .. }| self.doomed())
    }

    #[cold]
    fn doomed(&mut self) -> Error {
        self.lost().unwrap_or_else(|| {
            self.conflicted = true;
            refused(TransactionError::Conflict)
        })
    }

    #[inline]
    fn lost(&self) -> Option<Error> {
        self.running.lost().and_then(|_| self.lost_error())
    }

    #[cold]
    fn lost_error(&self) -> Option<Error> {
        let (object, offset) = self.lost_word()?;
        Some(object.error("read", TransactionError::Lost { offset: offset as u64 }))
    }

    fn lost_word(&self) -> Option<(&Attached, usize)> {
        let address = self.running.lost()?;
        let mut objects = self.objects.iter().map(|object| object.attached());
        let object = objects.find(|object| object.range().contains(&address))?;
        Some((object, address - object.range().start))
    }

    pub(super) fn lost_offset(&self) -> Option<usize> {
        self.lost_word().map(|(_, offset)| offset)
    }
}

#[inline]
fn is_within(range: &Range<usize>, address: usize, size: usize) -> bool {
    range.start <= address && address + size <= range.end
}

#[cold]
fn refused(cause: impl Into<Cause>) -> Error {
    Error::new("use a cell in a transaction", cause)
}

impl std::fmt::Debug for Tx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tx").field("objects", &self.objects.len()).finish_non_exhaustive()
    }
}
