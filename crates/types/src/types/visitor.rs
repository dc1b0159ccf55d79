use super::Path;

pub trait Visitor {
    const PLAIN: bool = false;

    fn block(&mut self, _address: u64, _path: &Path<'_, '_>) {}

    /// A non-zero address that owns nothing, at `at`.
    fn pointer(&mut self, _at: u64, _target: u64, _path: &Path<'_, '_>) {}

    fn far(&mut self, _at: u64, _word: u64, _path: &Path<'_, '_>) {}

    /// A word of an address type, perhaps zero; may be reported several times.
    fn link(&mut self, _at: u64) {}

    fn plain(&mut self, _address: u64, _len: u64, _path: &Path<'_, '_>) {}

    fn opaque(&mut self, _address: u64, _len: u64, _name: &str, _path: &Path<'_, '_>) {}

    /// After the walk: a block's own count of owners, and the found one.
    fn shared(&mut self, _address: u64, _counted: u64, _found: u64) {}

    fn wrong(&mut self, address: u64, what: &str, path: &Path<'_, '_>);
}
