//! Roots of a transactional heap.

use super::{WordHeap, Words};
use crate::error::Cause;
use crate::heap::error::{HeapError, Result};
use crate::heap::root::{Root, TypeInfo};
use crate::heap::roots;
use crate::heap::state::Shared;

impl WordHeap {
    /// The root `name`, of this type.
    pub(crate) fn root(
        &self,
        words: &mut impl Words,
        name: &str,
        ty: &TypeInfo<'_>,
    ) -> Result<Option<Root>, Cause> {
        self.prepare(words, |window| match roots::find(&Shared::of_copies(window)?, name) {
            Err(HeapError::RootMissing { .. }) => Ok(None),
            found => found?.expect(ty).map(Some),
        })
    }

    /// Names the block at this address.
    pub(crate) fn create_root(
        &self,
        words: &mut impl Words,
        name: &str,
        (address, size): (u64, u64),
        ty: &TypeInfo<'_>,
    ) -> Result<(), Cause> {
        let root = Root {
            name: name.to_owned(),
            address: address as usize,
            size,
            type_name: ty.name.to_owned(),
            fingerprint: ty.fingerprint,
            layout: ty.layout.to_owned(),
        };
        self.with_room(words, |heap, words| {
            heap.prepare(words, |window| roots::create(&Shared::of_copies(window)?, &root))
        })
    }

    /// Takes the name from a root, whose block stays.
    pub(crate) fn remove_root(&self, words: &mut impl Words, name: &str) -> Result<Root, Cause> {
        self.prepare(words, |window| roots::remove(&Shared::of_copies(window)?, name))
    }
}
