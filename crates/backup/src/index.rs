//! The hash of every page that a backup, with those that it rests on, gives back.

use crate::chain::Chain;
use crate::error::Result;
use crate::format::{Hash, Header};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// See the module. Zero pages are left out.
pub(crate) struct Index {
    pub objects: HashMap<[u8; 16], BTreeMap<u64, Hash>>,
    /// Header of the backup, and the hash of the whole.
    pub header: Header,
    pub whole: Hash,
}

impl Index {
    /// Reads and proves all of the chain: a backup on top of it is no better than the chain.
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
