//! Flags of an object's entry.

/// The object refuses write attaches.
pub const FLAG_READ_ONLY: u32 = 1;
/// Space is claimed at the first write.
pub const FLAG_SPARSE: u32 = 2;
/// Only typed code has stored to the object.
pub const FLAG_TYPED: u32 = 4;
/// The object has no visible name: unfinished, a nameless base, or deleted.
pub const FLAG_HIDDEN: u32 = 8;
/// The bytes never change: a base, or a snapshot.
pub const FLAG_BASE: u32 = 16;
/// The object has a base.
pub const FLAG_OVERLAY: u32 = 32;
/// The addresses are another object's.
pub const FLAG_FOREIGN: u32 = 64;
/// The object is deleted: hidden until its last attachment ends.
pub const FLAG_DELETED: u32 = 128;
/// The contents last for one boot.
pub const FLAG_VOLATILE: u32 = 256;
/// The object has ties to others.
pub const FLAG_TIED: u32 = 512;
/// The pages are encrypted, and the extent has their seals.
pub const FLAG_SEALED: u32 = 1024;
/// A check word follows each word; `size` and `pages` count both.
pub const FLAG_ECC: u32 = 2048;
/// The object is, or was, the target of a tie.
pub const FLAG_TARGET: u32 = 0x1_0000;
/// A key holder declared that nothing in the object depends on its addresses.
pub const FLAG_POSITION_INDEPENDENT: u32 = 0x2_0000;
/// The ID is the hash of the bytes, which never change.
pub const FLAG_CONTENT: u32 = 0x8_0000;
/// Plain loads see commits; for transactional classes only.
pub const FLAG_READABLE: u32 = 0x10_0000;

/// All defined flags; check warns of others.
pub const FLAGS: u32 = FLAG_READ_ONLY
    | FLAG_SPARSE
    | FLAG_TYPED
    | FLAG_HIDDEN
    | FLAG_BASE
    | FLAG_OVERLAY
    | FLAG_FOREIGN
    | FLAG_DELETED
    | FLAG_VOLATILE
    | FLAG_TIED
    | FLAG_SEALED
    | FLAG_ECC
    | FLAG_TARGET
    | FLAG_POSITION_INDEPENDENT
    | FLAG_CONTENT
    | FLAG_READABLE;
/// Flags that may be ignored if unknown; other unknown flags refuse the object.
pub const OPTIONAL_FLAGS: u32 = 0xffff_0000;
