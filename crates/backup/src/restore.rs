//! Restoring: into a new pool, named once proved and durable, or objects into an existing pool.
//!
//! A restored pool has its own ID, and the original's addresses: a process can open both, and
//! attaches an object of one of them at a time. At other addresses it has its own window, and
//! pointers are changed (docs/decisions/0041-rebase.md). An object is hidden until all of it is
//! proved.

use crate::Progress;
use crate::chain::{Chain, Kept, named};
use crate::decode::{Chunk, Decoder};
use crate::error::{BackupError, Result};
use crate::folder::{begins_as_backup, publish};
use crate::format::{CHUNK, PAGE};
use crate::partial;
use indelible::{Alone, Pool, PoolOptions};
use indelible_store::error::StoreError;
use indelible_store::format::entry::{FLAG_BASE, FLAG_FOREIGN, FLAG_POSITION_INDEPENDENT, FLAG_VOLATILE};
use indelible_store::format::{MIN_POOL, superblock};
use indelible_store::store::{Attributes, Revived, Unpublished};
use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

const WRITEBACK: u64 = 8 << 20;

/// A new pool without room becomes longer by the missing bytes, rounded up to this: nodes of the
/// table need some, too.
const STEP: u64 = 1 << 20;

/// A restore's result.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The backup.
    pub kept: Kept,
    /// Names of the objects.
    pub objects: Vec<String>,
    /// Bytes of written pages.
    pub bytes: u64,
}

/// How to restore.
#[derive(Clone, Copy, Debug, Default)]
pub struct RestoreOptions {
    /// Bytes of the new pool; `None`: as the original, or more if the objects have no room. A new
    /// pool's own structures are larger than those of a pool that was made longer.
    pub len: Option<u64>,
    /// Replaces an unused pool once the new one is whole, and keeps its owner, group and mode.
    pub force: bool,
    /// Gives objects other addresses, and changes their pointers ([`Pool::copy_rebased`]). Objects
    /// that shared addresses, such as a snapshot and its origin, share the new ones.
    pub rebase: bool,
}

/// Restores all objects of a backup to a new pool. `backup` may be a folder, for its newest backup.
///
/// # Errors
/// Nothing is replaced: `Damaged`, `BaseMissing`, `BaseSwapped`, `Exists`; `InUse`, or `Pool` of
/// the kind `Busy`: a process has the pool to replace; those of formatting a pool, of creating
/// objects, and of other addresses.
pub fn restore(
    backup: &Path,
    pool: &Path,
    how: &RestoreOptions,
    options: &PoolOptions,
    progress: Progress<'_>,
) -> Result<Restored> {
    let chain = Chain::open(&named(backup)?)?;
    let kept = chain.kept();
    beside(pool, how, options, &kept, |new| {
        let grows = how.len.is_none().then_some(new);
        let mut target = Target::begin(new, &kept.objects, (how.rebase, false), grows)?;
        fill(&chain, &mut target, progress)?;
        target.publish(kept.clone())
    })
}

/// As [`restore`], of a full backup in a stream.
///
/// # Errors
/// As for [`restore`].
pub fn restore_stream(
    input: &mut dyn Read,
    name: &Path,
    pool: &Path,
    how: &RestoreOptions,
    options: &PoolOptions,
    progress: Progress<'_>,
) -> Result<Restored> {
    let mut decoder = Decoder::open(input, name)?;
    let kept = Kept::of(name, &decoder.header, &decoder.objects);
    if kept.depth > 0 {
        let (path, folder) = (name.to_owned(), PathBuf::from("the stream"));
        return Err(BackupError::BaseMissing {
            path,
            parent: crate::format::hex(&decoder.header.parent),
            folder,
        });
    }
    beside(pool, how, options, &kept, |new| {
        let grows = how.len.is_none().then_some(new);
        let mut target = Target::begin(new, &kept.objects, (how.rebase, false), grows)?;
        decoder.each(&mut |chunk| {
            let chunk = chunk?;
            target.write(&kept.objects[chunk.object], chunk, u64::MAX, false)?;
            target.tell(progress);
            Ok(())
        })?;
        target.publish(kept.clone())
    })
}

