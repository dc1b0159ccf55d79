//! The bytes of collections, pinned against accidental change: FORMAT.md follows the code.

use indelible::collections::format::{CONSTANTS, STRUCTS};
use indelible::collections::{KeyHash, PBTreeMap, PBox, PHashMap, PHashSet, PString, PVec, StableHash};
use indelible::{ErrorKind, Heap, Pool, TypeInfo};
use indelible_store::format::checksum;
use indelible_testing::page::tables;

#[test]
fn the_structs_are_as_format_md_says() {
    let tables = tables(include_str!("../../../FORMAT.md"), "At");
    for (name, fields, size) in STRUCTS {
        let rows = tables.get(name).unwrap_or_else(|| panic!("FORMAT.md does not describe {name}"));
        let written: Vec<(String, usize, usize)> = rows
            .iter()
            .map(|row| (row[2].clone(), row[0].parse().unwrap(), row[1].parse().unwrap()))
            .collect();
        let found: Vec<(String, usize, usize)> =
            fields.iter().map(|(name, offset, size)| ((*name).to_owned(), *offset, *size)).collect();
        assert_eq!(written, found, "{name}");
        let (_, offset, len) = found.last().unwrap();
        assert_eq!(offset + len, size, "{name}");
    }
    let described = tables.keys().filter(|name| name.starts_with("collections::")).count();
    assert_eq!(described, STRUCTS.len());
}

#[test]
fn the_constants_are_as_format_md_says() {
    let tables = tables(include_str!("../../../FORMAT.md"), "Collection constant");
    let rows = tables.values().next().expect("a table of constants");
    let written: Vec<(&str, u64)> =
        rows.iter().map(|row| (row[0].as_str(), row[1].parse().unwrap())).collect();
    assert_eq!(written, CONSTANTS);
}

fn words(heap: &mut Heap, name: &str) -> Vec<u64> {
    let root = heap.root_any(name).unwrap();
    let start = root.address - heap.base().addr();
    let bytes = &heap.object().as_slice()[start..start + root.size as usize];
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

fn bytes(heap: &mut Heap, address: u64, len: usize) -> Vec<u8> {
    let start = address as usize - heap.base().addr();
    heap.object().as_slice()[start..][..len].to_vec()
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

#[derive(indelible::Persist, indelible::StableHash)]
#[repr(u8)]
#[allow(dead_code)]
enum Choice {
    Nine(u64) = 200,
    Pair { a: u16, b: u64 },
}

#[test]
fn the_bytes_of_an_object_are_as_format_md_says() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    pool.create("o", 1 << 20).unwrap();
    let mut heap = Heap::format(pool.attach("o").unwrap()).unwrap();
    heap.root_or_default::<PVec<u64>>("list").unwrap().extend([1_u64, 2, 3]);
    heap.root_or_default::<PString>("text").unwrap().push_str("text");
    let map = heap.root_or_default::<PHashMap<u64, u64>>("map").unwrap();
    map.extend((0..10_u64).map(|key| (key, key * key)));
    map.remove(&3);
    let tree = heap.root_or_default::<PBTreeMap<u64, u64>>("tree").unwrap();
    tree.extend((0..16_u64).map(|key| (key, key + 100)));
    heap.root_or_default::<PBTreeMap<u64, u64>>("empty").unwrap();

    let list = words(&mut heap, "list");
    assert_eq!((list.len(), list[2]), (3, 3));
    assert!(bytes(&mut heap, list[0], 24).chunks_exact(8).map(number).eq([1, 2, 3]));
    let text = words(&mut heap, "text");
    assert_eq!((bytes(&mut heap, text[0], 4), text[2]), (b"text".to_vec(), 4));
    assert_eq!(words(&mut heap, "empty"), [0, 0, 0]);

    let [at, slots, len, left, seed] = words(&mut heap, "map")[..] else { panic!("five words") };
    assert_eq!((slots, len, left), (16, 9, 5));
    let control = bytes(&mut heap, at, 16);
    assert_eq!(control.iter().filter(|byte| **byte == 0xff).count(), 7);
    for key in (0..10_u64).filter(|key| *key != 3) {
        let product = u128::from(seed ^ key) * 0x9e37_79b9_7f4a_7c15;
        let hash = (product ^ (product >> 64)) as u64;
        let mut slot = |index: usize| bytes(&mut heap, at + 16 + index as u64 * 16, 16);
        let index =
            (0..16).find(|index| control[*index] < 0x80 && number(&slot(*index)[..8]) == key).unwrap();
        assert_eq!(u64::from(control[index]), hash >> 57);
        assert_eq!(number(&slot(index)[8..]), key * key);
    }

    heap.root_or_insert_with::<[Choice; 2], _>("choice", |_| [Choice::Nine(9), Choice::Pair { a: 1, b: 2 }])
        .unwrap();
    assert_eq!(heap.root_any("choice").unwrap().size, 32);
    let [nine, value, pair, b] = words(&mut heap, "choice")[..] else { panic!("two of two words") };
    assert_eq!((nine as u8, value, pair as u8, (pair >> 16) as u16, b), (200, 9, 201, 1, 2));

    let [root, height, len] = words(&mut heap, "tree")[..] else { panic!("three words") };
    assert_eq!((height, len), (2, 16));
    let inner = bytes(&mut heap, root, 376);
    assert_eq!(inner[..8], [1, 0, 1, 0, 0, 0, 0, 0], "one key, level 1");
    assert_eq!((number(&inner[8..16]), number(&inner[128..136])), (7, 107));
    for (child, keys) in [(0, 0..7_u64), (1, 8..16)] {
        let leaf = bytes(&mut heap, number(&inner[248 + child * 8..][..8]), 248);
        assert_eq!(leaf[..8], [keys.end as u8 - keys.start as u8, 0, 0, 0, 0, 0, 0, 0]);
        for (index, key) in keys.enumerate() {
            assert_eq!(number(&leaf[8 + index * 8..][..8]), key);
            assert_eq!(number(&leaf[128 + index * 8..][..8]), key + 100);
        }
    }
}

#[test]
fn fingerprints_are_as_format_md_says() {
    #[derive(indelible::Persist)]
    #[repr(C)]
    struct All<'h>(PVec<'h, Choice>, [Choice; 2]);

    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    pool.create("o", 1 << 20).unwrap();
    let mut heap = Heap::format(pool.attach("o").unwrap()).unwrap();
    heap.root_or_insert_with::<All, _>("all", |_| All(PVec::new(), [Choice::Nine(1), Choice::Nine(2)]))
        .unwrap();
    let text = "All:56:8 { 0@0:24 PVec Choice:16:8 { tag:u8 Nine=200 ( 0@8:8 u64 ) \
                Pair=201 ( a@2:2 u16 b@8:8 u64 ) } 1@24:32 [2] =1 } ";
    let half = |seed| u128::from(checksum(seed, &[&1_u32.to_le_bytes(), text.as_bytes()]));
    assert_eq!(heap.root_any("all").unwrap().fingerprint, half(1) << 64 | half(2));
}

