use crate::collections::Persist;
use crate::collections::roots::described;
use crate::error::{Error, HeapError, Result};
use crate::plain::Plain;
use crate::transaction::{Tx, TxHeap, TxPtr};

impl TxHeap {
    /// The root of this name and type, made as zeros, in a transaction of its own, if missing.
    ///
    /// # Errors
    /// `RootType` if it is of another type, with the first difference; `BadName`, `HeapFull`,
    /// `Damaged`; as for [`transaction`](TxHeap::transaction).
    pub fn root_or_default<T: Plain + Persist<'static>>(&self, name: &str) -> Result<&T> {
        let described = described::<T>();
        self.value(self.transaction(|tx| self.root_or_zero(tx, name, &described.info()))?)
    }

    /// The root of this name and type.
    ///
    /// # Errors
    /// `RootMissing`; `RootType` if it is of another type, with the first difference; `Damaged`; as
    /// for [`transaction`](TxHeap::transaction).
    pub fn root<T: Plain + Persist<'static>>(&self, name: &str) -> Result<&T> {
        let missing = || Error::new("find a root in", HeapError::RootMissing { name: name.to_owned() });
        let root: Option<TxPtr<T>> = self.transaction(|tx| self.root_in(tx, name))?;
        self.value(root.ok_or_else(|| missing().object(self.name()))?)
    }

    /// The root of this name and type, as a transaction sees it.
    ///
    /// # Errors
    /// `Conflict`: to be passed on. `RootType` if it is of another type; `NotAttached`, `Damaged`.
    pub fn root_in<T: Plain + Persist<'static>>(
        &self,
        tx: &mut Tx<'_>,
        name: &str,
    ) -> Result<Option<TxPtr<T>>> {
        self.find_root(tx, name, &described::<T>().info())
    }

    /// Names a block, if the transaction commits.
    ///
    /// # Errors
    /// `Conflict`: to be passed on. `RootExists` if there is one of this name; `NotABlock`,
    /// `BadName`, `HeapFull`, `NotAttached`, `Damaged`.
    pub fn create_root<T: Plain + Persist<'static>>(
        &self,
        tx: &mut Tx<'_>,
        name: &str,
        block: TxPtr<T>,
    ) -> Result<()> {
        self.name_root(tx, name, block, &described::<T>().info())
    }
}
