use super::{Class, SealKey};
use crate::sys::boot;
use indelible_store::format::ecc::with_check_words;
use indelible_store::seal;
use indelible_store::table::{self, Key};

/// Options of creating an object.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    size: u64,
    read_key: Vec<u8>,
    write_key: Vec<u8>,
    read_only: bool,
    sparse: bool,
    volatile: bool,
    position_independent: bool,
    class: Class,
    ecc: bool,
    readable_outside: bool,
    reach: u64,
    seals: Vec<(SealKey, String)>,
}

impl CreateOptions {
    /// An object of `size` bytes without keys.
    #[must_use]
    pub fn new(size: u64) -> Self {
        CreateOptions { size, ..CreateOptions::default() }
    }

    /// One key for reading and writing.
    #[must_use]
    pub fn key(self, key: &[u8]) -> Self {
        self.read_key(key).write_key(key)
    }

    /// Key to attach for reading; the write key also works.
    #[must_use]
    pub fn read_key(mut self, key: &[u8]) -> Self {
        key.clone_into(&mut self.read_key);
        self
    }

    /// Key to attach for writing, resize and destroy.
    #[must_use]
    pub fn write_key(mut self, key: &[u8]) -> Self {
        key.clone_into(&mut self.write_key);
        self
    }

    /// Refuses write attaches for good.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Claims space at the first psync instead of now; a psync may then lack space.
    #[must_use]
    pub fn sparse(mut self, sparse: bool) -> Self {
        self.sparse = sparse;
        self
    }

    /// Durability class, by default psync. A [sealed](Self::sealed) or [sparse](Self::sparse)
    /// object is neither transactional nor on demand; a shared one is [volatile](Self::volatile).
    #[must_use]
    pub fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    /// Gives each 8-byte word a check word, in twice the space. The object becomes transactional,
    /// unless it is on demand. A transaction that loads a word repairs up to 6 wrong bits of these
    /// 128, and nearly all cases of 7; otherwise it fails ([`Damaged`](crate::ErrorKind::Damaged)).
    /// Up to 13 wrong bits are noticed, but 8 or more may look like fewer.
    #[must_use]
    pub fn ecc(mut self, ecc: bool) -> Self {
        self.ecc = ecc;
        if ecc && self.class == Class::Psync {
            self.class = Class::Transactional;
        }
        self
    }

    /// Lets plain loads see a transactional or on-demand object, at [its own
    /// address](crate::TxObject::outside), while the thread runs no transaction.
    ///
    /// Loads see committed words of 8 bytes, each of its own moment, perhaps before they are
    /// durable. Attaching copies the object to memory. It has no [check words](Self::ecc).
    #[must_use]
    pub fn readable_outside(mut self, readable: bool) -> Self {
        self.readable_outside = readable;
        self
    }

    /// An object whose contents last until the machine restarts; then attaches fail with
    /// [`VolatileGone`](crate::ErrorKind::VolatileGone).
    #[must_use]
    pub fn volatile(mut self, volatile: bool) -> Self {
        self.volatile = volatile;
        self
    }

    /// Declares that the object's contents do not depend on its addresses, unchecked:
    /// [`Pool::copy_rebased`](crate::Pool::copy_rebased) copies it as it is. Heaps with described
    /// roots need no declaration.
    #[must_use]
    pub fn position_independent(mut self, is: bool) -> Self {
        self.position_independent = is;
        self
    }

    /// Seals the object: its bytes in the pool are encrypted and authenticated. Each key given
    /// opens it by [`attach_sealed`](crate::Pool::attach_sealed). `label` is for people, at most 56
    /// bytes.
    ///
    /// Name, size, times and changed pages stay visible. Only an [anchor](SealKey::anchored)
    /// detects an older state of the whole pool.
    #[must_use]
    pub fn sealed(mut self, key: &SealKey, label: &str) -> Self {
        self.seals.push((key.clone(), label.to_owned()));
        self
    }

    /// Address space reserved for growth, in bytes; by default several times the pool's length.
    /// [`Pool::set_reach`](crate::Pool::set_reach) extends it later.
    #[must_use]
    pub fn reach(mut self, bytes: u64) -> Self {
        self.reach = bytes;
        self
    }

    pub(crate) fn seal_keys(&self) -> Vec<(&seal::SealKey, &str)> {
        self.seals.iter().map(|(key, label)| (&key.key, label.as_str())).collect()
    }

    pub(crate) fn first_seal_key(&self) -> Option<&SealKey> {
        let signing = self.seals.iter().find(|(key, _)| key.key.signs());
        signing.or(self.seals.first()).map(|(key, _)| key)
    }

    fn occupied(&self, bytes: u64) -> u64 {
        if self.ecc { with_check_words(bytes).unwrap_or(u64::MAX) } else { bytes }
    }

    pub(crate) fn as_store(&self) -> table::CreateOptions<'_> {
        table::CreateOptions {
            size: self.occupied(self.size),
            read_key: Key(&self.read_key),
            write_key: Key(&self.write_key),
            read_only: self.read_only,
            // A shared object has no bytes in the pool, and does not outlive the boot.
            sparse: self.sparse || self.class == Class::Shared,
            position_independent: self.position_independent,
            class: self.class,
            ecc: self.ecc,
            readable_outside: self.readable_outside,
            volatile: (self.volatile || self.class == Class::Shared).then(boot::boot_id),
            reach: self.occupied(self.reach),
            window: 0,
        }
    }
}
