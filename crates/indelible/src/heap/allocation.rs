//! Values of a block's allocation byte.

/// Free.
pub const FREE: u8 = 0;
/// It is in use.
pub const USED: u8 = 1;
/// Freed by a thread that does not own the span, unnoticed by the owner.
pub const FREED: u8 = 2;
