use crate::sealed;
use indelible_store::error::{Result, StoreError};
use indelible_store::format::entry::{
    Entry, FLAG_BASE, FLAG_DELETED, FLAG_FOREIGN, FLAG_HIDDEN, FLAG_OVERLAY, FREE_MAGIC, NO_LANE,
    SIZE as SLOT,
};
use indelible_store::format::root::{TREES, TreeId};
use indelible_store::format::{DATA, LINE, PAGE};
use indelible_store::lane::{Batch, BatchSource};
use indelible_store::medium::{Medium, read_struct};
use indelible_store::space::{ADDRESSES, PAGES, TableTransaction};
use indelible_store::store::{Changes, Identity, PageImage, Primary, Store, Writer, psync_all};
use indelible_store::table::Located;
use std::collections::btree_map;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

#[must_use]
pub fn process(pid: u32) -> Identity {
    Identity { pid, boot: [1; 16], namespace: 0 }
}

#[derive(Default)]
pub(crate) struct Lines(Mutex<BTreeMap<u64, [u8; LINE as usize]>>);

impl BatchSource for Lines {
    fn copy(&self, target: u64, out: &mut [u8]) {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (target, line) in (target..).step_by(LINE as usize).zip(out.as_chunks_mut().0) {
            *line = lines[&target];
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Borrowing<'a> {
    from: &'a Lines,
    on: bool,
}

impl<'a> Borrowing<'a> {
    pub(crate) fn new(from: &'a Lines, writer: &Writer) -> Self {
        Borrowing { from, on: writer.psyncs() % 2 == 1 }
    }

    pub(crate) fn never(from: &'a Lines) -> Self {
        Borrowing { from, on: false }
    }
}

struct Stores<'a> {
    edits: Edits<'a>,
    borrowing: Borrowing<'a>,
}

impl Changes for Stores<'_> {
    fn collect(&mut self, primary: &mut Primary<'_>, batch: &mut Batch) -> Result<u64> {
        let mut pages: BTreeMap<u64, [[u8; PAGE as usize]; 2]> = BTreeMap::new();
        for &(offset, bytes) in self.edits {
            for (at, byte) in (offset..).zip(bytes) {
                let [_, new] = match pages.entry(at / PAGE) {
                    btree_map::Entry::Vacant(slot) => slot.insert([page(primary, at / PAGE)?; 2]),
                    btree_map::Entry::Occupied(slot) => slot.into_mut(),
                };
                new[(at % PAGE) as usize] = *byte;
            }
        }
        let mut end = 0;
        for (number, [old, new]) in pages {
            end = end.max(take(primary, batch, self.borrowing, number, &old, &new));
        }
        Ok(end)
    }
}

type Page = [u8; PAGE as usize];

/// Returns the end of the changed lines, or 0.
pub(crate) fn take(
    primary: &mut Primary<'_>,
    batch: &mut Batch,
    borrowing: Borrowing<'_>,
    number: u64,
    old: &Page,
    new: &Page,
) -> u64 {
    let mut end = 0;
    for at in (0..PAGE).step_by(LINE as usize) {
        let line = at as usize..(at + LINE) as usize;
        if old[line.clone()] != new[line.clone()] {
            end = number * PAGE + at + LINE;
            let target = primary.start() + end - LINE;
            let mut lines = borrowing.from.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Others of the psync may borrow lines even if this object does not.
            lines.entry(target).or_insert([0; LINE as usize]).copy_from_slice(&new[line.clone()]);
            if borrowing.on && batch.may_borrow() {
                batch.borrow_lines(target, 1);
            } else {
                batch.copy_lines(target, &new[line]);
            }
        }
    }
    // Other pages keep only the changed lines.
    if old != new && number.is_multiple_of(2) {
        primary.keep(number, Box::new(PageImage(*old)));
    }
    end
}

pub(crate) fn page(primary: &Primary<'_>, number: u64) -> Result<[u8; PAGE as usize]> {
    let mut image = PageImage([0; PAGE as usize]);
    primary.read(number, std::slice::from_mut(&mut image))?;
    Ok(image.0)
}

