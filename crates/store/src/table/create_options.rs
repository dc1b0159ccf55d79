use super::class::Class;
use crate::error::{Result, StoreError};
use crate::format::entry::Entry;
use sha2::{Digest, Sha256};

/// A user's key; empty: none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Key<'a>(pub &'a [u8]);

impl Key<'_> {
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

/// Options of a new object.
#[derive(Clone, Copy, Debug, Default)]
pub struct CreateOptions<'a> {
    /// Size in bytes.
    pub size: u64,
    /// Key needed to attach for reading.
    pub read_key: Key<'a>,
    /// Key needed to attach for writing and to destroy.
    pub write_key: Key<'a>,
    /// Whether write attaches are refused.
    pub read_only: bool,
    /// Whether space is claimed at the first write.
    pub sparse: bool,
    /// Whether nothing in the object depends on its addresses.
    pub position_independent: bool,
    /// Durability class.
    pub class: Class,
    /// Whether words have check words, half of `size`; transactional objects only.
    pub ecc: bool,
    /// Whether plain loads see commits.
    pub readable_outside: bool,
    /// Boot of a volatile object's contents; `None`: not volatile.
    pub volatile: Option<[u8; 16]>,
    /// Bytes of addresses for growth; 0: the pool's length, while addresses are plentiful.
    pub reach: u64,
    /// Bytes of the pool's address window, which tells whether they are plentiful; 0: they are not.
    pub window: u64,
}

impl<'a> CreateOptions<'a> {
    pub(super) fn check_boot(&self) -> Result<()> {
        if self.volatile == Some([0; 16]) { Err(StoreError::BootUnknown) } else { Ok(()) }
    }

    pub(super) fn keep_keys(&self, entry: &mut Entry) {
        [entry.read_key, entry.write_key] = self.verifiers(&entry.id);
    }

    /// Verifiers of the read and the write key for an object with this ID.
    #[must_use]
    pub fn verifiers(&self, id: &[u8; 16]) -> [[u8; 16]; 2] {
        [self.read_key.verifier(id, "read"), self.write_key.verifier(id, "write")]
    }
}
