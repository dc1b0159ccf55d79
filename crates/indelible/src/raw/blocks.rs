//! Transactional objects for compiled blocks: the block runtime names lines by the objects' own
//! addresses.

use super::transactions::{enter, find};
use crate::error::{Cause, Error, HeapError, Result, TransactionError};
use crate::heap::TypeInfo;
use crate::heap::words::Words;
use crate::pool::Pool;
pub use crate::transaction::Telling;
use crate::transaction::{
    Attached, BlockLine, Home, Users, close_pages, expose_pages, shortage_of, stored as stored_there,
    tell_of, tell_on_demand,
};
use std::sync::Arc;

/// An object for blocks.
#[derive(Clone, Copy, Debug)]
pub struct ForBlocks {
    /// Its own address, where every access is forbidden.
    pub address: usize,
    /// The address that blocks use.
    pub view: usize,
    /// Whether a check word follows each word there.
    pub checked: bool,
    /// In bytes.
    pub len: usize,
    /// 0: each commit is [waited](wait) for, then durable. Otherwise on demand: commits are told
    /// with this number, which all objects share that one block may change.
    pub demand: usize,
}

/// A line that a block changed, with its committed bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Line {
    /// A multiple of 64 in an object, by its own address; with check words of 32.
    pub address: usize,
    /// The same place for blocks.
    pub view: usize,
    /// Its bytes.
    pub bytes: [u8; 64],
}

/// Attaches an object of the class `transactional` or `on-demand` for blocks.
pub fn attach(pool: &Pool, name: &str, key: &[u8]) -> Result<ForBlocks> {
    let home = enter(pool, name, |inner| Attached::for_blocks(inner, name, key))?;
    let attached = home.attached();
    let (view, checked) = attached.view();
    let (address, len) = (attached.own(), attached.size());
    Ok(ForBlocks { address, view, checked, len, demand: attached.demand() })
}

fn at(address: usize) -> Result<Arc<Home>> {
    let missing = || Error::new("commit a block on", Cause::NotAttached(address));
    find(address).filter(|home| home.attached().is_for(Users::Blocks)).ok_or_else(missing)
}

/// Bytes that the log lacks for a commit of lines at these addresses (on demand: of lines); 0 if
/// none.
pub fn shortage(addresses: &[usize]) -> Result<u64> {
    let objects = addresses.iter().map(|address| at(*address)).collect::<Result<Vec<_>>>()?;
    let offset = |(home, address): (&Arc<Home>, &usize)| home.attached().offset(*address);
    let offsets: Vec<_> = objects.iter().zip(addresses).map(offset).collect();
    let lines: Vec<_> = objects.iter().map(|home| home.attached()).zip(offsets).collect();
    Ok(shortage_of(&lines))
}

/// Makes room in the log for a commit on the object at this address. On demand, all earlier commits
/// are durable afterwards.
pub fn make_room(address: usize, bytes: u64) -> Result<()> {
    at(address)?.attached().make_room(bytes)
}

/// Logs a commit of these lines, while no other thread can change them. `demand` is the
/// [number](ForBlocks::demand) of its first object. It is durable once [`wait`] has returned; on
/// demand it survives the process, and [`stored`] must follow.
///
/// # Errors
/// `NotAttached`, `DifferentPools`, `ClassMismatch`, `Poisoned`: it is not told.
pub fn tell(demand: usize, lines: &[Line]) -> Result<Telling> {
    let Some(first) = lines.first() else { return Ok(Telling::Told(false)) };
    if demand == 0 {
        return tell_durable(lines).map(|()| Telling::Told(true));
    }
    let member = || Ok(find(first.address).ok_or(Cause::NotAttached(first.address))?.attached().member());
    let words = |line: &Line| {
        let mut words = [0; 8];
        let bytes = line.bytes.as_chunks::<8>().0.iter();
        words.iter_mut().zip(bytes).for_each(|(word, bytes)| *word = u64::from_ne_bytes(*bytes));
        (line.view, words)
    };
    tell_on_demand(demand, member, || lines.iter().map(words)).map_err(|cause| why_not(lines, cause))
}

#[cold]
fn why_not(lines: &[Line], cause: Cause) -> Error {
    let objects = match lines.iter().map(|line| at(line.address)).collect::<Result<Vec<_>>>() {
        Ok(objects) => objects,
        Err(missing) => return missing,
    };
    let Some(first) = objects.first().map(|home| home.attached()) else {
        return Error::new("commit a block on", cause);
    };
    let together = first.expect_in_block(objects.iter().map(|home| home.attached()));
    first.error("commit a block on", together.err().unwrap_or(cause))
}

/// All lines of this thread's on-demand commit are stored.
pub fn stored() {
    stored_there();
}

fn tell_durable(lines: &[Line]) -> Result<()> {
    let objects = lines.iter().map(|line| at(line.address)).collect::<Result<Vec<_>>>()?;
    let told = objects.iter().zip(lines).map(|(home, line)| BlockLine {
        object: home.attached(),
        offset: home.attached().offset(line.address),
        bytes: line.bytes,
    });
    tell_of(&told.collect::<Vec<_>>())
}

