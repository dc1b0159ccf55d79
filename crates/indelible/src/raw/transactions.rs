//! Transactional objects and transactions by address.
//!
//! An object is known by its own address, where every access is forbidden: pointers in it are valid
//! in every run, and transactions access their targets.

use crate::error::{Cause, Error, Result, TransactionError};
use crate::heap::TypeInfo;
use crate::pool::{Inner, Pool, inside_transaction};
use crate::sys::per_process::PerProcess;
use crate::transaction::{Attached, Home, OpenTx, Pending, Users, sync};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError, RwLock};

static OBJECTS: PerProcess<RwLock<BTreeMap<usize, Arc<Home>>>> = PerProcess::new();

thread_local! {
    static RUNNING: RefCell<Option<OpenTx>> = const { RefCell::new(None) };
}

/// Attaches an object of the class `transactional` or `on-demand`; returns its own address, at
/// which only transactions access it.
pub fn attach_transactional(pool: &Pool, name: &str, key: &[u8]) -> Result<NonNull<u8>> {
    let own = enter(pool, name, |inner| Attached::new(inner, name, key, (0, false)))?.attached().own();
    Ok(at(own as u64))
}

/// As [`attach_transactional`], for transactions on objects of both classes.
pub fn attach_with_on_demand(pool: &Pool, name: &str, key: &[u8]) -> Result<NonNull<u8>> {
    let own = enter(pool, name, |inner| Attached::new(inner, name, key, (0, true)))?.attached().own();
    Ok(at(own as u64))
}

pub(super) fn enter(
    pool: &Pool,
    name: &str,
    attach: impl FnOnce(&Arc<Inner>) -> Result<Attached, Cause>,
) -> Result<Arc<Home>> {
    let inner = pool.inner();
    let attached = inner.alive().and_then(|()| attach(inner));
    let failed = |cause| Error::new("attach", cause).pool(pool.path()).object(name);
    let home = Arc::new(Home::new(attached.map_err(failed)?));
    let mut objects = OBJECTS.inherited().write().unwrap_or_else(PoisonError::into_inner);
    objects.insert(home.attached().own(), home.clone());
    drop(objects);
    Ok(home)
}

pub(super) fn detach(address: usize) -> Option<Result<()>> {
    let mut objects = OBJECTS.inherited().write().unwrap_or_else(PoisonError::into_inner);
    let home = objects.get(&address)?;
    let used = inside_transaction() || Arc::strong_count(home) > 1;
    let refused = home.attached().alive().err().or_else(|| used.then(|| TransactionError::Inside.into()));
    if let Some(cause) = refused {
        return Some(Err(home.attached().error("detach", cause)));
    }
    let home = objects.remove(&address)?;
    drop(objects);
    let ended = Arc::into_inner(home).map(|mut home| {
        let result = home.end();
        result.map_err(|cause| home.attached().error("detach", cause))
    });
    Some(ended.unwrap_or(Ok(())))
}

/// `None`: the object is not transactional.
pub(super) fn psync(address: usize) -> Option<Result<()>> {
    find(address).map(|home| home.attached().psync())
}

/// Uses the object as a value of `size` bytes from its start: until its detach it becomes no heap.
pub fn begin_with(address: *const u8, size: usize) -> Result<()> {
    let missing = || Error::new("use", Cause::NotAttached(address.addr()));
    let home = find(address.addr()).ok_or_else(missing)?;
    home.begin_with(size).map_err(|cause| home.attached().error("use the root of", cause))
}

/// Waits until this thread's commits in the object's pool are durable: see
/// [`TxObject::tx_sync`](crate::TxObject::tx_sync).
pub fn tx_sync(address: *const u8) -> Result<()> {
    sync(expect(address)?.attached())
}

/// Waits until this process's commits in the object's pool are durable: see
/// [`TxObject::psync`](crate::TxObject::psync).
pub fn publish(address: *const u8) -> Result<()> {
    expect(address)?.attached().psync()
}

/// Commits in the object's pool that a power cut would lose: see
/// [`TxObject::pending`](crate::TxObject::pending).
pub fn pending(address: *const u8) -> Result<Pending> {
    Ok(Pending::of(expect(address)?.attached()))
}

fn expect(address: *const u8) -> Result<Arc<Home>> {
    let missing = || Error::new("ask for the transactions on", Cause::NotAttached(address.addr()));
    find(address.addr()).ok_or_else(missing)
}

pub(super) fn find(address: usize) -> Option<Arc<Home>> {
    let objects = OBJECTS.inherited().read().unwrap_or_else(PoisonError::into_inner);
    let (_, home) = objects.range(..=address).next_back()?;
    home.attached().place(address, 1).map(|_| home.clone())
}

