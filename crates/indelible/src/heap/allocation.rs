//! Values of a block's allocation byte.

/// It is free.
pub const FREE: u8 = 0;
/// It is in use.
pub const USED: u8 = 1;
/// It is free: a thread that does not own the span freed it, unnoticed by the owner so far.
pub const FREED: u8 = 2;
