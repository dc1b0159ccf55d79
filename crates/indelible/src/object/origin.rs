//! The origin of an object's bytes: `trust` has its rules.

/// Origin of the bytes of the shadow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Typed code alone stored them, or the heap that typed code uses.
    Own,
    /// They were verified; the next psync makes that durable.
    Verified,
    /// Anything may have stored them.
    Foreign,
}
