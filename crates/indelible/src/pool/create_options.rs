//! How objects are created.

use super::{Class, SealKey};
use crate::sys::boot;
use indelible_store::format::ecc::with_check_words;
use indelible_store::seal;
use indelible_store::table::{self, Key};

/// How to create an object.
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
    /// Keys that open it, with labels; none: it is not sealed.
    seals: Vec<(SealKey, String)>,
}

impl CreateOptions {
    /// An object of `size` bytes without keys.
    #[must_use]
    pub fn new(size: u64) -> Self {
        CreateOptions { size, ..CreateOptions::default() }
    }

    /// One key for everything, as pcreate has it.
    #[must_use]
    pub fn key(self, key: &[u8]) -> Self {
        self.read_key(key).write_key(key)
    }

    /// Key needed to attach for reading (the write key does, too).
    #[must_use]
    pub fn read_key(mut self, key: &[u8]) -> Self {
        key.clone_into(&mut self.read_key);
        self
    }

    /// Key needed to attach for writing, to resize and to destroy.
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

    /// Claims space when it is first psynced instead of now. A psync may then fail for want of
    /// space.
    #[must_use]
    pub fn sparse(mut self, sparse: bool) -> Self {
        self.sparse = sparse;
        self
    }

    /// Durability class: how its stores become durable. The default is psync, for plain stores.
    ///
    /// An object that is [sealed](Self::sealed) or [sparse](Self::sparse) is not transactional, nor
    /// on demand. One that is shared is [volatile](Self::volatile). A copy of an object has the
    /// class of that one.
    #[must_use]
    pub fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    /// Gives each word of 8 bytes of an object a check word of 8 bytes. The object is transactional
    /// then, unless it is on demand. The size becomes whole pages, and the object takes twice as
    /// much of the pool. A transaction notices damage of up to 13 of these 128 bits, in memory and
    /// in the pool alike, whenever it loads the word. It repairs up to 6 wrong bits, and nearly all
    /// damages of 7; of any other it has an error ([`Damaged`](crate::ErrorKind::Damaged)), and
    /// never a wrong value, unless 8 bits and more happen to look like fewer wrong ones of another
    /// word. [`Pool::scrub`](crate::Pool::scrub) goes through all words.
    #[must_use]
    pub fn ecc(mut self, ecc: bool) -> Self {
        self.ecc = ecc;
        if ecc && self.class == Class::Psync {
            self.class = Class::Transactional;
        }
        self
    }

    /// Lets plain loads see a transactional object, or one on demand, at [its own
    /// address](crate::TxObject::outside) while no transaction of theirs runs; by default they are
    /// a SIGSEGV, as stores there always are.
    ///
    /// A load sees what transactions committed, and never a byte of one that runs, or that failed.
    /// It looks at one moment of each word of 8 bytes, and not at one moment of several: of a
    /// transaction that is just being committed it may see some words and others not yet. It may
    /// see a commit that is not durable yet, which a power cut takes, and on demand a process death
    /// does not. For more than that, use a transaction.
    ///
    /// Attaching such an object copies it to memory. One with [check words](Self::ecc) cannot be
    /// read so.
    #[must_use]
    pub fn readable_outside(mut self, readable: bool) -> Self {
        self.readable_outside = readable;
        self
    }

    /// An object whose contents are worthless after a restart of the machine, such as scratch space
    /// or a cache. After that an attach fails with
    /// [`VolatileGone`](crate::ErrorKind::VolatileGone), and creating an object of the same name
    /// replaces it; it is also removed by [`Pool::collect`](crate::Pool::collect), and when its
    /// space is needed. Until then it is as durable as any other.
    #[must_use]
    pub fn volatile(mut self, volatile: bool) -> Self {
        self.volatile = volatile;
        self
    }

    /// No bytes in the object will depend on its addresses: it has numbers, text, offsets, and no
    /// pointers. So it gets other addresses as it is
    /// ([`Pool::copy_rebased`](crate::Pool::copy_rebased)), whatever its contents. The library does
    /// not check that; heaps with described roots need no such declaration.
    #[must_use]
    pub fn position_independent(mut self, is: bool) -> Self {
        self.position_independent = is;
        self
    }

    /// Seals the object: all its bytes in the pool are encrypted and authenticated, so that reading
    /// it, or changing it unnoticed, takes a seal key. May be called more than once: each key opens
    /// it. `label` is for people, at most 56 bytes.
    ///
    /// [`attach_sealed`](crate::Pool::attach_sealed) attaches it. Its name, size, times, and which
    /// pages change stay visible. Its snapshots, copies and backups are sealed by the same key, and
    /// made without it. An older state of the whole pool is told from the newest by an
    /// [anchor](SealKey::anchored) alone. If one of the keys has a [sign key](SealKey::signed_by),
    /// the object is signed.
    #[must_use]
    pub fn sealed(mut self, key: &SealKey, label: &str) -> Self {
        self.seals.push((key.clone(), label.to_owned()));
        self
    }

    /// Address space to keep for growth, in bytes; by default several times the pool's length, or,
    /// once objects have taken half of its addresses, several times the size.
    /// [`Pool::set_reach`](crate::Pool::set_reach) keeps more later.
    #[must_use]
    pub fn reach(mut self, bytes: u64) -> Self {
        self.reach = bytes;
        self
    }

    pub(crate) fn seal_keys(&self) -> Vec<(&seal::SealKey, &str)> {
        self.seals.iter().map(|(key, label)| (&key.key, label.as_str())).collect()
    }

    /// A key that opens it for writing.
    pub(crate) fn first_seal_key(&self) -> Option<&SealKey> {
        let signing = self.seals.iter().find(|(key, _)| key.key.signs());
        signing.or(self.seals.first()).map(|(key, _)| key)
    }

    /// Bytes in the pool and of addresses for so many that programs see. Too large a number stays
    /// too large.
    fn occupied(&self, bytes: u64) -> u64 {
        if self.ecc { with_check_words(bytes).unwrap_or(u64::MAX) } else { bytes }
    }

    pub(crate) fn as_store(&self) -> table::CreateOptions<'_> {
        table::CreateOptions {
            size: self.occupied(self.size),
            read_key: Key(&self.read_key),
            write_key: Key(&self.write_key),
            read_only: self.read_only,
            // A shared object has no bytes in the pool, and nothing of it outlives the boot.
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
