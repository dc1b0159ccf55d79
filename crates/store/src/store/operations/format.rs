//! Formatting: makes an empty medium a pool.
//!
//! The superblock slots come last, behind a barrier: an interrupted format leaves no pool.

use super::window::Window;
use crate::commit;
use crate::entropy::{now, random_id};
use crate::error::{Result, StoreError};
use crate::format::root::Root;
use crate::format::superblock::{MAGIC, SLOTS, Superblock};
use crate::format::{DATA, LANE_DIRECTORY, MAX_POOL, MIN_POOL, PAGE, TABLE_LANE, VERSION};
use crate::lane::{Batch, LaneLog};
use crate::medium::{Device, read_struct, write_fresh, zero_fresh};
use crate::mutant::Mutant;
use crate::space::{ADDRESSES, PAGES, TableTransaction};
use crate::store::pool::{Identity, Store, wipe_spare, write_spare};
use std::sync::Arc;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromZeros, IntoBytes};

/// Options of a format.
#[derive(Clone, Debug, Default)]
pub struct FormatOptions {
    /// The pool's label, at most 128 bytes.
    pub label: String,
    /// Format over a pool; everything in it is lost.
    pub force: bool,
    /// The medium reads as zeros everywhere.
    pub zeroed: bool,
    /// Keep the last page for a copy of the superblock.
    pub spare: bool,
    /// Addresses of the objects; `None`: random, in the upper half of the user address space, away
    /// from `known`.
    pub window: Option<Window>,
    /// Likely addresses of other pools, which a random window avoids.
    pub known: Vec<Window>,
}

impl Store {
    /// Formats the medium and opens the pool.
    ///
    /// # Errors
    /// `BadLength`, `AlreadyAPool` (without `force`), `BadLabel`, or the medium's.
    pub fn format(device: Arc<dyn Device>, identity: Identity, how: &FormatOptions) -> Result<Arc<Store>> {
        let whole = device.len() / PAGE * PAGE;
        let len = if how.spare && whole >= MIN_POOL + PAGE { whole - PAGE } else { whole };
        if !(MIN_POOL..=MAX_POOL).contains(&len) {
            return Err(StoreError::BadLength { len, min: MIN_POOL, max: MAX_POOL });
        }
        if how.label.len() > 128 {
            return Err(StoreError::BadLabel { len: how.label.len() });
        }
        let given = how.window.map(|window| window.verify(len)).transpose()?;
        wipe_superblocks(&*device, how.force)?;
        let id = random_id()?;
        let random = random_id()?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| random[at + i]));
        let seed = word(0);
        let window = given.unwrap_or_else(|| Window::choose(word(8), len, &how.known));

        let mut superblock = Superblock::new_zeroed();
        superblock.magic = MAGIC;
        superblock.version = U32::new(VERSION);
        superblock.id = id;
        superblock.seed = U64::new(seed);
        superblock.length = U64::new(len);
        superblock.data = U64::new(DATA);
        superblock.window = U64::new(window.start);
        superblock.window_len = U64::new(window.len);
        superblock.created = U64::new(now());
        superblock.label_len = U32::new(how.label.len() as u32);
        superblock.label[..how.label.len()].copy_from_slice(how.label.as_bytes());
        superblock.set_release();
        let publish = || -> Result<()> {
            write_spare(&*device, &superblock)?;
            for (slot, sequence) in SLOTS.into_iter().zip(1..) {
                let slots = Superblock { sequence: U64::new(sequence), ..superblock };
                device.write_durable(slot, slots.sealed().as_bytes())?;
            }
            Ok(())
        };

        if Mutant::SuperblockFirst.is_on() {
            publish()?;
        }
        let lanes = DATA - LANE_DIRECTORY;
        zero_fresh(&*device, LANE_DIRECTORY, lanes, lanes)?;
        write_table(&Store::with(superblock, device.clone(), identity), how.zeroed)?;
        LaneLog::initialise(&*device, seed, TABLE_LANE, 1)?;
        device.barrier()?;
        publish()?;
        Store::open(device, identity)
    }
}

fn wipe_superblocks(device: &dyn Device, force: bool) -> Result<()> {
    for slot in SLOTS {
        let found: Superblock = read_struct(device, slot)?;
        if found.magic == MAGIC && !force {
            return Err(StoreError::AlreadyAPool);
        }
    }
    write_fresh(device, 0, &[0; 2 * PAGE as usize])?;
    wipe_spare(device, (device.len() / PAGE).saturating_sub(1) * PAGE)
}

/// One lane lets writers attach to a full pool. In place: nothing counts before the superblock.
fn write_table(store: &Store, zeroed: bool) -> Result<()> {
    let (device, len) = (&*store.device, store.len);
    let chunk = 64 * PAGE;
    let mut root = Root::new_zeroed();
    root.magic = U32::new(crate::format::root::MAGIC);
    root.length = U64::new(len);
    root.next_binding = U64::new(1);
    root.chunk_next = U64::new(DATA);
    root.chunk_end = U64::new(DATA + chunk);
    root.virgin = U64::new(if zeroed { DATA + chunk } else { len });
    zero_fresh(device, DATA, chunk, 0)?;
    let mut table = TableTransaction::blank(device, store.seed, len, root);
    let first = (DATA + chunk) / PAGE;
    let pages = len / PAGE - first;
    PAGES.release(&mut table, first, pages)?;
    table.root.free_pages = U64::new(pages);
    let Superblock { window, window_len, .. } = store.superblock;
    ADDRESSES.release(&mut table, window.get(), window_len.get())?;
    store.place_lane(&mut table, 0, LaneLog::default_len(len, 0), 1)?;
    table.seal_root()?;
    let mut batch = Batch::new();
    batch.begin(crate::format::batch::kind::TABLE, 0, 0);
    table.pages().changed_runs(|offset, bytes| batch.copy_lines(offset, bytes));
    commit::apply(device, &batch)
}
