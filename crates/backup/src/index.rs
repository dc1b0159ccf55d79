//! The hash of every page that a backup restores, with its bases: from the file beside the backup,
//! or from the chain, which is proved then.

use crate::chain::Chain;
use crate::error::Result;
use crate::format::{Hash, PageHash};
use crate::index_file::{self, Index};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

impl Index {
    /// The file beside the backup if it fits the chain, or else the chain.
    pub fn read(path: &Path) -> Result<Index> {
        let chain = Chain::open(path)?;
        match index_file::read(path, &chain) {
            Some(index) => Ok(index),
            None => Self::of(&chain),
        }
    }

    /// Proves the whole chain.
    fn of(chain: &Chain) -> Result<Index> {
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
        let listed = |pages: BTreeMap<u64, Hash>| {
            pages.into_iter().map(|(page, hash)| PageHash { page: page.into(), hash }).collect()
        };
        let objects = objects.into_iter().map(|(id, pages)| (id, listed(pages))).collect();
        let above = chain.links.iter().skip(1).map(|link| link.header.parent_hash).chain([whole]);
        let files: Option<Vec<_>> =
            chain.links.iter().zip(above).map(|(link, whole)| link.whole(whole)).collect();
        Ok(Index { objects, header: newest.header, whole, files: files.unwrap_or_default() })
    }
}
