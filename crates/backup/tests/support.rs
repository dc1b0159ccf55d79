//! Pools with all kinds of objects, and the parts that a restore must keep.

use indelible::collections::{PHashMap, PString};
use indelible::{CreateOptions, Pool};
use indelible_backup::Choice;
use indelible_store::format::entry::FLAG_OVERLAY;
use indelible_store::store::Attributes;
use std::collections::BTreeMap;
use std::path::Path;

pub const PAGE: usize = 4096;

/// Attributes and bytes by name.
pub type Content = BTreeMap<String, (Attributes, Vec<u8>)>;

pub fn unseen(_: u64, _: u64) {}

pub fn all() -> Choice<'static> {
    Choice::default()
}

/// Incompressible bytes.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes()
    };
    (0..len.div_ceil(8)).flat_map(|_| next()).take(len).collect()
}

pub fn put(pool: &Pool, name: &str, at: usize, bytes: &[u8]) {
    let mut object = pool.attach(name).unwrap();
    object.range_mut(at..at + bytes.len()).copy_from_slice(bytes);
    object.psync().unwrap();
    object.detach().unwrap();
}

/// A heap, an array, a sparse and an empty object, a long name, keys, a snapshot, and a copy of it.
pub fn varied(path: &Path) -> Pool {
    let pool = Pool::format(path, 32 << 20).unwrap();
    let mut heap = pool.heap("words", 1 << 20).unwrap();
    let words = heap.root_or_default::<PHashMap<PString, u64>>("words").unwrap();
    for n in 0..200_u64 {
        words.insert(&format!("word {n}")[..], n);
    }
    heap.psync().unwrap();
    drop(heap);
    pool.create("array", 300_001).unwrap();
    put(&pool, "array", 0, &noise(1, 300_001));
    pool.create_with("sparse", &CreateOptions::new(8 << 20).sparse(true)).unwrap();
    put(&pool, "sparse", 5 << 20, b"far away");
    pool.create("empty", 1).unwrap();
    pool.create(&"long-".repeat(102), 10_000).unwrap();
    put(&pool, &"long-".repeat(102), 4090, b"across two pages");
    pool.create_with("locked", &CreateOptions::new(100).key(b"secret")).unwrap();
    pool.snapshot("array", "array yesterday", b"").unwrap();
    put(&pool, "array", 40_000, b"changed since");
    pool.create_from("array yesterday", "array trial", b"", &CreateOptions::new(0)).unwrap();
    put(&pool, "array trial", 90_000, b"tried");
    pool
}

pub fn content(pool: &Pool) -> Content {
    let names: Vec<String> = pool.list().map(|stat| stat.unwrap().name).collect();
    let store = pool.store();
    let one = |name: String| {
        let (object, status) = store.stat(&name).unwrap();
        let mut attributes = Attributes::of(&object);
        // A restored object shares no pages.
        attributes.flags &= !FLAG_OVERLAY;
        (attributes.published, attributes.psyncs) = (status.published, status.psyncs);
        // A shrink leaves the mark behind the end.
        let end = attributes.size.next_multiple_of(PAGE as u64);
        attributes.published = attributes.published.min(end);
        let mut bytes = vec![0; attributes.size as usize];
        store.read_object(&object, 0, &mut bytes).unwrap();
        (name, (attributes, bytes))
    };
    names.into_iter().map(one).collect()
}

#[track_caller]
pub fn expect_same(found: &Pool, wanted: &Content) {
    let found = content(found);
    assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    for (name, (attributes, bytes)) in &found {
        let (wanted_attributes, wanted_bytes) = &wanted[name];
        assert_eq!(attributes, wanted_attributes, "{name}");
        let wrong = bytes.iter().zip(wanted_bytes).position(|(a, b)| a != b);
        assert_eq!((wrong, bytes.len()), (None, wanted_bytes.len()), "{name}");
    }
}

/// A new pool whose random window overlaps none of another pool's objects.
pub fn elsewhere(path: &Path, pool: &Pool) -> Pool {
    let taken = pool.info().unwrap().window;
    loop {
        let other = Pool::format(path, 32 << 20).unwrap();
        let info = other.info().unwrap();
        // Objects lie at the beginning of a window.
        if taken + (1 << 30) < info.window || taken > info.window + info.window_len {
            return other;
        }
        drop(other);
        std::fs::remove_file(path).unwrap();
    }
}
