//! The users of a walk.

use super::Path;

/// Somebody who is told what the walk comes across.
pub(crate) trait Visitor {
    /// A block that a value owns.
    fn block(&mut self, _address: u64, _path: &Path<'_, '_>) {}

    /// An address other than zero that nobody owns by it; `at`: where it lies.
    fn pointer(&mut self, _at: u64, _target: u64, _path: &Path<'_, '_>) {}

    /// Bytes at an address that no description explains.
    fn opaque(&mut self, _address: u64, _len: u64) {}

    /// Something at an address that cannot be.
    fn wrong(&mut self, address: u64, what: &str, path: &Path<'_, '_>);
}
