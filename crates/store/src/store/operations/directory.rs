//! Directories: objects whose names share a prefix up to a `/`. One batch renames them all.

use super::revive::Unpublished;
use crate::error::{Result, SealError, StoreError};
use crate::format::entry::FLAG_HIDDEN;
use crate::format::root::TreeId;
use crate::medium::LockMode;
use crate::mutant::Mutant;
use crate::space::TableTransaction;
use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::{Key, Located, SlotFound, check_name, entry_hash};
use std::sync::Arc;

impl Store {
    /// Replaces the prefix `from` of names by `to`, in one batch. Returns the number of objects.
    ///
    /// # Errors
    /// As for [`rename`](Store::rename), with the object concerned; `NameSealed` also of a sealed
    /// object whose writer died. `NotFound`: no name begins with `from`. `BadName`: `to` begins
    /// with `from`. `NoRoom` for a long list of changes. Nothing happened.
    pub fn rename_directory(
        self: &Arc<Self>,
        from: &str,
        to: &str,
        key: Key<'_>,
    ) -> Result<u64, Unpublished> {
        let mut object = None;
        let done = match to.starts_with(from) {
            true => Err(StoreError::BadName { why: "a directory cannot be moved into itself" }),
            false => self.unless_held_still(|| {
                object = None;
                self.rename_directory_now((from, to), key, &mut object)
            }),
        };
        done.map_err(|cause| Unpublished { object, cause })
    }

    fn rename_directory_now(
        &self,
        (from, to): (&str, &str),
        key: Key<'_>,
        concerned: &mut Option<String>,
    ) -> Result<u64> {
        if Mutant::DirectoryApart.is_on() {
            let mut objects = self.view(|table| in_directory(table, from))?;
            let moved = objects.len() as u64;
            while let Some(object) = objects.pop() {
                self.update(|table| rename_all(table, vec![object], (from, to), concerned))?;
            }
            return Ok(moved);
        }
        self.update(|table| {
            let objects = in_directory(table, from)?;
            if objects.is_empty() {
                return Err(StoreError::NotFound);
            }
            let count = objects.len() as u64;
            let mut locks = Vec::with_capacity(objects.len());
            for object in &objects {
                *concerned = Some(object.entry.name());
                if let Some(unknown) = object.entry.unknown() {
                    return Err(StoreError::ObjectFeature { unknown });
                }
                if !object.opens_for_writing(key) {
                    return Err(StoreError::WrongKey);
                }
                // Recovery may change its key page.
                let named = table.sealed_identity(object)?.is_some_and(|sealed| sealed.is_of(&object.entry));
                if named || object.is_sealed() && object.is_bound() {
                    return Err(SealError::NameSealed.into());
                }
                locks.push(ObjectLock::take(&self.object_locks, object, LockMode::Exclusive)?);
            }
            rename_all(table, objects, (from, to), concerned)?;
            *concerned = None;
            Ok(count)
        })
    }
}

fn in_directory(table: &TableTransaction<'_>, prefix: &str) -> Result<Vec<Located>> {
    let (mut entries, mut found) = (Vec::new(), Vec::new());
    table.walk(TreeId::Names, &mut |_, level, slots| {
        if level == 0 {
            entries.extend(slots.iter().map(|slot| slot.value.get()));
        }
        Ok(())
    })?;
    entries.sort_unstable();
    table.slots(&entries, &mut |offset, slot| {
        match slot {
            SlotFound::Used(object) => {
                let is_in = object.entry.name_bytes().starts_with(prefix.as_bytes());
                found.extend((is_in && !object.entry.has(FLAG_HIDDEN)).then_some(*object));
            }
            _ => found.push(table.entry(offset)?),
        }
        Ok(())
    })?;
    Ok(found)
}

/// All lose their names first: one may get another's.
fn rename_all(
    table: &mut TableTransaction<'_>,
    objects: Vec<Located>,
    (from, to): (&str, &str),
    concerned: &mut Option<String>,
) -> Result<()> {
    for object in &objects {
        table.stock_up(true)?;
        table.remove(TreeId::Names, (entry_hash(table.seed(), &object.entry), object.offset))?;
    }
    for mut object in objects {
        let name = object.entry.name();
        let new = format!("{to}{}", &name[from.len()..]);
        *concerned = Some(name);
        check_name(&new)?;
        if table.find(&new)?.is_some() {
            *concerned = Some(new);
            return Err(StoreError::Exists);
        }
        object.entry.set_name(&new);
        table.stock_up(true)?;
        table.insert(TreeId::Names, (table.name_hash(&new), object.offset), object.offset)?;
        table.put_entry(&object)?;
    }
    Ok(())
}
