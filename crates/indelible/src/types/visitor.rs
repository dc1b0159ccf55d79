//! The users of a walk.

use super::Path;

/// A receiver of the walk's findings.
pub(crate) trait Visitor {
    /// Whether `plain` gets all bytes.
    const PLAIN: bool = false;

    /// A block that a value owns.
    fn block(&mut self, _address: u64, _path: &Path<'_, '_>) {}

    /// An address other than zero that owns nothing; `at`: where it lies.
    fn pointer(&mut self, _at: u64, _target: u64, _path: &Path<'_, '_>) {}

    /// A far pointer other than zero, by its word, into this object or another; `at`: where it
    /// lies.
    fn far(&mut self, _at: u64, _word: u64, _path: &Path<'_, '_>) {}

    /// A word that is an address by its type, of a block or of anything else; it may be zero. It
    /// may be told several times.
    fn link(&mut self, _at: u64) {}

    /// Bytes of values without an inner structure, such as numbers, and bytes between the fields of
    /// a struct; not those of text.
    fn plain(&mut self, _address: u64, _len: u64, _path: &Path<'_, '_>) {}

    /// Bytes at an address that no description explains; `name`: their type.
    fn opaque(&mut self, _address: u64, _len: u64, _name: &str, _path: &Path<'_, '_>) {}

    /// A block that counts its owners, and how many the walk found, once it has ended.
    fn shared(&mut self, _address: u64, _counted: u64, _found: u64) {}

    /// Something at an address that cannot be.
    fn wrong(&mut self, address: u64, what: &str, path: &Path<'_, '_>);
}
