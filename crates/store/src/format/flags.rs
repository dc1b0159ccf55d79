//! Flags of an object's entry.

/// The object refuses write attaches.
pub const FLAG_READ_ONLY: u32 = 1;
/// Space is claimed when it is first written, not at creation.
pub const FLAG_SPARSE: u32 = 2;
/// Only typed code stored to the object since it was blank: its invariants hold.
pub const FLAG_TYPED: u32 = 4;
/// The object has no visible name: it is the work of a resize, a base without a name, or deleted.
pub const FLAG_HIDDEN: u32 = 8;
/// The object's bytes never change again: it is a base of others, or a snapshot.
pub const FLAG_BASE: u32 = 16;
/// Pages that are not the object's own are its base's.
pub const FLAG_OVERLAY: u32 = 32;
/// The object's addresses are those of another object, and not taken from the window.
pub const FLAG_FOREIGN: u32 = 64;
/// The object was deleted: it is hidden, and goes with its last attachment.
pub const FLAG_DELETED: u32 = 128;
/// The contents hold in one boot of the machine.
pub const FLAG_VOLATILE: u32 = 256;
/// The object has a list of others, which it outlives.
pub const FLAG_TIED: u32 = 512;
/// The object's pages are encrypted, and its extent has their seals.
pub const FLAG_SEALED: u32 = 1024;
/// Each word of the object has a check word behind it, which transactions keep: `size` and `pages`
/// count both.
pub const FLAG_ECC: u32 = 2048;
/// The object is in the list of another one, or was.
pub const FLAG_TARGET: u32 = 0x1_0000;
/// A holder of the object's key declared that nothing in it depends on its addresses: it may get
/// others as it is.
pub const FLAG_POSITION_INDEPENDENT: u32 = 0x2_0000;
/// The ID is the hash of the object's bytes, which never change.
pub const FLAG_CONTENT: u32 = 0x8_0000;
/// Plain loads outside of transactions see what they committed; for classes of transactions alone.
pub const FLAG_READABLE: u32 = 0x10_0000;

/// Every flag that is defined; check warns of others.
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
/// Flags that software may use the object without knowing; an object with another unknown one is
/// refused.
pub const OPTIONAL_FLAGS: u32 = 0xffff_0000;
