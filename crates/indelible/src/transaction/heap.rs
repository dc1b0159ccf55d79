#![allow(unsafe_code)]

use super::attached::Attached;
use super::checked::PlainWords;
use super::home::{Home, Transactional, placed_in_block, private};
use super::pending::{Pending, sync};
use super::pointer::TxPtr;
use super::run::{Tx, alone, transaction};
use crate::error::{Cause, Error, ErrorKind, HeapError, Result, TransactionError};
use crate::heap::{Extent, HeapFinding, HeapOptions, HeapStats, RawHeap, TypeInfo};
use crate::plain::Plain;
use crate::pool::{Class, CreateOptions, Inner, Pool};
use std::ptr::NonNull;
use std::sync::Arc;

/// The heap of an object of class [`Transactional`](crate::Class::Transactional) or
/// [`OnDemand`](crate::Class::OnDemand), whose blocks transactions allocate and free; see
/// [`Tx::alloc`] and [`collections::transactional`](crate::collections::transactional).
pub struct TxHeap {
    home: Home,
}

impl Pool {
    /// Opens the transactional heap of the object `name`, or creates the object with `size` bytes.
    /// It grows as far as its pool and its [reach](CreateOptions::reach) allow.
    ///
    /// # Errors
    /// As for [`create_with`](Pool::create_with) and
    /// [`attach_transactional`](Pool::attach_transactional). `Exists` if the object has other
    /// contents, `BadSize` if it is too small for a heap, `Version`, `Damaged`.
    pub fn transactional_heap(&self, name: &str, size: u64) -> Result<TxHeap> {
        self.tx_heap(name, (size, Class::Transactional), |inner| Attached::durable(inner, name, b""))
    }

    /// As [`transactional_heap`](Pool::transactional_heap), of an object [on
    /// demand](Class::OnDemand): transactions become durable together, in
    /// [epochs](Pool::set_epochs) or by [`TxHeap::tx_sync`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// use indelible::collections::transactional::TxHashMap;
    ///
    /// let sessions = pool.heap_on_demand("sessions", 1 << 20)?;
    /// let hits = sessions.root_or_default::<TxHashMap<u64, u64>>("hits")?;
    /// sessions.transaction(|tx| hits.insert(tx, 17, 1))?; // whatever becomes of the process
    /// sessions.tx_sync()?; // and of the machine
    /// # assert_eq!(sessions.pending(), indelible::Pending::default());
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`transactional_heap`](Pool::transactional_heap); `ClassMismatch` if the object is
    /// transactional; `NoSpace` if there is no memory for it, `Gone` if a dead process's memory is
    /// missing.
    pub fn heap_on_demand(&self, name: &str, size: u64) -> Result<TxHeap> {
        self.tx_heap(name, (size, Class::OnDemand), |inner| Attached::new(inner, name, b"", (0, true)))
    }

    /// As [`transactional_heap`](Pool::transactional_heap), in one memory with objects on demand,
    /// for transactions that use both: see [`attach_with_on_demand`](Pool::attach_with_on_demand).
    ///
    /// # Errors
    /// As for [`transactional_heap`](Pool::transactional_heap) and
    /// [`heap_on_demand`](Pool::heap_on_demand).
    pub fn heap_with_on_demand(&self, name: &str, size: u64) -> Result<TxHeap> {
        self.tx_heap(name, (size, Class::Transactional), |inner| Attached::new(inner, name, b"", (0, true)))
    }

    fn tx_heap(
        &self,
        name: &str,
        (size, class): (u64, Class),
        attach: impl Fn(&Arc<Inner>) -> Result<Attached, Cause>,
    ) -> Result<TxHeap> {
        let attach = || {
            let inner = self.inner();
            let attached = inner.alive().and_then(|()| attach(inner)).and_then(|found| match found.class {
                there if there == class => Ok(found),
                Class::OnDemand => Err(TransactionError::IsOnDemand.into()),
                _ => Err(TransactionError::NotOnDemand.into()),
            });
            self.about("attach", name, attached)
        };
        let attached = match attach() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                match self.create_with(name, &CreateOptions::new(size).class(class)) {
                    Err(error) if error.kind() != ErrorKind::Exists => return Err(error),
                    _ => attach()?,
                }
            }
            attached => attached?,
        };
        let heap = TxHeap { home: Home::new(attached) };
        heap.transaction(|tx| tx.in_heap(&heap.home, "open the heap of", |heap, words| heap.open(words)))?;
        Ok(heap)
    }
}

impl TxHeap {
    /// Its durability class.
    #[must_use]
    pub fn class(&self) -> Class {
        self.home.attached.class
    }

    /// Makes this thread's transactions, and all that these read, durable: see
    /// [`TxObject::tx_sync`](crate::TxObject::tx_sync).
    ///
    /// # Errors
    /// As for [`psync`](TxHeap::psync).
    pub fn tx_sync(&self) -> Result<()> {
        sync(&self.home.attached)
    }

    /// On-demand changes that a power cut would lose: see
    /// [`TxObject::pending`](crate::TxObject::pending).
    #[must_use]
    pub fn pending(&self) -> Pending {
        Pending::of(&self.home.attached)
    }
}

impl TxHeap {
    pub(super) fn home(&self) -> &Home {
        &self.home
    }

