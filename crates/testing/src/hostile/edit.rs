//! Turns the bytes of an input into a changed pool.
//!
//! ```text
//! pool (1 byte) | how (1 byte) | edits (16 bytes each, at most 32)
//! edit:  operation (1) | width (1) | structure (2) | field (2) | other structure (2) | value (8)
//! ```
//!
//! The highest bit of *width* makes a tower: tree number *structure* becomes *field* levels of
//! nodes with *other structure* slots each, all referring to the same node below; the leaf's values
//! are *value*, and its last key is the maximum.
//!
//! Numbers are little-endian, modulo the range, so that every input has a meaning. Fixed lengths
//! keep a fuzzer's mutations local.

use super::Image;
use super::anatomy::{Kind, Structure, own_offset, seal, seed, structures, void_table_lane};
use super::pool::{Pool, pools};
use indelible_store::format::node::{CAPACITY, Node, Slot};
use indelible_store::format::root::{HEIGHT, Root, TREES, TreeId, TreeRoot};
use indelible_store::format::{DATA, LINE, PAGE, TABLE_LANE, TABLE_ROOT};
use indelible_store::medium::{Medium, read_struct};
use std::sync::OnceLock;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

const EDITS: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Set,
    Telling,
    /// Sets a field to another structure's offset, in bytes or pages.
    Point,
    Add,
    /// Copies another structure, with the new place.
    Copy,
    Zero,
    Flip,
    Noise,
}

const OPERATIONS: [Operation; 8] = [
    Operation::Set,
    Operation::Telling,
    Operation::Point,
    Operation::Add,
    Operation::Copy,
    Operation::Zero,
    Operation::Flip,
    Operation::Noise,
];

pub struct Forged {
    pub pool: &'static Pool,
    pub image: Image,
    /// A byte for choices of the target.
    pub how: u8,
}

/// Applies an input's edits and makes checksums fit.
#[must_use]
pub fn forged(input: &[u8]) -> Forged {
    make(input, true)
}

/// As [`forged`], with flips, zeros and noise alone, and without fitting checksums; a lane's last
/// batch stays.
#[must_use]
pub fn damaged(input: &[u8]) -> Forged {
    make(input, false)
}

fn make(input: &[u8], sealed: bool) -> Forged {
    let (head, edits) = input.split_at(input.len().min(2));
    let byte = |at: usize| head.get(at).copied().unwrap_or(0);
    let index = usize::from(byte(0)) % pools().len();
    let pool = &pools()[index];
    let image = pool.image();
    let all = if sealed { &anatomies()[index] } else { &firm()[index] };
    let seed = seed(&image);
    for edit in edits.as_chunks::<16>().0.iter().take(EDITS) {
        apply(&image, all, seed, edit, sealed);
    }
    Forged { pool, image, how: byte(1) }
}

fn anatomies() -> &'static [Vec<Structure>] {
    static ALL: OnceLock<Vec<Vec<Structure>>> = OnceLock::new();
    ALL.get_or_init(|| pools().iter().map(|pool| structures(&pool.current())).collect())
}

fn firm() -> &'static [Vec<Structure>] {
    static ALL: OnceLock<Vec<Vec<Structure>>> = OnceLock::new();
    ALL.get_or_init(|| {
        let is_firm = |all: &[Structure], at: usize| {
            let (own, next) = (all[at], all.get(at + 1));
            own.kind != Kind::Batch || next.is_some_and(|next| next.offset == own.offset + own.len)
        };
        let keep =
            |all: &Vec<Structure>| (0..all.len()).filter(|at| is_firm(all, *at)).map(|at| all[at]).collect();
        anatomies().iter().map(keep).collect()
    })
}

const TOWER: u8 = 0x80;

