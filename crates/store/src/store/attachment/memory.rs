//! Objects on demand in the pool (docs/decisions/0052-on-demand.md): their commits are in memory
//! outside the pool.
//!
//! The entry has that memory's number until the pool has all commits, or the machine restarts.
//! Without an attached process, only [`Store::attach_left_writer`] recovers the object; other uses
//! fail with `MemoryLeft`.

use super::class::{Memory, expect_class};
use super::unlocked::expect_key;
use super::writer::Writer;
use crate::entropy::random;
use crate::error::{Result, StoreError};
use crate::format::entry::FLAG_DELETED;
use crate::format::root::TreeId;
use crate::mutant::Mutant;
use crate::space::TableTransaction;
use crate::store::pool::Store;
use crate::table::{Class, Key, Located, SlotFound};
use std::sync::Arc;

impl Store {
    /// A random nonzero number for memory that outlives this process.
    pub fn memory_number(&self) -> Result<u64> {
        Ok(u64::from_le_bytes(random()?).max(1))
    }

    /// [`attach_writer`](Store::attach_writer) of an object on demand, or of a transactional one
    /// used with such, with commits in `memory` until the writer [forgets](Writer::forget_memory)
    /// it.
    ///
    /// # Errors
    /// `Mismatch` of its class, `BootUnknown`; `MemoryLeft`: a dead process left commits; as for
    /// [`attach_writer`](Store::attach_writer).
    pub fn attach_on_demand_writer(
        self: &Arc<Self>,
        name: &str,
        key: Key<'_>,
        memory: u64,
    ) -> Result<Writer> {
        if self.identity.boot == [0; 16] {
            return Err(StoreError::BootUnknown);
        }
        let find = |table: &TableTransaction<'_>| {
            let object = self.usable(table, name)?;
            // It may share transactions.
            if Class::of(&object.entry) != Some(Class::Transactional) {
                expect_class(&object, Class::OnDemand)?;
            }
            expect_key(&object, None)?;
            Ok(object)
        };
        self.attach_found_writer(&find, Some(key), Memory::New(memory))
    }

    /// Attaches an object, without a key, to bring a dead process's commits in `memory` to the
    /// pool, until the writer [forgets](Writer::forget_memory) it.
    ///
    /// # Errors
    /// `NotFound`: it has no commits there. `Held`, and as for
    /// [`attach_writer`](Store::attach_writer).
    pub fn attach_left_writer(self: &Arc<Self>, id: &[u8; 16], memory: u64) -> Result<Writer> {
        let find = |table: &TableTransaction<'_>| {
            table.find_id(id)?.filter(|object| self.is_in(object, memory)).ok_or(StoreError::NotFound)
        };
        self.attach_found_writer(&find, None, Memory::Left(memory))
    }

    fn is_in(&self, object: &Located, memory: u64) -> bool {
        object.entry.memory_in(&self.identity.boot) == Some(memory) && !object.entry.has(FLAG_DELETED)
    }

    /// Objects with commits in this memory, of all objects.
    pub fn objects_in(&self, memory: u64) -> Result<Vec<Located>> {
        let entries = self.entries()?;
        self.view(|table| {
            let found = entries.iter().filter_map(|listed| table.entry(listed.offset).ok());
            Ok(found.filter(|object| self.is_in(object, memory)).collect())
        })
    }

    /// Whether an entry names this memory, or is unreadable and may; looks at all objects.
    pub fn may_be_in(&self, memory: u64) -> Result<bool> {
        self.view(|table| {
            let mut found = false;
            table.walk(TreeId::Names, &mut |_, level, slots| {
                let entries = slots.iter().filter(|_| level == 0).map(|slot| table.slot(slot.value.get()));
                for entry in entries {
                    found |= match entry {
                        SlotFound::Used(object) => self.is_in(&object, memory),
                        SlotFound::Free => false,
                        SlotFound::Damaged | SlotFound::Unreadable(_) => true,
                    };
                }
                Ok(())
            })?;
            Ok(found)
        })
    }

    /// Numbers of this boot's memory with commits, each once.
    pub fn memories(&self) -> Result<Vec<u64>> {
        let entries = self.entries()?;
        self.view(|table| {
            let found = entries.iter().filter_map(|listed| table.entry(listed.offset).ok());
            let mut numbers: Vec<_> = found
                .filter(|object| !object.entry.has(FLAG_DELETED))
                .filter_map(|object| object.entry.memory_in(&self.identity.boot))
                .collect();
            numbers.sort_unstable();
            numbers.dedup();
            Ok(numbers)
        })
    }

    /// Gives up lost commits in memory: the object stays as last durable.
    ///
    /// # Errors
    /// `NotFound`: no object, or no commits; `WrongKey`, `Held`.
    pub fn give_memory_up(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<()> {
        let object = self.find(name)?;
        if !object.opens_for_writing(key) {
            return Err(StoreError::WrongKey);
        }
        let memory = object.entry.memory_in(&self.identity.boot).ok_or(StoreError::NotFound)?;
        let mut writer = self.attach_left_writer(&object.entry.id, memory)?;
        writer.forget_memory();
        writer.detach()
    }

    pub(super) fn expect_no_memory(&self, object: &Located) -> Result<()> {
        // Rules D11 and D14 of docs/protocol.md.
        match object.entry.memory_in(&self.identity.boot) {
            Some(memory) if !Mutant::MemoryForgotten.is_on() => Err(StoreError::MemoryLeft { memory }),
            _ => Ok(()),
        }
    }

    pub(super) fn has_memory(&self, object: &Located) -> bool {
        self.expect_no_memory(object).is_err()
    }
}

impl Writer {
    /// The pool has all commits: the detach clears the number in the entry.
    pub fn forget_memory(&mut self) {
        self.forgets_memory = true;
    }
}