/// Restores objects of a backup into a pool without their names, IDs and addresses; with `rebase`
/// they get free addresses.
///
/// # Errors
/// Those of [`restore`]: no object is there. The process's death or a power failure leaves all
/// objects or none.
pub fn restore_objects(
    backup: &Path,
    pool: &Pool,
    names: &[String],
    rebase: bool,
    progress: Progress<'_>,
) -> Result<Restored> {
    let chain = Chain::open(&named(backup)?)?;
    let kept = chain.kept();
    let chosen: Result<Vec<_>> = names
        .iter()
        .map(|name| {
            let found = kept.objects.iter().find(|object| object.name == *name);
            found.cloned().ok_or_else(|| BackupError::NoObject(name.clone()))
        })
        .collect();
    // Leftovers of a killed restore.
    pool.store().reap()?;
    let chosen = chosen?;
    let restored = Target::begin(pool, &chosen, (rebase, true), None).and_then(|mut target| {
        fill(&chain, &mut target, progress)?;
        target.publish(kept.clone())
    });
    if restored.is_err() {
        let _ = pool.store().reap();
    }
    restored
}

fn fill(chain: &Chain, target: &mut Target, progress: Progress<'_>) -> Result<()> {
    chain.read(false, &mut |number, object, chunk| {
        let limit = chain.limit(number, &object.id);
        let first = chain.spans.get(&object.id).is_none_or(|(from, _)| *from == number);
        target.write(object, chunk, limit, !first)?;
        target.tell(progress);
        Ok(())
    })?;
    Ok(())
}

pub(crate) struct Target {
    rebase: bool,
    /// All become visible as one step, in a shared pool.
    together: bool,
    objects: HashMap<[u8; 16], Revived>,
    order: Vec<Attributes>,
    written: u64,
    total: u64,
    /// Bytes of an object without writeback.
    waiting: ([u8; 16], Range<u64>),
}

impl Target {
    /// `grows`: the pool, if it may get longer.
    fn begin(
        pool: &Pool,
        objects: &[Attributes],
        (rebase, together): (bool, bool),
        grows: Option<&Pool>,
    ) -> Result<Self> {
        let (mut revived, mut addresses) = (HashMap::new(), HashMap::new());
        // Owners of addresses come first, then copies; without their original, the first copy,
        // never a snapshot, owns them.
        let mut order: Vec<&Attributes> = objects.iter().collect();
        let has = |object: &Attributes, flag| object.flags & flag != 0;
        order.sort_by_key(|object| rebase.then(|| (has(object, FLAG_FOREIGN), has(object, FLAG_BASE))));
        for object in order {
            let mut revive = || match rebase {
                false => pool.store().revive(object),
                true => elsewhere(pool, object, &mut addresses),
            };
            let mut new = revive();
            if let (Some(pool), Err(StoreError::NoRoom { needed, .. })) = (grows, &new) {
                pool.grow(pool.info()?.length + needed.next_multiple_of(STEP))?;
                new = revive();
            }
            revived.insert(object.id, new.map_err(BackupError::object(&object.name))?);
        }
        let total = objects.iter().map(|object| object.size).fold(0, u64::saturating_add);
        Ok(Target {
            rebase,
            together,
            objects: revived,
            order: objects.to_vec(),
            written: 0,
            total,
            waiting: ([0; 16], 0..0),
        })
    }

    /// For objects of any pools: position-independent ones get free addresses.
    pub(crate) fn begin_free(pool: &Pool, objects: &[Attributes], rebase: bool) -> Result<Self> {
        let mut revived = HashMap::new();
        for object in objects {
            let free = object.flags & FLAG_POSITION_INDEPENDENT != 0 && !object.is_sealed();
            let new = match rebase || free {
                true => elsewhere(pool, object, &mut HashMap::new()),
                false => {
                    expect_free(pool, object)?;
                    let kept = Attributes { flags: object.flags & !FLAG_VOLATILE, ..object.clone() };
                    pool.store().adopt(&kept)
                }
            };
            revived.insert(object.id, new.map_err(BackupError::object(&object.name))?);
        }
        let total = objects.iter().map(|object| object.size).fold(0, u64::saturating_add);
        Ok(Target {
            rebase,
            together: true,
            objects: revived,
            order: objects.to_vec(),
            written: 0,
            total,
            waiting: ([0; 16], 0..0),
        })
    }