pub(super) fn begin(objects: &[*const u8]) -> Result<()> {
    let here = |address: &*const u8| {
        let missing = || Error::new("begin a transaction on", Cause::NotAttached(address.addr()));
        find(address.addr()).ok_or_else(missing)
    };
    let objects = objects.iter().map(here).collect::<Result<Vec<_>>>()?;
    if let Some(object) = objects.iter().find(|object| !object.attached().is_for(Users::Functions)) {
        return Err(object.attached().error("begin a transaction on", TransactionError::OtherUsers));
    }
    let refused = match of_thread(|running| running.is_some()) {
        None => Some(TransactionError::ThreadEnds),
        Some(runs) => runs.then_some(TransactionError::Inside),
    };
    if let Some(refused) = refused {
        return Err(Error::new("begin a transaction", refused));
    }
    let open = OpenTx::begin(objects)?;
    of_thread(|running| *running = Some(open));
    Ok(())
}

/// `None`: the thread ends, in destructors that run after its thread-locals.
fn of_thread<R>(look: impl FnOnce(&mut Option<OpenTx>) -> R) -> Option<R> {
    RUNNING.try_with(|running| look(&mut running.borrow_mut())).ok()
}

/// Whether this thread has a transaction of [`begin_transaction`](super::begin_transaction).
#[must_use]
pub fn is_open() -> bool {
    of_thread(|running| running.is_some()) == Some(true)
}

/// Whether it met a conflict, so that it must be run [`again`].
#[must_use]
pub fn is_conflicted() -> bool {
    of_thread(|running| running.as_ref().is_some_and(OpenTx::is_conflicted)) == Some(true)
}

/// Undoes the thread's transaction and begins it again.
pub fn again() -> Result<()> {
    let begun = running(OpenTx::again);
    if begun.is_err() {
        abort();
    }
    begun
}

/// Reads bytes of an object of the transaction.
pub fn read(from: *const u8, into: &mut [u8]) -> Result<()> {
    running(|open| open.read(from.addr(), into))
}

/// Writes bytes of an object in the transaction.
pub fn write(to: *mut u8, bytes: &[u8]) -> Result<()> {
    running(|open| open.write(to.addr(), bytes))
}

/// Allocates in the heap of the object at `beside`, if the transaction commits. The block is not
/// zeroed.
///
/// # Errors
/// `Conflict`: run the transaction [`again`]; also if the heap has no room, and grows then.
/// `HeapFull`: it cannot grow; the transaction may go on. `NotAHeap`: no [`root`] has made a heap
/// of the object. `BadAlignment`, `NotAttached`, `Damaged`.
pub fn alloc(beside: *const u8, size: usize, align: usize) -> Result<NonNull<u8>> {
    running(|open| open.alloc(beside.addr(), size, align)).map(at)
}

/// Frees a block of a heap, if the transaction commits.
pub fn free(block: *const u8) -> Result<()> {
    running(|open| open.free(block.addr()))
}

/// The root of this name and type in the heap of the object at `beside`. A new one is all zeros,
/// and makes a heap of a blank object.
///
/// # Errors
/// As for [`alloc`]; `Exists`: the object has other content. `NotAHeap`: it [begins with a
/// value](begin_with). `RootType`: one of another type exists.
pub fn root(
    beside: *const u8,
    name: &str,
    size_and_align: (usize, usize),
    ty: &TypeInfo<'_>,
) -> Result<NonNull<u8>> {
    running(|open| open.root(beside.addr(), name, size_and_align, ty)).map(at)
}

fn at(address: u64) -> NonNull<u8> {
    NonNull::new(std::ptr::with_exposed_provenance_mut(address as usize)).unwrap_or(NonNull::dangling())
}

/// See [`Tx::on_commit`](crate::Tx::on_commit).
pub fn on_commit(action: Box<dyn FnOnce()>) -> Result<()> {
    running(|open| open.on_commit(action))
}

/// See [`Tx::on_abort`](crate::Tx::on_abort).
pub fn on_abort(action: Box<dyn FnOnce()>) -> Result<()> {
    running(|open| open.on_abort(action))
}

/// See [`Tx::alone`](crate::Tx::alone).
///
/// # Errors
/// `Conflict`: run the transaction [`again`]. `ClassMismatch`: the objects are on demand.
pub fn alone() -> Result<()> {
    running(OpenTx::alone)
}

/// Commits the thread's transaction. `true`: durable, or, if all its objects are on demand, safe
/// from the process's death. `false`: run it [`again`].
pub fn commit() -> Result<bool> {
    let Some(mut open) = of_thread(Option::take).flatten() else { return Err(none()) };
    let committed = open.commit()?;
    if !committed {
        of_thread(|running| *running = Some(open));
    }
    Ok(committed)
}

/// Undoes the thread's transaction, if any.
pub fn abort() {
    drop(of_thread(Option::take));
}

fn running<T>(act: impl FnOnce(&mut OpenTx) -> Result<T>) -> Result<T> {
    of_thread(|running| running.as_mut().map(act)).flatten().unwrap_or_else(|| Err(none()))
}

#[cold]
fn none() -> Error {
    Error::new("use a transaction", TransactionError::None)
}
