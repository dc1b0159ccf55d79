//! The superblock: facts that change at most once in a pool's life.
//!
//! The valid one of two one-page slots with the higher `sequence` is in force; a change goes to the
//! other. A copy lies in the page behind the pool.

use super::{DATA, MIN_POOL, PAGE, RELEASE, VERSION, checksum};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First bytes of a pool.
pub const MAGIC: [u8; 8] = *b"INDELIBL";

/// Offsets of the two slots.
pub const SLOTS: [u64; 2] = [0, PAGE];

/// One slot as it lies on the medium.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Superblock {
    pub magic: [u8; 8],
    pub version: U32,
    pub features: U32,
    pub sequence: U64,
    pub checksum: U64,
    pub id: [u8; 16],
    pub seed: U64,
    pub length: U64,
    pub data: U64,
    pub window: U64,
    pub window_len: U64,
    pub created: U64,
    pub label_len: U32,
    pub optional: U32,
    pub label: [u8; 128],
    pub release: [u8; 16],
    pub reserved: [u8; 8],
}

const _: () = assert!(size_of::<Superblock>() == 256);

/// An upgrade of the pool is unfinished, and only it may continue.
pub const FEATURE_UPGRADING: u32 = 1;

/// Why a slot is not usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotFault {
    /// Not a pool, or a destroyed slot.
    NoMagic,
    /// Written by an unknown version of the format.
    Version(u32),
    /// An upgrade was begun and did not end.
    Upgrading,
    /// Needs features this code does not know.
    Features(u32),
    /// The checksum does not match.
    Checksum,
    /// Fields contradict each other or the medium.
    Geometry,
}

impl Superblock {
    /// Fills in the checksum.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.checksum = U64::new(0);
        self.checksum = U64::new(checksum(0, &[self.as_bytes()]));
        self
    }

    /// Checks all that the crate relies on.
    pub fn verify(&self, medium_len: u64) -> Result<(), SlotFault> {
        if self.magic != MAGIC || self.version.get() == 0 {
            return Err(SlotFault::NoMagic);
        }
        if self.version.get() != VERSION {
            return Err(SlotFault::Version(self.version.get()));
        }
        let mut zeroed = *self;
        zeroed.checksum = U64::new(0);
        if checksum(0, &[zeroed.as_bytes()]) != self.checksum.get() {
            return Err(SlotFault::Checksum);
        }
        if self.features.get() & !FEATURE_UPGRADING != 0 {
            return Err(SlotFault::Features(self.features.get()));
        }
        if self.features.get() != 0 {
            return Err(SlotFault::Upgrading);
        }
        let length = self.length.get();
        let sound = length >= MIN_POOL
            && length.is_multiple_of(PAGE)
            && length <= medium_len
            && self.data.get() == DATA
            && self.window.get().is_multiple_of(PAGE)
            && self.window_len.get().is_multiple_of(PAGE)
            && self.window.get().checked_add(self.window_len.get()).is_some_and(|end| end <= 1 << 47)
            && self.label_len.get() as usize <= self.label.len();
        if sound { Ok(()) } else { Err(SlotFault::Geometry) }
    }

    /// The copy behind the pool; only growth of the pool changes it.
    #[must_use]
    pub fn copy(&self) -> Superblock {
        Superblock { sequence: U64::new(1), ..*self }.sealed()
    }

    /// Sets the release to this one.
    pub fn set_release(&mut self) {
        self.release = [0; 16];
        let len = RELEASE.len().min(self.release.len());
        self.release[..len].copy_from_slice(&RELEASE.as_bytes()[..len]);
    }

    /// The release that formatted or upgraded the pool; empty in pools of format 1.
    #[must_use]
    pub fn release(&self) -> String {
        let end = self.release.iter().position(|byte| *byte == 0).unwrap_or(self.release.len());
        String::from_utf8_lossy(&self.release[..end]).into_owned()
    }

    /// The label, with damaged UTF-8 replaced.
    #[must_use]
    pub fn label(&self) -> String {
        let len = (self.label_len.get() as usize).min(self.label.len());
        String::from_utf8_lossy(&self.label[..len]).into_owned()
    }
}
