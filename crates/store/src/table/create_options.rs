//! How objects are created.

use super::class::Class;
use crate::error::{Result, StoreError};
use crate::format::entry::Entry;
use sha2::{Digest, Sha256};

/// A key as given by a user; empty means none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Key<'a>(pub &'a [u8]);

impl Key<'_> {
    /// The verifier of a key that the table keeps: enough to recognise the key.
    pub(super) fn verifier(self, id: &[u8; 16], role: &str) -> [u8; 16] {
        if self.0.is_empty() {
            return [0; 16];
        }
        let digest = Sha256::new().chain_update(id).chain_update(role).chain_update(self.0).finalize();
        let mut out = [0; 16];
        out.copy_from_slice(&digest[..16]);
        out
    }
}

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
    /// Plain loads outside of transactions see what they committed.
    pub readable_outside: bool,
    /// The boot of the machine in which the contents hold; `None`: they outlast it.
    pub volatile: Option<[u8; 16]>,
    /// Address space to keep for growth, in bytes; 0: as much as the pool has, while addresses are
    /// plenty.
    pub reach: u64,
    /// Bytes of addresses that the pool has in all, by which it is known whether they are plenty;
    /// 0: they are not.
    pub window: u64,
}

impl<'a> CreateOptions<'a> {
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
