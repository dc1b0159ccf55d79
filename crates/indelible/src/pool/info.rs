use super::identity;
use super::{Class, Inner, MediumKind, Pool};
use crate::error::Result;
use crate::sys::{boot, process};
use indelible_store::error::Holder;
use indelible_store::format::entry::{
    Entry, FLAG_BASE, FLAG_CONTENT, FLAG_DELETED, FLAG_ECC, FLAG_OVERLAY, FLAG_POSITION_INDEPENDENT,
    FLAG_READ_ONLY, FLAG_SEALED, FLAG_SPARSE, FLAG_VOLATILE,
};
use indelible_store::medium::Process;
pub use indelible_store::store::{LaneUse, Logged};
use indelible_store::store::{Status, StoreInfo};
use indelible_store::table::Located;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// State of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// D: unattached.
    Detached,
    /// R: attached by readers.
    Reading,
    /// W: attached by a writer, or its writer died.
    Writing,
    /// P: a psync is becoming durable.
    Persisting,
    /// C: a durable psync waits to be copied to the primary.
    Copying,
}

impl State {
    /// The paper's letter.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            State::Detached => 'D',
            State::Reading => 'R',
            State::Writing => 'W',
            State::Persisting => 'P',
            State::Copying => 'C',
        }
    }

    fn of(letter: char) -> Self {
        match letter {
            'R' => State::Reading,
            'W' => State::Writing,
            'P' => State::Persisting,
            'C' => State::Copying,
            _ => State::Detached,
        }
    }
}

/// The table's entry of an object.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stat {
    pub(super) entry: u64,
    /// Name.
    pub name: String,
    /// 128-bit identity.
    pub id: [u8; 16],
    /// Size in bytes, as requested.
    pub size: u64,
    /// Bytes of its extent.
    pub extent: u64,
    /// Offset of its primary in the pool.
    pub offset: u64,
    /// Fixed virtual address.
    pub address: u64,
    /// Bytes of address space reserved for it.
    pub reach: u64,
    /// State.
    pub state: State,
    /// A process that has it attached, by its ID in this pid namespace.
    pub holder: Option<u32>,
    /// Other processes that have it for reading.
    pub other_readers: Vec<u32>,
    /// Minimum number of further readers that are not visible from here.
    pub unseen_readers: usize,
    /// The holder's ID in its own pid namespace, if that is another.
    pub holder_elsewhere: Option<u32>,
    /// Its last writer died; the next attach recovers it.
    pub needs_recovery: bool,
    /// That writer, if it runs without this file, which may be a copy.
    pub living_writer: Option<u32>,
    /// Its durability class; `None`: of a later release.
    pub class: Option<Class>,
    /// Whether it refuses write attaches.
    pub read_only: bool,
    /// Whether space is claimed at the first psync.
    pub sparse: bool,
    /// Whether it was deleted: the last detach removes it.
    pub deleted: bool,
    /// Whether it is encrypted in the pool.
    pub sealed: bool,
    /// Whether words have [check words](crate::CreateOptions::ecc), counted in `extent`, not in
    /// `size`.
    pub ecc: bool,
    /// Whether plain loads see committed transactions
    /// ([`CreateOptions::readable_outside`](crate::CreateOptions::readable_outside)).
    pub readable_outside: bool,
    /// Whether its contents last only until the machine restarts.
    pub volatile: bool,
    /// Whether they are lost: attaches fail.
    pub gone: bool,
    /// Whether it is a snapshot, or another base, never written.
    pub snapshot: bool,
    /// Whether its contents are declared [independent of its
    /// addresses](crate::CreateOptions::position_independent).
    pub position_independent: bool,
    /// Whether its ID is its [content's hash](crate::Pool::create_by_content).
    pub by_content: bool,
    /// Whether it shares unchanged pages of a base.
    pub shares: bool,
    /// Bytes of its own pages in the pool; the others are its base's.
    pub own: u64,
    /// Whether reading needs a key.
    pub read_key: bool,
    /// Whether writing needs a key.
    pub write_key: bool,
    /// High-water mark of psynced bytes.
    pub published: u64,
    /// Durable psyncs of all its writers.
    pub psyncs: u64,
    /// Psyncs that recovery would apply if the writer died.
    pub logged: Logged,
    /// When it was created.
    pub created: SystemTime,
}