    /// The object's first byte for plain loads outside of transactions, if it is [readable
    /// outside](crate::CreateOptions::readable_outside): see
    /// [`TxObject::outside`](crate::TxObject::outside). [`TxPtr`]s have its addresses. A freed
    /// block may be reused at any time.
    #[must_use]
    pub fn outside(&self) -> Option<*const u8> {
        self.home.attached.readable_at()
    }

    /// Name of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        self.home.attached.name()
    }

    /// Size of the object in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.home.attached.size()
    }

    /// Runs a transaction on this heap alone: see [`transaction`](crate::transaction()).
    ///
    /// # Errors
    /// As for [`transaction`](crate::transaction()).
    pub fn transaction<R, E: From<Error>>(
        &self,
        body: impl FnMut(&mut Tx<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        transaction(&[self], body)
    }

    /// See [`TxObject::psync`](crate::TxObject::psync).
    ///
    /// # Errors
    /// `InTransaction`; `Poisoned` if one of them failed.
    pub fn psync(&self) -> Result<()> {
        self.home.attached.psync()
    }

    /// Detaches.
    ///
    /// # Errors
    /// All returned transactions are safe; after an error the next attach recovers them.
    pub fn detach(mut self) -> Result<()> {
        let result = self.home.attached.end();
        result.map_err(|cause| self.home.attached.error("detach", cause))
    }

    /// Everything wrong in the heap's own data. Excludes this process's transactions in the pool.
    ///
    /// # Errors
    /// `InTransaction`, `Forked`.
    pub fn check(&self) -> Result<Vec<HeapFinding>> {
        self.at_rest("check the heap of", |raw| Ok(raw.check()))
    }

    /// Counts the heap's figures. Excludes this process's transactions in the pool.
    ///
    /// # Errors
    /// `InTransaction`, `Forked`, `Damaged`.
    pub fn stats(&self) -> Result<HeapStats> {
        self.at_rest("count the heap of", |raw| Ok(raw.stats()?))
    }

    fn at_rest<R>(
        &self,
        operation: &'static str,
        look: impl FnOnce(&RawHeap) -> Result<R, Cause>,
    ) -> Result<R> {
        let attached = &self.home.attached;
        let looked = alone(attached, || {
            let copy = attached.pairs().as_ref().map(PlainWords::of).transpose()?;
            let base = copy.as_ref().map_or(attached.base(), PlainWords::base);
            let base = NonNull::new(base.cast_mut()).unwrap_or(NonNull::dangling());
            let extent = Extent { base, len: self.size(), writable: false, marks: None, reach: 0 };
            // SAFETY: mapped as long as it is borrowed (2), or a copy; no transaction runs (1).
            let raw = unsafe { RawHeap::open(&extent, HeapOptions::new()) }?;
            look(&raw)
        });
        looked.map_err(|cause| self.home.attached.error(operation, cause))
    }

    pub(crate) fn value<T: Plain>(&self, pointer: TxPtr<T>) -> Result<&T> {
        self.home.value(pointer)
    }

    pub(crate) fn root_or_zero<T: Plain>(
        &self,
        tx: &mut Tx<'_>,
        name: &str,
        ty: &TypeInfo<'_>,
    ) -> Result<TxPtr<T>> {
        if let Some(root) = self.find_root(tx, name, ty)? {
            return Ok(root);
        }
        // SAFETY: every bit pattern is a T.
        let root = tx.alloc(self, unsafe { std::mem::zeroed::<T>() })?;
        self.name_root(tx, name, root, ty)?;
        Ok(root)
    }

    pub(crate) fn name_root<T: Plain>(
        &self,
        tx: &mut Tx<'_>,
        name: &str,
        block: TxPtr<T>,
        ty: &TypeInfo<'_>,
    ) -> Result<()> {
        tx.in_heap(&self.home, "name a root in", |heap, words| {
            let (size, room) = (size_of::<T>() as u64, heap.size_of(words, block.address())?);
            if size > room {
                return Err(HeapError::Beyond { size, room }.into());
            }
            heap.create_root(words, name, (block.address(), size), ty)
        })
    }

    pub(crate) fn find_root<T: Plain>(
        &self,
        tx: &mut Tx<'_>,
        name: &str,
        ty: &TypeInfo<'_>,
    ) -> Result<Option<TxPtr<T>>> {
        const { placed_in_block::<T>() };
        tx.in_heap(&self.home, "find a root in", |heap, words| {
            let Some(root) = heap.root(words, name, ty)? else { return Ok(None) };
            if root.size != size_of::<T>() as u64 {
                let offset = heap.offset_of(root.address as u64).unwrap_or(0);
                return Err(
                    HeapError::Damaged { offset, what: "a root has another size than its type" }.into()
                );
            }
            Ok(Some(TxPtr::new(root.address as u64)))
        })
    }

    /// Unnames a root, whose block stays.
    ///
    /// # Errors
    /// `Conflict`: to be passed on. `RootMissing`, `NotAttached`, `Damaged`.
    pub fn remove_root(&self, tx: &mut Tx<'_>, name: &str) -> Result<()> {
        tx.in_heap(&self.home, "remove a root from", |heap, words| heap.remove_root(words, name).map(drop))
    }
}

impl private::Part for TxHeap {
    fn attached(&self) -> &Attached {
        &self.home.attached
    }

    fn home(&self) -> Option<&Home> {
        Some(&self.home)
    }
}

impl Transactional for TxHeap {}

impl std::fmt::Debug for TxHeap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TxHeap").field("name", &self.name()).field("len", &self.size()).finish()
    }
}
