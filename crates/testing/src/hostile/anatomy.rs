//! Offsets of a pool's structures; makes checksums of changed structures fit.

use super::Image;
use indelible_store::format::batch::Header as BatchHeader;
use indelible_store::format::entry::{self, Entry, FREE_MAGIC, PROGRESS, Progress};
use indelible_store::format::lane::{BODY, Directory, HEADERS, Header as LaneHeader};
use indelible_store::format::node::{self, Node};
use indelible_store::format::root::Root;
use indelible_store::format::superblock::{SLOTS, Superblock};
use indelible_store::format::{
    DATA, LANE_DIRECTORY, LANES, LINE, PAGE, TABLE_LANE, TABLE_LANE_LEN, TABLE_ROOT, batch, checksum,
};
use indelible_store::medium::Medium;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, IntoBytes};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Superblock,
    Directory,
    Root,
    /// A node of a tree, or bytes that look like one.
    Node,
    /// A used entry slot, without its progress line.
    Entry,
    FreeSlot,
    Progress,
    /// One copy of a lane's header.
    LaneHeader,
    Batch,
}

#[derive(Clone, Copy, Debug)]
pub struct Structure {
    pub kind: Kind,
    pub offset: u64,
    pub len: u64,
}

#[must_use]
pub fn structures(image: &Image) -> Vec<Structure> {
    let mut all = Vec::new();
    let mut add = |kind, offset, len| all.push(Structure { kind, offset, len });
    SLOTS.into_iter().for_each(|slot| add(Kind::Superblock, slot, size_of::<Superblock>() as u64));
    let mut lanes = vec![(TABLE_LANE, TABLE_LANE_LEN)];
    for slot in (0..u64::from(LANES)).map(|index| LANE_DIRECTORY + index * LINE) {
        let lane: Directory = read(image, slot);
        if lane.magic.get() != 0 {
            lanes.push((lane.offset.get(), lane.len.get()));
        }
        add(Kind::Directory, slot, LINE);
    }
    add(Kind::Root, TABLE_ROOT, size_of::<Root>() as u64);
    for page in (DATA..image.len()).step_by(PAGE as usize) {
        match read::<U32>(image, page).get() {
            node::MAGIC => add(Kind::Node, page, PAGE),
            entry::MAGIC | FREE_MAGIC => {
                for slot in (page..page + PAGE).step_by(entry::SIZE as usize) {
                    let used = read::<U32>(image, slot).get() == entry::MAGIC;
                    add(if used { Kind::Entry } else { Kind::FreeSlot }, slot, PROGRESS);
                    add(Kind::Progress, slot + PROGRESS, LINE);
                }
            }
            _ => {}
        }
    }
    for (lane, len) in lanes {
        HEADERS.into_iter().for_each(|copy| add(Kind::LaneHeader, lane + copy, LINE));
        let mut at = lane + BODY;
        while at + LINE <= lane + len {
            let header: BatchHeader = read(image, at);
            if header.magic.get() != batch::MAGIC || !(LINE..=lane + len - at).contains(&header.len.get()) {
                break;
            }
            add(Kind::Batch, at, header.len.get());
            at += header.len.get();
        }
    }
    all
}

#[must_use]
pub fn seed(image: &Image) -> u64 {
    read::<Superblock>(image, SLOTS[0]).seed.get()
}

pub fn seal(image: &Image, seed: u64, structure: Structure) {
    let at = structure.offset;
    match structure.kind {
        Kind::Superblock => image.put(at, read::<Superblock>(image, at).sealed().as_bytes()),
        Kind::Directory => image.put(at, read::<Directory>(image, at).sealed(seed).as_bytes()),
        Kind::Root => image.put(at, read::<Root>(image, at).sealed(seed).as_bytes()),
        Kind::Entry => image.put(at, read::<Entry>(image, at).sealed(seed).as_bytes()),
        Kind::Progress => image.put(at, read::<Progress>(image, at).sealed(seed).as_bytes()),
        Kind::Node => {
            let mut node: Node = read(image, at);
            node.seal(seed);
            image.put(at, node.as_bytes());
        }
        Kind::LaneHeader => {
            let mut header: LaneHeader = read(image, at);
            header.checksum = U64::new(0);
            header.checksum = U64::new(checksum(seed, &[header.as_bytes()]));
            image.put(at, header.as_bytes());
        }
        Kind::Batch => {
            let mut header: BatchHeader = read(image, at);
            let len = header.len.get().clamp(LINE, (image.len() - at).max(LINE));
            let mut body = vec![0; (len - LINE) as usize];
            image.get(at + LINE, &mut body);
            header.body_sum = U64::new(checksum(seed, &[&body]));
            header.head_sum = U64::new(header.sum(seed));
            image.put(at, header.as_bytes());
        }
        Kind::FreeSlot => {}
    }
}

/// Starts the next generation of the table's lane, so that it redoes nothing over forgeries.
pub fn void_table_lane(image: &Image, seed: u64) {
    let generations = HEADERS.map(|copy| read::<LaneHeader>(image, TABLE_LANE + copy).generation.get());
    let next = generations.into_iter().max().unwrap_or(0).wrapping_add(1);
    for copy in HEADERS {
        image.put(TABLE_LANE + copy, LaneHeader::new(seed, TABLE_LANE, next).as_bytes());
    }
}

/// The offset of the field with the structure's own place, if any.
#[must_use]
pub fn own_offset(kind: Kind) -> Option<u64> {
    match kind {
        Kind::Node => Some(std::mem::offset_of!(Node, own_offset) as u64),
        Kind::Entry | Kind::FreeSlot => Some(std::mem::offset_of!(Entry, own_offset) as u64),
        Kind::LaneHeader => Some(std::mem::offset_of!(LaneHeader, own_offset) as u64),
        _ => None,
    }
}

fn read<T: FromBytes + IntoBytes>(image: &Image, offset: u64) -> T {
    let mut value = T::new_zeroed();
    image.get(offset, value.as_mut_bytes());
    value
}