pub(crate) fn living_writer(entry: &Entry) -> Option<Process> {
    let pid = entry.pid.get();
    if entry.boot != identity().realm() || pid == std::process::id() {
        return None;
    }
    Some(process::seen(pid)).filter(|process| process.name().is_some())
}

impl Stat {
    pub(super) fn made(object: &Located, status: &Status) -> Self {
        Stat::of(&object.entry, status)
    }

    pub(crate) fn of(entry: &Entry, status: &Status) -> Self {
        Stat {
            entry: entry.own_offset.get(),
            name: entry.name(),
            id: entry.id,
            size: entry.usable(entry.size.get()),
            extent: entry.extent_len(),
            offset: entry.primary_offset(),
            address: entry.address.get(),
            reach: entry.reserved.get(),
            state: State::of(status.state),
            holder: match status.holder {
                Some(Holder::Process { process, .. }) => Some(process.pid),
                Some(Holder::Own { .. }) => Some(std::process::id()),
                _ => None,
            },
            holder_elsewhere: match status.holder {
                Some(Holder::Elsewhere { pid, .. }) => Some(pid),
                _ => None,
            },
            other_readers: status.others.processes.iter().map(|process| process.pid).collect(),
            // A reader that the store could not name is not among the others.
            unseen_readers: status.others.unseen
                + usize::from(status.state == 'R' && status.holder == Some(Holder::Unknown)),
            needs_recovery: status.needs_recovery,
            living_writer: match status.needs_recovery {
                true => living_writer(entry).map(|process| process.pid),
                false => None,
            },
            class: Class::of(entry),
            read_only: entry.flags & FLAG_READ_ONLY != 0,
            sparse: entry.flags & FLAG_SPARSE != 0,
            deleted: entry.has(FLAG_DELETED),
            sealed: entry.has(FLAG_SEALED),
            ecc: entry.has(FLAG_ECC),
            readable_outside: entry.is_readable_outside(),
            volatile: entry.has(FLAG_VOLATILE),
            gone: entry.has(FLAG_VOLATILE) && entry.is_gone(&boot::boot_id()),
            snapshot: entry.has(FLAG_BASE),
            position_independent: entry.has(FLAG_POSITION_INDEPENDENT),
            by_content: entry.has(FLAG_CONTENT),
            shares: entry.has(FLAG_OVERLAY),
            own: status.own,
            read_key: entry.read_key != [0; 16],
            write_key: entry.write_key != [0; 16],
            published: status.published,
            psyncs: status.psyncs,
            logged: status.logged,
            created: at(entry.created.get()),
        }
    }
}

/// Figures of a pool.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolInfo {
    /// Path it was opened by.
    pub path: PathBuf,
    /// Name given at format.
    pub label: String,
    /// 128-bit identity.
    pub id: [u8; 16],
    /// Kind of medium.
    pub medium: MediumKind,
    /// Format version.
    pub version: u32,
    /// Length in bytes.
    pub length: u64,
    /// Number of objects.
    pub objects: u64,
    /// Free bytes.
    pub free: u64,
    /// Bytes of the largest free piece.
    pub largest_free: u64,
    /// Number of free pieces.
    pub free_pieces: u64,
    /// First address of its window.
    pub window: u64,
    /// Length of its window in bytes.
    pub window_len: u64,
    /// Boots that wrote to it.
    pub boots: u32,
    /// When it was formatted.
    pub created: SystemTime,
}

impl Pool {
    /// Figures of the pool.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn info(&self) -> Result<PoolInfo> {
        let result = self.inner.alive().and_then(|()| Ok(self.inner.store.info()?));
        let result = result.map_err(|cause| self.error("inspect", cause))?;
        Ok(PoolInfo::of(&self.inner, &result))
    }
}

impl PoolInfo {
    pub(crate) fn of(pool: &Inner, info: &StoreInfo) -> Self {
        let superblock = pool.store.superblock();
        PoolInfo {
            path: pool.path.clone(),
            label: superblock.label(),
            id: superblock.id,
            medium: pool.media.kind().into(),
            version: superblock.version.get(),
            length: info.length,
            objects: info.objects,
            free: info.free,
            largest_free: info.largest,
            free_pieces: info.extents,
            window: superblock.window.get(),
            window_len: superblock.window_len.get(),
            boots: info.root.boots.get(),
            created: at(superblock.created.get()),
        }
    }
}

fn at(seconds: u64) -> SystemTime {
    const LAST: u64 = 253_402_300_799;
    UNIX_EPOCH + Duration::from_secs(seconds.min(LAST))
}
