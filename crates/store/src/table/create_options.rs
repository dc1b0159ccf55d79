//! How objects are created.

use super::class::Class;
use super::objects::{Key, Located};
use crate::error::{Result, StoreError};
use crate::format::entry::Entry;

/// How to create an object.
#[derive(Clone, Copy, Debug, Default)]
pub struct CreateOptions<'a> {
    /// Size in bytes.
    pub size: u64,
    /// Key needed to attach for reading.
    pub read_key: Key<'a>,
    /// Key needed to attach for writing and to destroy.
    pub write_key: Key<'a>,
    /// Refuse write attaches.
    pub read_only: bool,
    /// Claim space when it is first written.
    pub sparse: bool,
    /// Nothing in it will depend on its addresses.
    pub position_independent: bool,
    /// Its durability class.
    pub class: Class,
    /// Its words have check words, which are a half of `size`: for a transactional object alone.
    pub ecc: bool,
    /// The boot of the machine in which the contents hold; `None`: they outlast it.
    pub volatile: Option<[u8; 16]>,
    /// Address space to keep for growth, in bytes; 0: as much as the pool has, while addresses are plenty.
    pub reach: u64,
    /// Bytes of addresses that the pool has in all, by which it is known whether they are plenty; 0: they are not.
    pub window: u64,
}

impl<'a> CreateOptions<'a> {
    /// The same; without keys, with `key` for both if `object` has any.
    #[must_use]
    pub fn with_keys_of(&self, object: &Located, key: Key<'a>) -> Self {
        let Entry { read_key, write_key, .. } = &object.entry;
        let keyed = self.read_key.0.is_empty() && self.write_key.0.is_empty();
        let inherit = |has: &[u8; 16], own: Key<'a>| if keyed && *has != [0; 16] { key } else { own };
        CreateOptions {
            read_key: inherit(read_key, self.read_key),
            write_key: inherit(write_key, self.write_key),
            ..*self
        }
    }

    /// Refuses a boot that is not known.
    pub(super) fn check_boot(&self) -> Result<()> {
        if self.volatile == Some([0; 16]) { Err(StoreError::BootUnknown) } else { Ok(()) }
    }

    /// Sets the verifiers of the keys in an entry that has its ID.
    pub(super) fn keep_keys(&self, entry: &mut Entry) {
        [entry.read_key, entry.write_key] = self.verifiers(&entry.id);
    }

    /// The verifiers of the keys, for reading and for writing, of an object with this ID.
    #[must_use]
    pub fn verifiers(&self, id: &[u8; 16]) -> [[u8; 16]; 2] {
        [self.read_key.verifier(id, "read"), self.write_key.verifier(id, "write")]
    }
}