    pub(crate) fn tell(&self, progress: Progress<'_>) {
        progress(self.written.min(self.total), self.total);
    }

    /// Writes a chunk's pages below `limit`, of a chosen object.
    pub(crate) fn write(&mut self, object: &Attributes, chunk: &Chunk, limit: u64, over: bool) -> Result<()> {
        let Some(target) = self.objects.get(&object.id) else { return Ok(()) };
        let failed = BackupError::object(&object.name);
        let zeros = [0; PAGE as usize];
        // A pool relies on zeros past the published bytes.
        let limit = limit.min(target.extent_len() / PAGE).min(crate::format::pages(object.published));
        for page in chunk.pages(chunk.gone).filter(|page| over && *page < limit) {
            target.write(page * PAGE, &zeros).map_err(&failed)?;
        }
        // Adjacent pages, in one write.
        let mut run: Option<(u64, usize, usize)> = None;
        let pages = chunk.pages(chunk.held).enumerate().filter(|(_, page)| *page < limit);
        for (number, page) in pages {
            match &mut run {
                Some((first, from, count)) if *first + *count as u64 == page && *from + *count == number => {
                    *count += 1
                }
                run => {
                    if let Some(run) = run.replace((page, number, 1)) {
                        put(target, chunk, run).map_err(&failed)?;
                    }
                }
            }
            self.written += PAGE;
        }
        run.map_or(Ok(()), |run| put(target, chunk, run)).map_err(&failed)?;
        self.begin_writeback(object.id, chunk.first * PAGE..(chunk.first + CHUNK).min(limit) * PAGE);
        Ok(())
    }

    fn begin_writeback(&mut self, id: [u8; 16], chunk: Range<u64>) {
        // Pages behind the object's end are not written.
        if chunk.is_empty() {
            return;
        }
        let (before, waiting) = &mut self.waiting;
        if *before == id && waiting.end <= chunk.start && chunk.end < waiting.start + WRITEBACK {
            waiting.end = chunk.end;
            return;
        }
        if let Some(object) = self.objects.get(before) {
            object.begin_writeback(waiting.start, waiting.end - waiting.start);
        }
        self.waiting = (id, chunk);
    }

    pub(crate) fn publish(mut self, kept: Kept) -> Result<Restored> {
        let mut names = Vec::new();
        for object in self.order.iter().filter(|_| self.rebase) {
            if let Some(revived) = self.objects.get(&object.id) {
                Pool::rebase(object, revived)?;
            }
        }
        let mut all = Vec::new();
        for object in &self.order {
            if let Some(revived) = self.objects.remove(&object.id) {
                all.push(revived);
                names.push(object.name.clone());
            }
        }
        // An unshared pool may have more objects than fit in one batch.
        let most = if self.together { usize::MAX } else { 256 };
        while !all.is_empty() {
            let rest = all.split_off(all.len().min(most));
            Revived::publish_all(all).map_err(unpublished)?;
            all = rest;
        }
        Ok(Restored { kept, objects: names, bytes: self.written })
    }
}

fn unpublished(why: Unpublished) -> BackupError {
    match why.object {
        Some(name) => BackupError::Object { name, cause: why.cause },
        None => BackupError::Store(why.cause),
    }
}

/// Brings an object back at other addresses, shared with an object that shared its old ones.
fn elsewhere(
    pool: &Pool,
    object: &Attributes,
    addresses: &mut HashMap<u64, u64>,
) -> Result<Revived, StoreError> {
    // As in any backup, its contents outlast the boot.
    let kept = Attributes { flags: object.flags & !FLAG_VOLATILE, ..object.clone() };
    let revived = pool.store().adopt_elsewhere(&kept, addresses.get(&object.address).copied())?;
    addresses.insert(object.address, revived.address());
    Ok(revived)
}

/// Fails if another object has the addresses of one that keeps its own.
fn expect_free(pool: &Pool, object: &Attributes) -> Result<()> {
    for found in pool.list().flatten() {
        let apart = found.address.saturating_add(found.reach) <= object.address
            || object.address.saturating_add(object.reserved) <= found.address;
        if !apart {
            return Err(BackupError::Addresses { name: object.name.clone(), has: found.name });
        }
    }
    Ok(())
}

