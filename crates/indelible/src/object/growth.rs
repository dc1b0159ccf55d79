use super::writer::Object;
use crate::error::Result;
use crate::events;
use std::sync::atomic::Ordering;

impl Object {
    /// Grows the object to `size` bytes, durably; its address, pointers into it and stores not
    /// psynced stay.
    ///
    /// # Errors
    /// `NoRoom`, `NoSpace`, `NoAddresses`, `AddressTaken`, `BadSize` if smaller: nothing changed.
    /// If the object moved and cannot be mapped, the kernel's error; the object is then `Poisoned`:
    /// attach it again.
    pub fn grow(&mut self, size: u64) -> Result<()> {
        let result = self.pool.alive().and_then(|()| {
            let core = self.core_mut();
            core.grow(size).map(|()| core.size())
        });
        let len = result.map_err(|cause| self.error("grow", cause))?;
        self.len.store(len, Ordering::Release);
        events::grown(&self.name, size);
        Ok(())
    }

    pub(crate) fn grow_beside(&self, size: u64) -> Result<()> {
        let mut core = self.core();
        let result = self.pool.alive().and_then(|()| core.grow_beside(size));
        result.map_err(|cause| self.error("grow", cause))?;
        self.len.store(core.size(), Ordering::Release);
        events::grown(&self.name, size);
        Ok(())
    }

    pub(crate) fn reach(&self) -> usize {
        self.core().reach()
    }

    #[inline]
    pub(crate) fn give_addresses(&self) -> Result<()> {
        if self.typed.load(Ordering::Acquire) { self.find_stores() } else { Ok(()) }
    }

    #[cold]
    fn find_stores(&self) -> Result<()> {
        let mut core = self.core();
        let found = core.find_stores();
        self.typed.store(false, Ordering::Release);
        found.map_err(|cause| self.error("find the stores to", cause))
    }
}