fn apply(image: &Image, all: &[Structure], seed: u64, edit: &[u8; 16], sealed: bool) {
    let short = |at: usize| u16::from_le_bytes([edit[at], edit[at + 1]]);
    if sealed && edit[1] & TOWER != 0 {
        let value = u64::from_le_bytes(std::array::from_fn(|at| edit[8 + at]));
        let tree = TREES[usize::from(short(2)) % TREES.len()];
        let (height, slots) = (u32::from(short(4)) % HEIGHT + 1, usize::from(short(6)) % CAPACITY + 1);
        return tower(image, seed, tree, height, slots, value);
    }
    let structure = all[usize::from(short(2)) % all.len()];
    let other = all[usize::from(short(6)) % all.len()];
    let value = u64::from_le_bytes(std::array::from_fn(|at| edit[8 + at]));
    let width = 1 << (edit[1] % 4);
    let field = structure.offset + u64::from(short(4)) % structure.len / width * width;
    let put = |value: u64| {
        let width = width.min(structure.offset + structure.len - field) as usize;
        image.put(field, &value.to_le_bytes()[..width]);
    };
    let operation = match sealed {
        true => OPERATIONS[usize::from(edit[0]) % OPERATIONS.len()],
        false if structure.kind == Kind::Progress => Operation::Flip,
        false => OPERATIONS[5 + usize::from(edit[0]) % 3],
    };
    match operation {
        Operation::Set => put(value),
        Operation::Telling => put(telling(image, value)),
        Operation::Point => put(if value % 2 == 0 { other.offset } else { other.offset / PAGE }),
        Operation::Add => {
            let mut old = [0; 8];
            let have = width.min(structure.offset + structure.len - field) as usize;
            image.get(field, &mut old[..have]);
            put(u64::from_le_bytes(old).wrapping_add(value as u8 as i8 as i64 as u64));
        }
        Operation::Copy => {
            let mut bytes = vec![0; structure.len.min(other.len) as usize];
            image.get(other.offset, &mut bytes);
            image.put(structure.offset, &bytes);
            if let Some(own) = own_offset(structure.kind) {
                image.put(structure.offset + own, &structure.offset.to_le_bytes());
            }
        }
        Operation::Zero => image.put(structure.offset, &vec![0; structure.len as usize]),
        Operation::Flip => image.flip(structure.offset + value / 8 % structure.len, (value % 8) as u32),
        Operation::Noise => {
            let mut noise = vec![0; LINE.min(structure.offset + structure.len - field) as usize];
            fastrand::Rng::with_seed(value).fill(&mut noise);
            image.put(field, &noise);
        }
    }
    if sealed {
        seal(image, seed, structure);
    }
}

/// Makes a tree with the most ways to its only leaf: one node per level, at the end of the image.
pub fn tower(image: &Image, seed: u64, tree: TreeId, height: u32, slots: usize, value: u64) {
    void_table_lane(image, seed);
    let place = |level: u32| image.len() - PAGE * u64::from(level + 1);
    for level in 0..height {
        let mut node = Node::empty(level as u16, place(level));
        node.count = U16::new(slots as u16);
        for (index, slot) in node.slots[..slots].iter_mut().enumerate() {
            let (high, below) = (u64::MAX / slots as u64 * (index as u64 + 1), level.checked_sub(1));
            *slot = Slot::new((high, u64::MAX), below.map_or(value, place));
        }
        node.seal(seed);
        image.put(place(level), node.as_bytes());
    }
    let mut root: Root = read_struct(image, TABLE_ROOT).expect("an image is long enough for a root");
    let (node, count) = (U64::new(place(height - 1)), U64::new(slots as u64));
    root.trees[tree as usize] = TreeRoot { node, count, height: U32::new(height), ..TreeRoot::default() };
    image.put(TABLE_ROOT, root.sealed(seed).as_bytes());
}

fn telling(image: &Image, which: u64) -> u64 {
    let len = image.len();
    let all = [
        0,
        1,
        u64::MAX,
        u64::MAX / 2,
        1 << 63,
        1 << 47,
        len,
        len - PAGE,
        len + PAGE,
        len / PAGE,
        DATA,
        TABLE_LANE,
        TABLE_ROOT,
        PAGE,
        LINE,
        u64::MAX - PAGE + 1,
    ];
    all[(which % all.len() as u64) as usize]
}

/// Initial inputs: every pool, and each with one edit of each operation to each kind of structure.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for (pool, all) in anatomies().iter().enumerate() {
        inputs.push(vec![pool as u8, 0]);
        for (tree, height, slots) in (0..TREES.len() as u16).flat_map(|tree| [(tree, 15, 167), (tree, 0, 1)])
        {
            let mut input = vec![pool as u8, 0xff, 0, TOWER];
            [tree, height, slots].iter().for_each(|field| input.extend(field.to_le_bytes()));
            input.extend(DATA.to_le_bytes());
            inputs.push(input);
        }
        let mut kinds = std::collections::BTreeMap::new();
        all.iter().enumerate().for_each(|(at, structure)| _ = kinds.entry(structure.kind).or_insert(at));
        for at in kinds.into_values() {
            for operation in 0..OPERATIONS.len() as u8 {
                let mut input = vec![pool as u8, operation, operation, 3];
                input.extend((at as u16).to_le_bytes());
                input.extend([8, 0, 3, 0]);
                input.extend(u64::from(operation).to_le_bytes());
                inputs.push(input);
            }
        }
    }
    inputs
}
