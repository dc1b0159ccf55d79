#![allow(unsafe_code)]

use super::attached::Attached;
use super::durable::Durable;
use super::heap::TxHeap;
use super::home::{After, Home, placed_in_block};
use super::pointer::TxPtr;
use super::run::Tx;
use crate::error::{Cause, Error, HeapError, Result, TransactionError};
use crate::heap::allocation;
use crate::heap::words::{WordHeap, Words};
use crate::plain::Plain;
use crate::sys::fork;
use indelible_stm::Conflict;
use indelible_store::Mutant;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

pub(super) struct ObjectWords<'a, 't> {
    running: &'a mut Running<'t>,
    conflicted: &'a mut bool,
    range: Range<usize>,
}

pub(super) type Running<'t> = indelible_stm::Transaction<'t, 'static, super::checked::Words, Durable>;

impl<'a, 't> ObjectWords<'a, 't> {
    pub(super) fn of(
        running: &'a mut Running<'t>,
        conflicted: &'a mut bool,
        generation: u32,
        attached: &Attached,
    ) -> Result<Self, Cause> {
        if fork::is_stale(generation) {
            return Err(Cause::Forked);
        }
        Ok(ObjectWords { running, conflicted, range: attached.range() })
    }

    #[inline]
    fn place(&self, offset: u64, len: usize) -> Result<*mut u8, Cause> {
        let end = offset.checked_add(len as u64);
        if end.is_none_or(|end| end > self.range.len() as u64) {
            let what = "this lies beyond the end of the object";
            return Err(HeapError::Damaged { offset, what }.into());
        }
        Ok(std::ptr::with_exposed_provenance_mut(self.range.start + offset as usize))
    }

    #[inline]
    fn step<T>(&mut self, done: Result<T, Conflict>) -> Result<T, Cause> {
        done.map_err(|Conflict { .. }| self.doomed())
    }

    #[cold]
    fn doomed(&mut self) -> Cause {
        if let Some(address) = self.running.lost() {
            let offset = address.wrapping_sub(self.range.start) as u64;
            return TransactionError::Lost { offset }.into();
        }
        *self.conflicted = true;
        TransactionError::Conflict.into()
    }

    fn store_value<T: Plain>(&mut self, offset: u64, value: &T) -> Result<(), Cause> {
        // SAFETY: the bytes of the caller's `Plain` value, which has no padding.
        let bytes =
            unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast::<u8>(), size_of::<T>()) };
        self.store_bytes(offset, bytes)
    }

    fn store_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Cause> {
        let to = self.place(offset, bytes.len())?;
        // SAFETY: in an object that the transaction has borrowed (2), changed by transactions alone
        // (1); mapped for storing.
        let stored = unsafe { self.running.store_bytes(to, bytes) };
        self.step(stored)
    }
}

impl Words for ObjectWords<'_, '_> {
    #[inline]
    fn load(&mut self, offset: u64) -> Result<u64, Cause> {
        let from = self.place(offset, 8)?.cast::<u64>();
        let loaded = match from.is_aligned() {
            // SAFETY: as in `store_bytes`.
            false => unsafe { self.running.load(from) },
            // SAFETY: as in `store_bytes`, and aligned.
            true => unsafe { self.running.load_word(from) },
        };
        self.step(loaded)
    }

    fn store(&mut self, offset: u64, value: u64) -> Result<(), Cause> {
        let to = self.place(offset, 8)?;
        // SAFETY: as in `store_bytes`.
        let stored = unsafe { self.running.store(to.cast::<u64>(), value) };
        self.step(stored)
    }

    fn store_byte(&mut self, offset: u64, value: u8) -> Result<(), Cause> {
        let to = self.place(offset, 1)?;
        if broken(value) {
            // SAFETY: as below; a test's own, in one thread.
            unsafe { AtomicU8::from_ptr(to).store(value, Ordering::Relaxed) };
            return Ok(());
        }
        // SAFETY: as in `store_bytes`.
        let stored = unsafe { self.running.store(to, value) };
        self.step(stored)
    }

