use super::boundary::Right;
use crate::error::{Result, SealError, StoreError};
use crate::format::entry::{FLAG_BASE, FLAG_CONTENT, FLAG_OVERLAY, NO_LANE, STATE_D};
use crate::format::{PAGE, pages_for};
use crate::medium::LockMode;
use crate::store::attachment::renumber;
use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::{Class, Key, Located};
use std::sync::Arc;
use zerocopy::little_endian::U32;

impl Store {
    /// Resizes an unattached object; shrinking cuts off its end.
    pub fn resize(self: &Arc<Self>, name: &str, key: Key<'_>, size: u64) -> Result<Located> {
        match self.resize_if(name, key, size, |_| Ok(true))? {
            Some(object) => Ok(object),
            None => Err(StoreError::ObjectReadOnly),
        }
    }

    /// [`resize`](Store::resize) if `judge` allows it, for the recovered, locked object; `None`: it
    /// does not.
    ///
    /// # Errors
    /// As for [`resize`](Store::resize); those of `judge`.
    pub fn resize_if(
        self: &Arc<Self>,
        name: &str,
        key: Key<'_>,
        size: u64,
        judge: impl FnOnce(&Located) -> Result<bool>,
    ) -> Result<Option<Located>> {
        let found = self.find(name)?;
        if found.is_sealed() {
            return Err(SealError::KeyNeeded.into());
        }
        if found.entry.has(FLAG_CONTENT) {
            return Err(StoreError::ObjectReadOnly);
        }
        self.reap()?;
        let (mut object, object_lock) =
            self.unless_held_still(|| self.take_recovered(name, Right::Write, key))?;
        if !judge(&object)? {
            return Ok(None);
        }
        if pages_for(size) < object.entry.pages.get() {
            self.shrink(&mut object, size)?;
        } else {
            self.grow(&mut object, size)?;
        }
        drop(object_lock);
        Ok(Some(object))
    }

    pub(super) fn take_recovered(
        self: &Arc<Self>,
        name: &str,
        right: Right,
        key: Key<'_>,
    ) -> Result<(Located, ObjectLock)> {
        Class::expect_bytes(&self.find(name)?.entry)?;
        self.take_any(name, right, key)
    }

    pub(super) fn take_any(
        self: &Arc<Self>,
        name: &str,
        right: Right,
        key: Key<'_>,
    ) -> Result<(Located, ObjectLock)> {
        let (object, object_lock, recovered) = self.update(|table| {
            let mut object = self.usable(table, name)?;
            if !right.allows(&object, key) {
                return Err(StoreError::WrongKey);
            }
            if object.entry.has(FLAG_BASE) {
                return Err(StoreError::ObjectReadOnly);
            }
            let object_lock = ObjectLock::take(&self.object_locks, &object, LockMode::Exclusive)?;
            let recovered = self.recover(table, &object)?;
            object.entry.state = STATE_D;
            object.entry.lane = U32::new(NO_LANE);
            renumber(table, &mut object)?;
            table.put_entry(&object)?;
            // Given back after publication.
            Ok((object, object_lock, recovered))
        })?;
        drop(recovered);
        Ok((object, object_lock))
    }

    fn shrink(&self, object: &mut Located, size: u64) -> Result<()> {
        if size == 0 {
            return Err(StoreError::BadSize { size, why: "an object has at least one byte" });
        }
        let keep = pages_for(size);
        let cut = object.entry.pages.get() - keep;
        *object = self.update_then(
            |table| {
                let mut object = table.entry(object.offset)?;
                table.stock_up(false)?;
                table.shorten(&mut object, keep, size)?;
                table.put_entry(&object)?;
                Ok(object)
            },
            |object: Located| {
                let end = object.entry.primary_offset() + object.entry.extent_len();
                self.device.discard(end, cut * PAGE);
                object
            },
        )?;
        Ok(())
    }

    fn grow(self: &Arc<Self>, object: &mut Located, size: u64) -> Result<()> {
        // A shrink may have left bytes.
        let old = object.entry.pages.get() * PAGE;
        let kept = if size >= object.entry.size.get() { object.entry.size.get() } else { old };
        // The last page may be the base's: a copy drops bytes behind the end.
        let here = if object.entry.has(FLAG_OVERLAY) { None } else { self.grow_here(object, size, kept)? };
        *object = match here {
            Some(grown) => grown,
            None => self.move_larger(object, kept, size, None)?,
        };
        Ok(())
    }
}
