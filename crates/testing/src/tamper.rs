//! An attacker's changes, without a key, to sealed objects of one pool: exchanges their identities.

use crate::independent::Independent;
use crate::sealed::{page_at, shape};
use chacha20poly1305::XNonce;
use chacha20poly1305::aead::AeadInPlace;
use indelible_store::format::entry::{Entry, FLAG_SEALED, PROGRESS, SIZE};
use indelible_store::format::lane::{HEADERS, Header};
use indelible_store::format::superblock::{SLOTS, Superblock};
use indelible_store::format::{LINE, TABLE_LANE};
use indelible_store::table::Located;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, IntoBytes};

const FLAGS: usize = 12;
/// Flag of the header: the root authenticates ID and name.
const IDENTITY: u8 = 4;

/// Exchanges two detached objects of one size in a closed pool's bytes.
pub type Exchange = fn(&mut [u8], &Located, &Located);

/// All ways except renames, which change the tree of names, too.
pub const EXCHANGES: [(&str, Exchange); 3] = [("extents", extents), ("places", places), ("entries", entries)];

fn extents(pool: &mut [u8], a: &Located, b: &Located) {
    for page in 0..a.entry.pages.get().min(b.entry.pages.get()) {
        let (a, b) = (page_at(a, page), page_at(b, page));
        let of_a = pool[a.clone()].to_vec();
        pool.copy_within(b.clone(), a.start);
        pool[b].copy_from_slice(&of_a);
    }
}

fn places(pool: &mut [u8], a: &Located, b: &Located) {
    void_table_lane(pool);
    put(pool, a, Entry { primary: b.entry.primary, ..a.entry });
    put(pool, b, Entry { primary: a.entry.primary, ..b.entry });
}

fn entries(pool: &mut [u8], a: &Located, b: &Located) {
    void_table_lane(pool);
    let moved = |entry: Entry, to: &Located| {
        let Entry { own_offset, name, name_len, .. } = to.entry;
        Entry { own_offset, name, name_len, ..entry }
    };
    put(pool, a, moved(b.entry, a));
    put(pool, b, moved(a.entry, b));
    let line = |found: &Located| (found.offset + PROGRESS) as usize..(found.offset + SIZE) as usize;
    let of_a = pool[line(a)].to_vec();
    pool.copy_within(line(b), line(a).start);
    pool[line(b)].copy_from_slice(&of_a);
}

/// A change of one entry, from another object's and a random number.
pub type Forge = fn(&mut Entry, &Entry, u64);

pub const FIELDS: [(&str, Forge); 8] = [
    ("place", |entry, other, _| entry.primary = other.primary),
    ("ID", |entry, other, _| entry.id = other.id),
    ("size", |entry, _, random| entry.size = U64::new(random % 16_384)),
    ("flag of sealed objects", |entry, _, _| entry.set(FLAG_SEALED, !entry.has(FLAG_SEALED))),
    ("flags", |entry, _, random| entry.flags = U32::new(entry.flags.get() ^ (1 << (random % 24)))),
    ("base", |entry, other, _| (entry.base, entry.overlay) = (other.base, other.overlay)),
    ("keys", |entry, _, random| entry.read_key = [random as u8; 16]),
    ("all but name and place", |entry, other, _| {
        let Entry { primary, own_offset, name, name_len, .. } = *entry;
        *entry = Entry { primary, own_offset, name, name_len, ..*other };
    }),
];

pub fn forge_field(pool: &mut [u8], object: &Located, forge: impl FnOnce(&mut Entry)) {
    let mut entry = object.entry;
    forge(&mut entry);
    put(pool, object, entry);
}

fn seed(pool: &[u8]) -> u64 {
    let (superblock, _) = Superblock::read_from_prefix(&pool[SLOTS[0] as usize..]).expect("a pool has one");
    superblock.seed.get()
}

pub fn void_table_lane(pool: &mut [u8]) {
    let at = |copy: u64| (TABLE_LANE + copy) as usize..(TABLE_LANE + copy + LINE) as usize;
    let generation =
        |copy| Header::read_from_bytes(&pool[at(copy)]).map_or(0, |found| found.generation.get());
    let newest = HEADERS.map(generation).into_iter().max().unwrap_or(0);
    let header = Header::new(seed(pool), TABLE_LANE, newest + 1);
    for copy in HEADERS {
        pool[at(copy)].copy_from_slice(header.as_bytes());
    }
}

fn put(pool: &mut [u8], at: &Located, entry: Entry) {
    let (entry, at) = (entry.sealed(seed(pool)), at.offset as usize);
    pool[at..at + PROGRESS as usize].copy_from_slice(entry.as_bytes());
}

pub fn say_identity(pool: &mut [u8], object: &Located, is: bool) {
    let flags = &mut pool[page_at(object, shape(object).key_page()).start + FLAGS];
    *flags = if is { *flags | IDENTITY } else { *flags & !IDENTITY };
}

/// Rewrites an unsigned object of the tests' key as an earlier release made it.
pub fn of_earlier_release(pool: &mut [u8], object: &Located) {
    let shape = shape(object);
    let (key_page, top) = (page_at(object, shape.key_page()), page_at(object, shape.page(shape.top(), 0)));
    let key = Independent::open(&pool[key_page.clone()]).expect("it has the key of tests");
    say_identity(pool, object, false);
    let (top, page) = (pool[top].to_vec(), &mut pool[key_page]);
    page[192..256].fill(0);
    let level = u64::from(shape.top()).to_le_bytes();
    let place = [b"node\0\0\0\0", &key.id[..], &level, &[0; 8], &page[104..112]].concat();
    let (nonce, all) = ([0xe0; 24], [&place[..], &page[..64], &top].concat());
    let tag = key.cipher.encrypt_in_place_detached(XNonce::from_slice(&nonce), &all, &mut []);
    page[64..88].copy_from_slice(&nonce);
    page[88..104].copy_from_slice(&tag.expect("it is short"));
}
