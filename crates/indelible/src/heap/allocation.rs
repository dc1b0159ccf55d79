//! Values of a block's allocation byte.

pub const FREE: u8 = 0;
pub const USED: u8 = 1;
/// Freed by a thread that does not own the span, unnoticed by the owner.
pub const FREED: u8 = 2;