/// Waits until all told commits of the pool of the object at this address are durable.
///
/// # Errors
/// `NotAttached`; `Poisoned` and so on: told commits may be lost.
pub fn wait(address: usize) -> Result<()> {
    at(address)?.attached().wait()
}

/// Words of objects, by address, as the running block sees them. `None`: conflict.
pub trait BlockWords {
    /// Loads a word at a multiple of 8 in an object.
    fn load(&mut self, address: usize) -> Option<u64>;

    /// Stores a word.
    fn store(&mut self, address: usize, value: u64) -> Option<()>;

    /// Stores a byte.
    fn store_byte(&mut self, address: usize, value: u8) -> Option<()>;

    /// The current word, without consistency.
    fn peek(&self, address: usize) -> u64;
}

/// Lets this thread alone, in an irrevocable block, load and store objects at their own addresses,
/// with pages copied on touch, until [`close`].
pub fn expose() {
    expose_pages();
}

/// Ends that: changed words are stored to `words`, or dropped without. No effect without such
/// pages.
pub fn close<W: BlockWords>(words: Option<&mut W>) -> Result<()> {
    let failed = |cause| Error::new("commit a block on", cause);
    match words {
        Some(words) => close_pages(|at, value| met(words.store(at, value))).map_err(failed),
        None => close_pages(|_, _| Ok(())).map_err(failed),
    }
}

/// The outcome of a step in a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Done, with an address.
    Done(usize),
    /// No room for so many bytes: [`grow`] the heap while no block runs, then retry the block.
    Full(usize),
}

struct Of<'a, W> {
    words: &'a mut W,
    own: usize,
    len: usize,
}

impl<W> Of<'_, W> {
    fn place(&self, offset: u64, len: u64) -> Result<usize, Cause> {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.len as u64);
        let what = "this lies beyond the end of the object";
        inside.then(|| self.own + offset as usize).ok_or(HeapError::Damaged { offset, what }.into())
    }
}

fn met<T>(done: Option<T>) -> Result<T, Cause> {
    done.ok_or(TransactionError::Conflict.into())
}

impl<W: BlockWords> Words for Of<'_, W> {
    fn load(&mut self, offset: u64) -> Result<u64, Cause> {
        let at = self.place(offset, 8)?;
        met(self.words.load(at))
    }

    fn store(&mut self, offset: u64, value: u64) -> Result<(), Cause> {
        let at = self.place(offset, 8)?;
        met(self.words.store(at, value))
    }

    fn store_byte(&mut self, offset: u64, value: u8) -> Result<(), Cause> {
        let at = self.place(offset, 1)?;
        met(self.words.store_byte(at, value))
    }

    fn peek(&self, offset: u64) -> u64 {
        self.place(offset, 8).map_or(0, |at| self.words.peek(at))
    }
}

fn step<W: BlockWords>(
    words: &mut W,
    address: usize,
    operation: &'static str,
    what: impl FnOnce(&Home, &mut Of<'_, W>) -> Result<u64, Cause>,
) -> Result<Step> {
    let home = at(address)?;
    let mut words = Of { words, own: home.attached().own(), len: home.attached().size() };
    match what(&home, &mut words) {
        Ok(address) => Ok(Step::Done(address as usize)),
        Err(Cause::Heap(HeapError::Full { needed, .. })) => Ok(Step::Full(needed)),
        Err(cause) => Err(home.attached().error(operation, cause)),
    }
}

/// Allocates in the heap of the object at `beside`, as a part of the block of `words`.
///
/// # Errors
/// `Conflict`: the block has met another one. `NotAttached`; `NotAHeap`: no root has made a heap of
/// the object; `BadAlignment`, `Damaged`.
pub fn alloc(words: &mut impl BlockWords, beside: usize, size: usize, align: usize) -> Result<Step> {
    step(words, beside, "allocate in", |home, words| home.alloc(words, size, align))
}

/// Frees the block at an address, as a part of the compiled block.
///
/// # Errors
/// `Conflict`; `NotABlock`, `DoubleFree`, `NotAttached`: nothing was freed. `Damaged`.
pub fn free(words: &mut impl BlockWords, block: usize) -> Result<Step> {
    step(words, block, "free a block of", |home, words| home.free(words, block).map(|()| 0))
}

/// The root of this name and type in the heap of the object at `beside`. A new one is all zeros,
/// and makes a heap of a blank object.
pub fn root(
    words: &mut impl BlockWords,
    beside: usize,
    name: &str,
    size_and_align: (usize, usize),
    ty: &TypeInfo<'_>,
) -> Result<Step> {
    step(words, beside, "find a root in", |home, words| home.root(words, name, size_and_align, ty))
}

/// Grows the object at an address until its heap has room for `needed` bytes, while no block runs;
/// returns its bytes.
pub fn grow(address: usize, needed: usize) -> Result<usize> {
    let home = at(address)?;
    match home.grow(needed) {
        Ok(None) => Ok(home.attached().size()),
        Ok(Some(limit)) => Err(home.attached().error("grow", HeapError::Stuck { needed, largest: 0, limit })),
        Err(cause) => Err(home.attached().error("grow", cause)),
    }
}

/// Bytes of the object at an address.
#[must_use]
pub fn size(address: usize) -> Option<usize> {
    Some(find(address)?.attached().size())
}