    fn peek(&self, offset: u64) -> u64 {
        match self.place(offset, 8) {
            // SAFETY: as in `store_bytes`; whole words, at multiples of 8, as the heap asks for
            // them.
            Ok(from) if offset.is_multiple_of(8) => unsafe { self.running.peek(from.cast::<u64>()) },
            _ => 0,
        }
    }
}

fn broken(value: u8) -> bool {
    match value {
        allocation::USED => Mutant::AllocatedAtOnce.is_on(),
        _ => Mutant::FreedAtOnce.is_on(),
    }
}

impl<'t> Tx<'t> {
    /// Allocates a block in a heap of the transaction, and stores a value in it, if the transaction
    /// commits.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// use indelible::{Plain, TxCell, TxPtr};
    ///
    /// #[derive(Plain)]
    /// #[repr(C)]
    /// struct Node {
    ///     value: TxCell<u64>,
    ///     next: TxCell<TxPtr<Node>>,
    /// }
    ///
    /// let heap = pool.transactional_heap("stack", 1 << 20)?;
    /// let top = heap.root_or_default::<TxCell<TxPtr<Node>>>("top")?;
    /// heap.transaction(|tx| {
    ///     let next = tx.read(top)?;
    ///     let node = tx.alloc(&heap, Node { value: TxCell::new(7), next: TxCell::new(next) })?;
    ///     tx.write(top, node)
    /// })?;
    /// let popped = heap.transaction(|tx| {
    ///     let node = tx.read(top)?;
    ///     let Node { value, next } = tx.at(node)?;
    ///     let (value, next) = (tx.read(value)?, tx.read(next)?);
    ///     tx.write(top, next)?;
    ///     tx.free(node)?;
    ///     Ok::<_, indelible::Error>(value)
    /// })?;
    /// assert_eq!(popped, 7);
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// Values consist of cells:
    ///
    /// ```compile_fail,E0080
    /// # fn main() -> indelible::Result<()> {
    /// # let pool = indelible::Pool::open("none")?;
    /// # let heap = pool.transactional_heap("stack", 1 << 20)?;
    /// heap.transaction(|tx| tx.alloc(&heap, 7_u64).map(drop)) // error: TxCell::new(7_u64)
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Conflict`: to be passed on, also if the heap must grow first. `HeapFull`: it cannot grow;
    /// the transaction may go on. `NotAttached`: the heap is not one of the transaction. `Damaged`.
    pub fn alloc<T: Plain>(&mut self, heap: &TxHeap, value: T) -> Result<TxPtr<T>> {
        const { placed_in_block::<T>() };
        self.alloc_cells(heap.home(), 1, |words, offset| words.store_value(offset, &value))
    }

    fn alloc_cells<T: Plain>(
        &mut self,
        home: &Home,
        count: usize,
        first: impl Fn(&mut ObjectWords<'_, 't>, u64) -> Result<(), Cause>,
    ) -> Result<TxPtr<T>> {
        const { placed_in_block::<T>() };
        self.in_heap(home, "allocate in", |heap, words| {
            let Some(size) = size_of::<T>().checked_mul(count) else {
                return Err(HeapError::Overflow { count, size: size_of::<T>() }.into());
            };
            let offset = heap.allocate(words, size, align_of::<T>())?;
            first(words, offset)?;
            Ok(TxPtr::new(heap.address_of(offset)))
        })
    }

    pub(crate) fn alloc_beside<C, T: Plain>(&mut self, cell: &C, value: T) -> Result<TxPtr<T>> {
        let home = self.home_around(cell)?;
        let allocated = self.alloc_cells(home, 1, |words, offset| words.store_value(offset, &value));
        self.whole(allocated)
    }

    fn whole<T>(&mut self, done: Result<T>) -> Result<T> {
        if let Err(error) = &done {
            self.failed.get_or_insert_with(|| error.clone());
        }
        done
    }

    pub(crate) fn alloc_many_beside<C, T: Plain>(&mut self, cell: &C, count: usize) -> Result<TxPtr<T>> {
        let home = self.home_around(cell)?;
        let allocated = self.alloc_cells(home, count, |_, _| Ok(()));
        self.whole(allocated)
    }

    pub(crate) fn most_blocks<C>(&self, cell: &C) -> Result<u64> {
        Ok(self.home_around(cell)?.attached.size() as u64 / 16)
    }

    #[inline]
    fn home_around<C>(&self, cell: &C) -> Result<&'t Home> {
        let address = std::ptr::from_ref(cell).addr();
        if let Some(home) = self.first_home.filter(|home| home.attached.range().contains(&address)) {
            return Ok(home);
        }
        let around = self.objects.iter().find(|object| object.attached().range().contains(&address));
        let home = around.and_then(|object| object.home());
        home.ok_or_else(|| Error::new("allocate in a heap", TransactionError::NoHeap))
    }

    /// The value at a pointer, in a heap of the transaction. A pointer to a freed block leads to
    /// its next contents.
    ///
    /// # Errors
    /// `NotAttached` for null, and for a pointer to no heap of the transaction; `Damaged` for one
    /// that no `T` can be at.
    #[inline]
    pub fn at<T: Plain>(&self, pointer: TxPtr<T>) -> Result<&'t T> {
        self.home(pointer.address())?.value(pointer)
    }

    /// Frees a block, if the transaction commits. Blocks that its value points to stay.
    ///
    /// # Errors
    /// `Conflict`: to be passed on. `NotABlock`, `DoubleFree`, `NotAttached`: nothing was freed.
    /// `Damaged`.
    pub fn free<T>(&mut self, pointer: TxPtr<T>) -> Result<()> {
        let home = self.home(pointer.address())?;
        self.in_heap(home, "free a block of", |heap, words| heap.free(words, pointer.address()))
    }

    /// Bytes of the block in use that begins at a pointer.
    ///
    /// # Errors
    /// As for [`free`](Tx::free).
    pub fn usable_size<T>(&mut self, pointer: TxPtr<T>) -> Result<u64> {
        let home = self.home(pointer.address())?;
        self.in_heap(home, "inspect a block of", |heap, words| heap.size_of(words, pointer.address()))
    }

    /// A heap without room grows, and `what` is called again: at once if the transaction is alone.
    pub(super) fn in_heap<R>(
        &mut self,
        home: &Home,
        operation: &'static str,
        what: impl Fn(&WordHeap, &mut ObjectWords<'_, 't>) -> Result<R, Cause>,
    ) -> Result<R> {
        let attached = &home.attached;
        let is_first = self.first_home.is_some_and(|first| std::ptr::eq(first, home));
        if !is_first && !self.objects.iter().any(|object| std::ptr::eq(object.attached(), attached)) {
            return Err(attached.error(operation, TransactionError::Elsewhere));
        }
        let mut limit = None;
        loop {
            let words = ObjectWords::of(&mut self.running, &mut self.conflicted, self.generation, attached);
            let done = words.and_then(|mut words| what(&home.words, &mut words));
            match home.after(done, (self.stuck, self.running.is_alone()), &mut limit) {
                After::Done(done) => return done.map_err(|cause| attached.error(operation, cause)),
                After::Again => {}
                After::Grow(full) => {
                    (self.full, self.conflicted) = (Some(full), true);
                    return Err(attached.error(operation, TransactionError::Conflict));
                }
            }
        }
    }

    #[inline]
    fn home(&self, address: u64) -> Result<&'t Home> {
        match self.first_home {
            Some(home) if home.words.offset_of(address).is_some() => Ok(home),
            _ => self.home_of(address),
        }
    }

    #[inline(never)]
    fn home_of(&self, address: u64) -> Result<&'t Home> {
        let mut homes = self.objects.iter().filter_map(|object| object.home());
        let found = homes.find(|home| home.words.offset_of(address).is_some());
        found.ok_or_else(|| {
            Error::new("follow a pointer in a transaction", TransactionError::NoBlock(address))
        })
    }
}
