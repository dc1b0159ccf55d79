//! Restoring a shipped moment into a new pool, which gets its name once it is proved and durable.

use crate::bucket::Bucket;
use crate::chain::{Chain, Found};
use crate::clock::Clock;
use crate::decode::Change;
use crate::error::{ReplicateError, Result};
use crate::format::hex;
use crate::names::Position;
use crate::patient::Patient;
use indelible::{Pool, PoolOptions};
use indelible_backup::new_pool;
use indelible_store::error::StoreError;
use indelible_store::store::Revived;
use std::collections::BTreeMap;
use std::path::Path;

/// By which a new pool without room gets longer.
const STEP: u64 = 1 << 20;
/// Objects that one batch of the table reveals.
const BATCH: usize = 256;

/// A restored moment.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The segment that completes it.
    pub position: Position,
    /// When it was shipped, in seconds since 1970.
    pub created: u64,
    /// ID of the pool that was shipped.
    pub pool: String,
    /// Names of the objects.
    pub objects: Vec<String>,
    /// Segments read.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Restores a moment, or the newest, into a new pool at `path`. `progress` is told bytes done, and
/// in all.
///
/// # Errors
/// `Exists`, `Empty`, `NoMoment`; `Missing`, `Damaged`, `Foreign`, `Version` of an object of the
/// store; the store's and the pool's. There is no pool then.
pub fn restore(
    bucket: &dyn Bucket,
    clock: &dyn Clock,
    path: &Path,
    at: Option<Position>,
    options: &PoolOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Restored> {
    if path.symlink_metadata().is_ok() {
        return Err(ReplicateError::Exists(path.to_owned()));
    }
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let mut chain = Chain::open(Patient { bucket, clock }, at, folder)?;
    let found = chain.prove()?;
    let last = found.last;
    let options = options.clone().window(last.window.get(), last.window_len.get());
    let objects =
        new_pool(path, &options, last.pool_len.get(), false, |new| fill(new, &mut chain, &found, progress))?;
    Ok(Restored {
        position: Position { epoch: last.epoch.get(), seq: last.seq.get() },
        created: last.created.get(),
        pool: hex(&last.pool),
        objects,
        segments: chain.len() as u64,
        bytes: chain.bytes(),
    })
}

/// Writes all objects, and reveals them; returns their names.
fn fill(
    new: &Pool,
    chain: &mut Chain,
    found: &Found,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<String>> {
    let mut revived = BTreeMap::new();
    for object in found.objects.values() {
        let failed = ReplicateError::object(&object.name);
        let mut one = new.store().revive(object);
        if let Err(StoreError::NoRoom { needed, .. }) = &one {
            new.grow(new.info()?.length + needed.next_multiple_of(STEP))?;
            one = new.store().revive(object);
        }
        revived.insert(object.id, one.map_err(failed)?);
    }
    let (mut done, all) = (0, chain.bytes());
    for number in 0..chain.len() {
        for change in chain.segment(number)?.changes {
            let Change::Runs(runs) = change else { continue };
            let (Some(object), Some(target)) = (found.objects.get(&runs.id), revived.get(&runs.id)) else {
                continue;
            };
            let limit = found.limit(number, object);
            for (offset, bytes) in runs.iter() {
                let len = limit.saturating_sub(offset).min(bytes.len() as u64) as usize;
                if len > 0 {
                    let written = target.write(offset, &bytes[..len]);
                    written.map_err(ReplicateError::object(&object.name))?;
                }
            }
        }
        done += chain.segment_len(number);
        progress(done, all);
    }
    let names = found.objects.values().map(|object| object.name.clone()).collect();
    let mut all: Vec<Revived> = revived.into_values().collect();
    while !all.is_empty() {
        let rest = all.split_off(all.len().min(BATCH));
        Revived::publish_all(all).map_err(|why| match why.object {
            Some(name) => ReplicateError::Object { name, cause: why.cause },
            None => ReplicateError::Store(why.cause),
        })?;
        all = rest;
    }
    Ok(names)
}