fn fingerprint(version: u32, text: &str) -> u128 {
    let half = |seed| u128::from(checksum(seed, &[&version.to_le_bytes(), text.as_bytes()]));
    half(1) << 64 | half(2)
}

#[test]
fn tables_with_bytes_in_their_keys_are_of_version_2() {
    #[derive(indelible::Persist)]
    #[repr(C)]
    struct Key<'h>(u32, PBox<'h, PVec<'h, [u8; 4]>>);

    macro_rules! version {
        ($heap:ident, $ty:ty) => {{
            $heap.root_or_default::<$ty>("root").unwrap();
            let root = $heap.root_any("root").unwrap();
            $heap.drop_root::<$ty>("root").unwrap();
            (1..4).find(|version| fingerprint(*version, &root.layout) == root.fingerprint)
        }};
    }
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    let heap = &mut Heap::format(pool.create_attached("o", 1 << 20).unwrap()).unwrap();
    assert_eq!(version!(heap, PHashMap<PVec<u8>, u64>), Some(2));
    assert_eq!(version!(heap, PVec<PHashSet<[u8; 16]>>), Some(2));
    assert_eq!(version!(heap, PHashMap<Key, u64>), Some(2));
    assert_eq!(version!(heap, PHashMap<PString, PVec<u8>>), Some(1));
    assert_eq!(version!(heap, PHashMap<[u16; 8], [u8; 16]>), Some(1));
    assert_eq!(version!(heap, PBTreeMap<PVec<u8>, u64>), Some(1));

    let block = heap.calloc(1, 40).unwrap().as_ptr();
    let layout = "PHashMap PVec u8 u64 ";
    let ty = TypeInfo { name: "PHashMap<PVec<u8>, u64>", fingerprint: fingerprint(1, layout), layout };
    // SAFETY: a block of zeros, an empty table.
    unsafe { heap.create_root("old", block, 40, &ty).unwrap() };
    let refused = heap.root_mut::<PHashMap<PVec<u8>, u64>>("old").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::RootType);
    assert!(refused.to_string().contains("hashed keys of bytes in another way"), "{refused}");
}

#[test]
fn hashes_never_change() {
    #[derive(indelible::StableHash)]
    #[repr(u8)]
    #[allow(dead_code)]
    enum Kind {
        A = 3,
        B = 9,
    }
    let hash = |key: &dyn Fn(&mut KeyHash)| {
        let mut hash = KeyHash::new(42);
        key(&mut hash);
        hash.finish()
    };
    macro_rules! hash {
        ($key:expr) => {
            hash(&|state: &mut KeyHash| $key.stable_hash(state))
        };
    }
    let seven = hash!(7_u64);
    assert_eq!(seven, (u128::from(42_u64 ^ 7) * 0x9e37_79b9_7f4a_7c15).pipe());
    assert_eq!([hash!(7_u8), hash!(7_i32), hash!(7_usize)], [seven; 3]);
    assert_eq!(hash!(-1_i8), hash!(-1_i64));
    assert_eq!(hash!(Kind::B), hash!(9_u8));
    let pair = hash!(Choice::Pair { a: 7, b: 8 });
    assert_eq!(pair, hash(&|state| [201, 7, 8].iter().for_each(|word| state.number(*word))));
    assert_eq!(hash!("text"), hash!(String::from("text")));
    let bytes = hash(&|state| state.bytes(&[1, 2, 3]));
    assert_eq!([hash!([1_u8, 2, 3]), hash!([1_u8, 2, 3][..]), hash!(vec![1_u8, 2, 3])], [bytes; 3]);
    let nested = hash(&|state| {
        state.number(1);
        state.bytes(&[1, 2, 3]);
    });
    assert_eq!(hash!([[1_u8, 2, 3]]), nested);
    assert_eq!(hash!([1_u16, 2]), hash(&|state| [2_u64, 1, 2].iter().for_each(|word| state.number(*word))));
    assert_eq!(hash!("text"), 10_373_741_077_572_880_147);
}

trait Fold {
    fn pipe(self) -> u64;
}

impl Fold for u128 {
    fn pipe(self) -> u64 {
        self as u64 ^ (self >> 64) as u64
    }
}
