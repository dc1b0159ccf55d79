//! Each decoder alone, on hostile bytes as they are, and with the checksum made to fit.

use super::anatomy::{Kind, Structure, seal, structures};
use super::{Image, pool::pools};
use indelible_store::error::StoreError;
use indelible_store::format::entry::{Entry, Progress};
use indelible_store::format::lane::{BODY, Directory, HEADERS, Header as LaneHeader};
use indelible_store::format::node::{CAPACITY, Node};
use indelible_store::format::root::Root;
use indelible_store::format::seal::{Identity, KeySlot, SLOT_COUNT, SLOTS};
use indelible_store::format::superblock::Superblock;
use indelible_store::format::{LINE, PAGE, checksum};
use indelible_store::lane::{LaneLog, Search, ending, scan};
use indelible_store::medium::Medium;
use indelible_store::seal::{KeyPage, SealKey};
use std::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

const SEED: u64 = 7;
const LEN: u64 = 1 << 20;

fn made<T: FromBytes + IntoBytes>(input: &[u8]) -> T {
    let mut value = T::new_zeroed();
    let len = input.len().min(size_of::<T>());
    value.as_mut_bytes()[..len].copy_from_slice(&input[..len]);
    value
}

pub fn superblock(input: &[u8]) {
    let found: Superblock = made(input);
    for slot in [found, found.sealed()] {
        if slot.verify(LEN).is_ok() {
            assert!(
                slot.length.get() <= LEN && slot.window.get().checked_add(slot.window_len.get()).is_some()
            );
        }
        assert!(slot.label().len() <= 3 * slot.label.len());
    }
}

pub fn root(input: &[u8]) {
    let found: Root = made(input);
    for root in [found, found.sealed(SEED)] {
        if root.verify(SEED, LEN) {
            assert!(root.chunk_next.get() <= root.chunk_end.get() && root.chunk_end.get() <= LEN);
            assert!(root.trees.iter().all(|tree| tree.node.get() < LEN));
        }
    }
    let found: Directory = made(input.get(size_of::<Root>()..).unwrap_or(&[]));
    for slot in [found, found.sealed(SEED)] {
        if slot.in_use(SEED, LEN) == Some(true) {
            assert!(slot.offset.get() + slot.len.get() <= LEN && slot.len.get() > BODY);
        }
    }
}

/// Decodes a node: a verified one has ascending keys and can be changed.
pub fn node(input: &[u8]) {
    let found: Node = made(input);
    let mut sealed = found;
    sealed.seal(SEED);
    for node in [found, sealed] {
        assert!(node.used().len() <= CAPACITY);
        if node.verify(SEED, node.own_offset.get(), node.level.get()) {
            assert!(node.used().is_sorted_by(|a, b| a.key() < b.key()));
            let mut other = node;
            let last = other.remove(other.len() - 1);
            other.insert(other.len(), last);
            let mut right = Node::empty(node.level.get(), PAGE);
            other.move_tail(other.len() / 2, &mut right);
            assert_eq!(other.len() + right.len(), node.len());
        }
    }
}

pub fn entry(input: &[u8]) {
    let found: Entry = made(input);
    for entry in [found, found.sealed(SEED)] {
        assert!(entry.name().len() <= 3 * 512);
        if entry.verify(SEED, entry.own_offset.get(), LEN) {
            assert!(entry.primary_offset() + entry.extent_len() <= LEN);
            assert!(entry.size.get() <= entry.extent_len() && entry.extent_len() <= entry.reserved.get());
            assert!(std::str::from_utf8(entry.name_bytes()).is_ok());
        }
    }
    let found: Progress = made(input.get(size_of::<Entry>()..).unwrap_or(&[]));
    assert!(found.sealed(SEED).of(&found.id, SEED).is_some(), "an intact line is believed");
    let _ = found.of(&[9; 16], SEED);
}

/// Decodes a key page: another key must not open it.
pub fn key_page(input: &[u8]) {
    let (mut found, stranger) =
        (Box::new([0; PAGE as usize]), SealKey::file(vec![9; 32]).expect("long enough"));
    let len = input.len().min(found.len());
    found[..len].copy_from_slice(&input[..len]);
    let mut fitting = found.clone();
    for slot in fitting[SLOTS..].as_chunks_mut::<{ size_of::<KeySlot>() }>().0 {
        slot[16..24].fill(0);
        let sum = checksum(0, &[&slot[..]]);
        slot[16..24].copy_from_slice(&sum.to_le_bytes());
    }
    for bytes in [found, fitting] {
        if let Ok(mut page) = KeyPage::read(bytes, u64::MAX) {
            assert!(page.slots().len() <= SLOT_COUNT && page.open(&stranger).is_err());
            for slot in 0..=SLOT_COUNT {
                let left = page.slots().len();
                assert!(page.remove(slot).is_err() || page.slots().len() + 1 == left && left > 1);
            }
        }
    }
}