fn put(target: &Revived, chunk: &Chunk, (page, from, count): (u64, usize, usize)) -> Result<(), StoreError> {
    let size = PAGE as usize;
    target.write(page * PAGE, &chunk.bytes[from * size..(from + count) * size])
}

/// Fills a pool beside `path`, and renames it.
fn beside(
    path: &Path,
    &RestoreOptions { len, force, rebase }: &RestoreOptions,
    options: &PoolOptions,
    kept: &Kept,
    fill: impl FnOnce(&Pool) -> Result<Restored>,
) -> Result<Restored> {
    let there = fs::canonicalize(path).ok();
    // Held until the rename: a process that opened the old pool would lose its psyncs.
    let _alone = match &there {
        None => None,
        Some(there) if force => expect_unused(there, options)?,
        Some(_) => return Err(BackupError::Exists(path.to_owned())),
    };
    let replaces = there.is_some();
    let path = there.as_deref().unwrap_or(path);
    let mut options = options.clone();
    if !rebase {
        options = options.window(kept.window.0, kept.window.1);
    }
    new_pool(path, &options, len.unwrap_or(kept.pool_len), replaces, fill)
}

/// Fills a pool beside `path`, and renames it once it is durable. Leftovers of killed processes
/// that made `path` are removed.
///
/// # Errors
/// `Exists`, unless it `replaces`; those of `fill`: `path` is as it was.
#[doc(hidden)]
pub fn new_pool<T, E: From<BackupError>>(
    path: &Path,
    options: &PoolOptions,
    len: u64,
    replaces: bool,
    fill: impl FnOnce(&Pool) -> Result<T, E>,
) -> Result<T, E> {
    let made = partial::begin(path)?;
    let partial = made.path();
    let new = options.clone().force(true).format(partial, len).map_err(BackupError::Pool)?;
    let filled = fill(&new)?;
    drop(new);
    if let Some(before) = fs::metadata(path).ok().filter(|_| replaces) {
        keep_owner(&before, partial)?;
    }
    let durable = fs::File::open(partial).and_then(|file| file.sync_all());
    durable.map_err(BackupError::file("make durable", partial))?;
    publish(partial, path, replaces)?;
    Ok(filled)
}

fn keep_owner(before: &fs::Metadata, path: &Path) -> Result<()> {
    let found = fs::metadata(path).map_err(BackupError::file("read", path))?;
    let (uid, gid) = (before.uid(), before.gid());
    if (found.uid(), found.gid()) != (uid, gid) {
        let given = chown(path, (found.uid() != uid).then_some(uid), (found.gid() != gid).then_some(gid));
        given.map_err(BackupError::file("give the owner and group of the replaced pool to", path))?;
    }
    let mode = fs::set_permissions(path, before.permissions());
    mode.map_err(BackupError::file("give the mode of the replaced pool to", path))
}

/// Excludes all processes from the pool to replace, or refuses it; also a file that is no pool,
/// unless it is empty.
fn expect_unused(path: &Path, options: &PoolOptions) -> Result<Option<Alone>> {
    let used = |by: String| BackupError::InUse { path: path.to_owned(), by };
    if !path.is_file() {
        return Err(used("it is no file, and cannot be replaced by one".into()));
    }
    let len = fs::metadata(path).map_err(BackupError::file("read", path))?.len();
    if len == 0 {
        return Ok(None);
    }
    if !may_be_pool(path, len, options)? {
        return Err(BackupError::NotReplaced { path: path.to_owned(), found: "no pool" });
    }
    Ok(Some(indelible::claimed(path, options)?))
}

/// A pool that lost its superblocks is known by its length alone.
fn may_be_pool(path: &Path, len: u64, options: &PoolOptions) -> Result<bool> {
    let slots = indelible::superblocks(path, options)?;
    if slots.iter().any(|slot| slot.superblock.magic == superblock::MAGIC) {
        return Ok(true);
    }
    Ok(len >= MIN_POOL && len.is_multiple_of(PAGE) && !begins_as_backup(path)?)
}
