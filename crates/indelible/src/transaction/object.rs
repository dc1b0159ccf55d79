#![allow(unsafe_code)]

use super::attached::Attached;
use super::checked::Repairs;
use super::home::{Transactional, private};
use super::pending::{Pending, sync};
use super::run::{Tx, transaction};
use crate::error::{Error, Result, TransactionError};
use crate::plain::{Plain, placed};
use crate::pool::{Class, Pool};
use std::marker::PhantomData;
use std::ops::Deref;

/// An attached object of class [`Transactional`](crate::Class::Transactional) or
/// [`OnDemand`](crate::Class::OnDemand): a `T` that only transactions, of any number of threads,
/// change, by its [`TxCell`](crate::TxCell)s.
///
/// *On demand*, changes outlive the process on return, and are durable once
/// [`tx_sync`](TxObject::tx_sync) or [`psync`](TxObject::psync) returns, when the object is
/// detached, and regularly ([`Pool::set_epochs`]). A power cut or system crash leaves a prefix of
/// its transactions, with all durable ones; [a guard](Pool::set_guard) makes all durable when the
/// power fails. In a pool in memory ([`MediumKind::Memory`](crate::MediumKind::Memory)) the class
/// gains little.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("bank.pmo");
/// use indelible::{Class, CreateOptions, Plain, Pool, TxCell};
///
/// #[derive(Plain)]
/// #[repr(C)]
/// struct Bank {
///     balances: [TxCell<u64>; 64],
/// }
///
/// let pool = Pool::format(&path, 16 << 20)?;
/// pool.create_with("bank", &CreateOptions::new(4096).class(Class::Transactional))?;
/// let bank = pool.attach_transactional::<Bank>("bank")?;
/// bank.transaction(|tx| tx.write(&bank.balances[0], 100))?; // durable
///
/// let moved = bank.transaction(|tx| {
///     let from = tx.read(&bank.balances[0])?;
///     let Some(left) = from.checked_sub(30) else { return Ok(false) };
///     tx.write(&bank.balances[0], left)?;
///     let to = tx.read(&bank.balances[1])?;
///     tx.write(&bank.balances[1], to + 30)?;
///     Ok::<_, indelible::Error>(true)
/// })?;
/// assert!(moved);
/// # assert_eq!(bank.transaction(|tx| tx.read(&bank.balances[1]))?, 30);
/// # Ok::<(), indelible::Error>(())
/// ```
///
/// Any access at the object's own address is a SIGSEGV. While a transaction uses the object it
/// cannot be detached:
///
/// ```compile_fail
/// # fn example(bank: indelible::TxObject<indelible::TxCell<u64>>) -> indelible::Result<()> {
/// bank.transaction(|tx| {
///     bank.detach()?; // error: `bank` is borrowed
///     tx.write(&bank, 1)
/// })
/// # }
/// ```
///
/// Atomics do not compile:
///
/// ```compile_fail,E0080
/// # fn example(pool: &indelible::Pool) -> indelible::Result<()> {
/// let hits = pool.attach_transactional::<[std::sync::atomic::AtomicU64; 8]>("hits")?;
/// # Ok(()) }
/// # let _ = example as fn(_) -> _;
/// ```
pub struct TxObject<T> {
    attached: Attached,
    root: PhantomData<T>,
}

// SAFETY: any thread may have the `T`'s values; transactions take care of its cells.
unsafe impl<T: Sync> Send for TxObject<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Sync> Sync for TxObject<T> {}

impl Pool {
    /// Attaches an object of class `transactional` or `on-demand`, after recovery of all
    /// acknowledged transactions. It begins with a `T`, at first zeros.
    ///
    /// # Errors
    /// `ClassMismatch` for another class, `BadSize` if it is smaller than a `T`; `NotFound`,
    /// `Held`, `ObjectReadOnly`, `WrongKey`, `AddressTaken`, `ReadOnly`, `Busy`; on demand
    /// `NoSpace` without memory for it, `Gone` if a dead process's memory is missing; `Poisoned`
    /// while objects are attached whose transactions failed.
    pub fn attach_transactional<T: Plain>(&self, name: &str) -> Result<TxObject<T>> {
        self.attach_transactional_with_key(name, b"")
    }

    /// As [`attach_transactional`](Pool::attach_transactional), for an object with a key.
    pub fn attach_transactional_with_key<T: Plain>(&self, name: &str, key: &[u8]) -> Result<TxObject<T>> {
        self.attach_tx(name, key, false)
    }

    /// As [`attach_transactional`](Pool::attach_transactional), in one memory with objects on
    /// demand, for a [`transaction`](crate::transaction()) on both: it is durable when it returns,
    /// by an epoch of all of them, for which transactions wait while its lines are copied.
    ///
    /// ```
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// # pool.create_with("sessions", &CreateOptions::new(4096).class(Class::OnDemand))?;
    /// # pool.create_with("orders", &CreateOptions::new(4096).class(Class::Transactional))?;
    /// use indelible::{Class, CreateOptions, TxCell, transaction};
    ///
    /// let sessions = pool.attach_transactional::<TxCell<u64>>("sessions")?;
    /// let orders = pool.attach_with_on_demand::<TxCell<u64>>("orders", b"")?;
    /// sessions.transaction(|tx| tx.write(&sessions, 1))?; // durable sooner or later
    /// transaction(&[&sessions, &orders], |tx| {
    ///     tx.write(&sessions, 2)?;
    ///     tx.write(&orders, 1)
    /// })?; // durable
    /// # assert_eq!(sessions.pending(), indelible::Pending::default());
    /// # Ok(()) }
    /// ```
    pub fn attach_with_on_demand<T: Plain>(&self, name: &str, key: &[u8]) -> Result<TxObject<T>> {
        self.attach_tx(name, key, true)
    }