pub type Edits<'e> = &'e [(u64, &'e [u8])];

pub fn psync(writer: &mut Writer, edits: Edits<'_>) -> Result<()> {
    psync_many(&mut [(writer, edits)])
}

pub fn psync_many(parts: &mut [(&mut Writer, Edits<'_>)]) -> Result<()> {
    joined(parts, true)
}

pub fn psync_copied(parts: &mut [(&mut Writer, Edits<'_>)]) -> Result<()> {
    joined(parts, false)
}

fn joined(parts: &mut [(&mut Writer, Edits<'_>)], borrow: bool) -> Result<()> {
    let source = Lines::default();
    let mut stores: Vec<Stores<'_>> = parts
        .iter()
        .map(|(writer, edits)| Stores { edits, borrowing: Borrowing::new(&source, writer) })
        .collect();
    let mut joined: Vec<(&mut Writer, &mut dyn Changes)> = parts
        .iter_mut()
        .zip(&mut stores)
        .map(|((writer, _), stores)| (&mut **writer, stores as &mut dyn Changes))
        .collect();
    psync_all(&mut joined, borrow.then_some(&source))
}

pub fn contents(store: &Arc<Store>, object: &Located) -> Result<Vec<u8>> {
    if object.is_sealed() {
        return sealed::contents(store, object);
    }
    let mut bytes = vec![0; object.entry.size.get() as usize];
    store.read_object(object, 0, &mut bytes)?;
    Ok(bytes)
}

/// Content of a pool by name: identity, address, bytes.
pub type Snapshot = BTreeMap<String, ([u8; 16], u64, Vec<u8>)>;

/// Whether the states agree; a promised ID or address of zero is unknown.
#[must_use]
pub fn agree(promised: &Snapshot, found: &Snapshot) -> bool {
    promised.len() == found.len()
        && promised.iter().zip(found).all(|((a, (id, address, bytes)), (b, object))| {
            a == b
                && (*id == [0; 16] || *id == object.0)
                && (*address == 0 || *address == object.1)
                && *bytes == object.2
        })
}

/// The pool's content, without unpublished batches of other processes.
pub fn snapshot(store: &Arc<Store>) -> Result<Snapshot> {
    snapshot_with(store, |_| true)
}

/// As [`snapshot`], with the bytes of `wanted` objects alone.
pub fn snapshot_with(store: &Arc<Store>, wanted: impl Fn(&str) -> bool) -> Result<Snapshot> {
    let mut all = Snapshot::new();
    for object in objects(store)? {
        let (entry, name) = (&object.entry, object.entry.name());
        let bytes = if wanted(&name) { contents(store, &object)? } else { Vec::new() };
        all.insert(name, (entry.id, entry.address.get(), bytes));
    }
    Ok(all)
}

pub fn objects(store: &Store) -> Result<Vec<Located>> {
    let mut all = Vec::new();
    let mut from = Some((0, 0));
    while let Some(start) = from {
        let page = store.list(start, 100)?;
        all.extend(page.objects);
        from = page.next;
    }
    Ok(all)
}

/// Attaches every object for writing, or reading, and detaches it, which recovers all pending
/// batches.
pub fn recover_all(store: &Arc<Store>) -> Result<()> {
    for object in objects(store)? {
        let name = object.entry.name();
        match sealed::writer(store, &name) {
            Ok(writer) => writer.detach()?,
            Err(StoreError::ObjectReadOnly) => sealed::reader(store, &name)?.detach()?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Checks that each page and address has exactly one owner, and that names, IDs and counters agree.
pub fn check_tiling(store: &Store) -> Result<(), String> {
    let text = |error: StoreError| error.to_string();
    // Brings the table's pages up to date.
    let info = store.info().map_err(text)?;
    let device: &dyn Medium = &**store.device();
    let superblock = store.superblock();
    let (seed, len) = (superblock.seed.get(), info.length);
    let table = TableTransaction::begin(device, seed, len).map_err(text)?;

    let mut pages = Tiles::default();
    let mut addresses = Tiles::default();
    let mut slots = BTreeSet::new();
    let mut users: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut listed = 0;
    let mut from = Some((0, 0));
    while let Some(start) = from {
        let page = table.list(start, 64).map_err(text)?;
        from = page.next;
        for object in page.objects {
            let entry = &object.entry;
            listed += 1;
            let ties = Some(entry.ties_range()).filter(|range| !range.is_empty());
            for range in entry.ranges().chain(ties) {
                pages.add(range.start, range.end - range.start, &entry.name());
            }
            if !entry.has(FLAG_FOREIGN) {
                addresses.add(entry.address.get(), entry.reserved.get(), &entry.name());
            }
            if entry.has(FLAG_OVERLAY) {
                let base = table.base(&object).map_err(text)?;
                users.entry(base.offset).or_insert((0, base.entry.users.get())).0 += 1;
            }
            if entry.has(FLAG_BASE) {
                users.entry(object.offset).or_insert((0, entry.users.get()));
            }
            slots.insert(object.offset);
            // Until a process redoes the lane of a deleted object, its progress line may be torn.
            if !(entry.has(FLAG_DELETED) && entry.lane.get() != NO_LANE) {
                table.progress(&object).map_err(text)?;
            }
            // No name leads to a resize in progress.
            let by_name = (!entry.has(FLAG_HIDDEN)).then(|| table.find(&entry.name()));
            for found in by_name.into_iter().chain([table.find_id(&entry.id)]) {
                match found.map_err(text)? {
                    Some(found) if found.offset == object.offset => {}
                    _ => return Err(format!("{:?} is not found by name and ID", entry.name())),
                }
            }
        }
    }
    if let Some((base, (found, counted))) = users.iter().find(|(_, (found, counted))| found != counted) {
        return Err(format!("{found} objects rest on the base at {base:#x}, it counts {counted}"));
    }
    let trees = table.root.trees;
    let count = |tree: TreeId| trees[tree as usize].count.get();
    if [count(TreeId::Names), count(TreeId::Ids), info.objects] != [listed; 3] {
        return Err(format!(
            "{listed} objects, {} names, {} IDs, counter {}",
            count(TreeId::Names),
            count(TreeId::Ids),
            info.objects
        ));
    }
    let mut free = table.root.free_slot.get();
    while free != 0 {
        let entry: Entry = read_struct(device, free).map_err(|e| e.to_string())?;
        if entry.magic.get() != FREE_MAGIC || !slots.insert(free) {
            return Err(format!("the list of free slots goes wrong at {free:#x}"));
        }
        free = entry.next_free.get();
    }
    let slot_pages: BTreeSet<u64> = slots.iter().map(|slot| slot / PAGE * PAGE).collect();
    if slots.len() as u64 != slot_pages.len() as u64 * (PAGE / SLOT) {
        return Err(format!("{} slots in {} pages", slots.len(), slot_pages.len()));
    }
    slot_pages.iter().for_each(|page| pages.add(*page, PAGE, "entry slots"));
    for lane in store.lanes().map_err(text)? {
        if let Some(index) = lane.index {
            pages.add(lane.offset, lane.len, &format!("lane {index}"));
        }
    }
    for tree in TREES {
        let mut keys = 0;
        table
            .walk(tree, &mut |offset, level, slots| {
                pages.add(offset, PAGE, &format!("{tree:?} node"));
                keys += if level == 0 { slots.len() as u64 } else { 0 };
                Ok(())
            })
            .map_err(text)?;
        if keys != count(tree) {
            return Err(format!("{tree:?} has {keys} keys but counts {}", count(tree)));
        }
    }
    let root = table.root;
    pages.add(root.chunk_next.get(), root.chunk_end.get() - root.chunk_next.get(), "table chunk");
    let (mut page, mut listed) = (root.free_page.get(), 0);
    while page != 0 && listed <= root.free_page_count.get() {
        pages.add(page, PAGE, "free table page");
        listed += 1;
        let link: zerocopy::little_endian::U64 = read_struct(device, page).map_err(|e| e.to_string())?;
        page = link.get();
    }
    if listed != root.free_page_count.get() {
        return Err(format!("{listed} free table pages, counter {}", root.free_page_count.get()));
    }
    let mut free_pages = 0;
    let mut by_start = Vec::new();
    PAGES
        .for_each(&table, &mut |start, len| {
            pages.add(start * PAGE, len * PAGE, "free");
            free_pages += len;
            by_start.push((start, len));
        })
        .map_err(text)?;
    if free_pages != root.free_pages.get() {
        return Err(format!("{free_pages} free pages, counter {}", root.free_pages.get()));
    }
    ADDRESSES.for_each(&table, &mut |start, len| addresses.add(start, len, "free")).map_err(text)?;
    let mut by_size = Vec::new();
    table
        .walk(TreeId::FreeBySize, &mut |_, level, slots| {
            if level == 0 {
                by_size.extend(slots.iter().map(|slot| (slot.key().1, slot.key().0)));
            }
            Ok(())
        })
        .map_err(text)?;
    by_size.sort_unstable();
    if by_size != by_start {
        return Err("free space by page and by size differ".into());
    }
    pages.cover(DATA, len)?;
    addresses.cover(superblock.window.get(), superblock.window.get() + superblock.window_len.get())
}

#[derive(Default)]
struct Tiles(Vec<(u64, u64, String)>);

impl Tiles {
    fn add(&mut self, start: u64, len: u64, owner: &str) {
        if len > 0 {
            self.0.push((start, len, owner.to_owned()));
        }
    }

    fn cover(mut self, from: u64, to: u64) -> Result<(), String> {
        self.0.sort();
        let mut at = from;
        let mut before = "the start".to_owned();
        for (start, len, owner) in self.0 {
            if start != at {
                let what = if start > at { "no object owns" } else { "two own" };
                return Err(format!("{what} {at:#x}..{start:#x}, between {before} and {owner}"));
            }
            (at, before) = (start + len, owner);
        }
        if at == to { Ok(()) } else { Err(format!("{before} ends at {at:#x}, not at {to:#x}")) }
    }
}