#[must_use]
pub fn key_pages() -> Vec<Vec<u8>> {
    let keys = [7, 8].map(|byte| SealKey::file(vec![byte; 32]).expect("long enough"));
    let made = KeyPage::new(5000, &Identity::of([1; 16], "a"), &[(&keys[0], "one"), (&keys[1], "two")]);
    made.map(|(page, _)| page.bytes().to_vec()).into_iter().collect()
}

/// Reads a lane of the input's bytes, with headers and batches made to fit in turn.
pub fn lane(input: &[u8]) {
    let len = (input.len() as u64).next_multiple_of(PAGE).max(2 * PAGE);
    let mut bytes = vec![0; len as usize];
    bytes[..input.len()].copy_from_slice(input);
    let image = Image::new(bytes.into());
    read_lane(&image, SEED);
    for copy in HEADERS {
        seal(&image, SEED, Structure { kind: Kind::LaneHeader, offset: copy, len: LINE });
    }
    let mut at = BODY;
    while at + LINE <= len {
        let header: indelible_store::format::batch::Header = read(&image, at);
        if header.magic.get() != indelible_store::format::batch::MAGIC {
            break;
        }
        seal(&image, SEED, Structure { kind: Kind::Batch, offset: at, len: LINE });
        at += header.len.get().clamp(LINE, len) / LINE * LINE;
    }
    read_lane(&image, SEED);
}

fn read<T: FromBytes + IntoBytes>(image: &Image, offset: u64) -> T {
    let mut value = T::new_zeroed();
    image.get(offset, value.as_mut_bytes());
    value
}

fn read_lane(image: &Image, seed: u64) {
    for copy in HEADERS {
        let _ = read::<LaneHeader>(image, copy).generation(seed, 0);
    }
    let Ok(mut log) = LaneLog::read(image, seed, 0, image.len(), 1) else { return };
    let scanned = scan(image, seed, &mut log, &mut |batch| {
        for index in 0..batch.sections.len() {
            batch.redo(index, &mut |target, bytes| {
                assert!(target + bytes.len() as u64 <= image.len(), "a run leaves the pool");
                Ok(())
            })?;
        }
        Ok(())
    });
    match scanned {
        // A later release may have written it.
        Ok(()) | Err(StoreError::SectionKind { .. }) => {}
        Err(error) => panic!("a lane in memory: {error}"),
    }
    assert!(log.tail <= log.len);
    let _ = ending(image, seed, &log, Search::Whole);
}

fn of(kinds: &[Kind], behind: u64) -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for pool in pools() {
        let image = pool.image();
        for kind in kinds {
            if let Some(found) = structures(&image).iter().find(|found| found.kind == *kind) {
                let mut bytes = vec![0; (found.len + behind) as usize];
                image.get(found.offset, &mut bytes);
                inputs.push(bytes);
            }
        }
    }
    inputs
}

#[must_use]
pub fn superblocks() -> Vec<Vec<u8>> {
    of(&[Kind::Superblock], 0)
}

#[must_use]
pub fn roots() -> Vec<Vec<u8>> {
    let directories = of(&[Kind::Directory], 0);
    of(&[Kind::Root], 0).into_iter().zip(directories).map(|(root, slot)| [root, slot].concat()).collect()
}

#[must_use]
pub fn nodes() -> Vec<Vec<u8>> {
    of(&[Kind::Node], 0)
}

#[must_use]
pub fn entries() -> Vec<Vec<u8>> {
    of(&[Kind::Entry, Kind::FreeSlot], LINE)
}

#[must_use]
pub fn lanes() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for pool in pools() {
        let image = pool.image();
        let slot: Directory = read(&image, indelible_store::format::LANE_DIRECTORY);
        let mut bytes = vec![0; slot.len.get() as usize];
        image.get(slot.offset.get(), &mut bytes);
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        bytes.truncate(used);
        let copy: Image = Image::new({
            let mut whole = bytes.clone();
            whole.resize(whole.len().next_multiple_of(PAGE as usize).max(2 * PAGE as usize), 0);
            Arc::from(whole)
        });
        // The target has the lane at 0.
        for header in HEADERS {
            let mut made: LaneHeader = read(&copy, header);
            made.own_offset = 0.into();
            copy.put(header, made.as_bytes());
        }
        let mut out = vec![0; bytes.len().max(PAGE as usize)];
        copy.get(0, &mut out);
        inputs.push(out);
    }
    inputs
}