    fn attach_tx<T: Plain>(&self, name: &str, key: &[u8], with_on_demand: bool) -> Result<TxObject<T>> {
        const {
            placed::<T>();
            assert!(!T::ATOMICS, "atomics change without a transaction: use TxCell");
        };
        let inner = self.inner();
        let how = (size_of::<T>(), with_on_demand);
        let attach = || {
            let attached = Attached::new(inner, name, key, how)?;
            if attached.pairs().is_some() && !T::CELLS {
                let why = "a value in it consists of TxCells alone: wrap each of its fields in one";
                return Err(TransactionError::Checked(why).into());
            }
            Ok(attached)
        };
        let result = inner.alive().and_then(|()| attach());
        Ok(TxObject { attached: self.about("attach", name, result)?, root: PhantomData })
    }
}

impl<T: Plain> TxObject<T> {
    /// The value at the object's start.
    #[must_use]
    pub fn root(&self) -> &T {
        // SAFETY: large enough, aligned, any bit pattern is a T, and mapped as long as `self` is;
        // no atomics, and transactions alone change its cells (1, 3), which lie elsewhere with
        // check words (6).
        unsafe { &*self.attached.base().cast::<T>() }
    }

    /// The value for plain loads outside of transactions, at the object's own address, if it is
    /// [readable outside](crate::CreateOptions::readable_outside), until the detach.
    ///
    /// Commits change it at any time: load each cell by [`read_volatile`](std::ptr::read_volatile),
    /// or as an atomic, without references. Stores are a SIGSEGV.
    ///
    /// ```
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// use indelible::{Class, CreateOptions, TxCell};
    ///
    /// let how = CreateOptions::new(4096).class(Class::Transactional).readable_outside(true);
    /// pool.create_with("price", &how)?;
    /// let price = pool.attach_transactional::<TxCell<u64>>("price")?;
    /// price.transaction(|tx| tx.write(&price, 7))?;
    /// let outside = price.outside().expect("readable outside").cast::<u64>();
    /// // SAFETY: a number of the object, which is attached.
    /// assert_eq!(unsafe { outside.read_volatile() }, 7);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn outside(&self) -> Option<*const T> {
        Some(self.attached.readable_at()?.cast())
    }

    /// Name of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        self.attached.name()
    }

    /// Size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.attached.size()
    }

    /// Runs a transaction on this object alone: see [`transaction`](crate::transaction()).
    ///
    /// # Errors
    /// As for [`transaction`](crate::transaction()).
    pub fn transaction<R, E: From<Error>>(
        &self,
        body: impl FnMut(&mut Tx<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        transaction(&[self], body)
    }

    /// Returns when all of this process's transactions in the pool so far are durable.
    ///
    /// # Errors
    /// `InTransaction`; `Poisoned` if one of them failed. On demand, after `NoRoom`, `NoSpace` and
    /// `Busy` they are in memory, and the call may be repeated.
    pub fn psync(&self) -> Result<()> {
        self.attached.psync()
    }

    /// Returns when all that this thread committed on objects of this class in the pool, and all
    /// that these transactions read, is durable.
    ///
    /// # Errors
    /// As for [`psync`](TxObject::psync). The transactions are in memory; after an error the next
    /// attach recovers them.
    pub fn tx_sync(&self) -> Result<()> {
        sync(&self.attached)
    }

    /// On-demand changes that a power cut would lose, of this process in the pool.
    #[must_use]
    pub fn pending(&self) -> Pending {
        Pending::of(&self.attached)
    }

    /// Words that this process's transactions found damaged in the pool.
    #[must_use]
    pub fn repairs(&self) -> Repairs {
        self.attached.space.repairs()
    }

    /// Its durability class.
    #[must_use]
    pub fn class(&self) -> Class {
        self.attached.class
    }

    /// Detaches.
    ///
    /// # Errors
    /// All returned transactions are safe. On demand, after `NoRoom`, `NoSpace` and `Busy`, or in a
    /// transaction, this process keeps the object until it can publish them; after any other error
    /// the next attach recovers them.
    pub fn detach(mut self) -> Result<()> {
        let result = self.attached.end();
        result.map_err(|cause| self.attached.error("detach", cause))
    }
}

impl<T: Plain> Deref for TxObject<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.root()
    }
}

impl<T> std::fmt::Debug for TxObject<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TxObject")
            .field("name", &self.attached.name())
            .field("len", &self.attached.size())
            .finish()
    }
}

impl<T> private::Part for TxObject<T> {
    #[inline]
    fn attached(&self) -> &Attached {
        &self.attached
    }
}

impl<T> Transactional for TxObject<T> {}
