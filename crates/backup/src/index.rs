//! The hash of every page that a backup, with its bases, restores.

use crate::chain::Chain;
use crate::error::Result;
use crate::format::{Hash, Header};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Without zero pages.
pub(crate) struct Index {
    pub objects: HashMap<[u8; 16], BTreeMap<u64, Hash>>,
    /// The backup's header, and the whole's hash.
    pub header: Header,
    pub whole: Hash,
}

impl Index {
    /// Proves the whole chain.
    pub fn read(path: &Path) -> Result<Index> {
        let chain = Chain::open(path)?;
        let mut objects: HashMap<_, BTreeMap<_, _>> = HashMap::new();
        let newest = &chain.links[chain.links.len() - 1];
        let whole = chain.read(true, &mut |number, object, chunk| {
            let limit = chain.limit(number, &object.id);
            let known = objects.entry(object.id).or_default();
            let held = chunk.pages(chunk.held).zip(&chunk.hashes);
            known.extend(held.filter(|(page, _)| *page < limit).map(|(page, hash)| (page, *hash)));
            for page in chunk.pages(chunk.gone) {
                known.remove(&page);
            }
            Ok(())
        })?;
        Ok(Index { objects, header: newest.header, whole })
    }
}
