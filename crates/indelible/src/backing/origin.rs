//! The pool file that memory belongs to; a copy of the file has the same pool ID.

use indelible_store::Mutant;
use std::path::PathBuf;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Device and inode of the file, or [`u64::MAX`] and the device number; `None`: neither.
    pub(crate) file: Option<(u64, u64)>,
    pub(crate) path: PathBuf,
}

impl Origin {
    /// A copy is another file. Without a file only the pool's ID decides.
    pub(crate) fn is_file_of(&self, pool: &Origin) -> bool {
        // Rule D13 of docs/protocol.md.
        Mutant::OriginIgnored.is_on() || self.file.zip(pool.file).is_none_or(|(stated, own)| stated == own)
    }

    pub(super) fn may_be_of(&self, pool: &Origin) -> bool {
        self.is_file_of(pool) || !self.path.as_os_str().is_empty() && self.path == pool.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(file: Option<(u64, u64)>, path: &str) -> Origin {
        Origin { file, path: path.into() }
    }

    #[test]
    fn a_file_counts_before_a_path() {
        let stated = origin(Some((1, 2)), "/srv/p");
        for (pool, same_file, usable) in [
            (stated.clone(), true, true),
            (origin(Some((1, 2)), "/srv/moved"), true, true),
            (origin(Some((1, 3)), "/srv/copy"), false, false),
            (origin(Some((7, 2)), "/srv/copy"), false, false),
            (origin(Some((7, 3)), "/srv/p"), false, true),
            (origin(None, "(device)"), true, true),
        ] {
            assert_eq!((stated.is_file_of(&pool), stated.may_be_of(&pool)), (same_file, usable), "{pool:?}");
            assert_eq!((pool.is_file_of(&stated), pool.may_be_of(&stated)), (same_file, usable), "{pool:?}");
        }
        assert!(!origin(Some((1, 2)), "").may_be_of(&origin(Some((1, 3)), "")));
    }
}
