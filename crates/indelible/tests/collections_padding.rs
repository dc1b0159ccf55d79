//! Padding: a move brings process bytes into it, which must not get into the object.

use indelible::collections::{PBTreeMap, PBox, PHashMap, PMutex, POption, PRc, PVec, PVecDeque};
use indelible::{Heap, Persist, Pool};
use std::mem::MaybeUninit;
use std::num::Wrapping;

/// A process byte, as of a key's former buffer.
const SECRET: u8 = 0xa7;

#[derive(Persist, Clone, Copy)]
#[repr(C)]
struct Record {
    a: u8,
    b: u64,
    c: u16,
}

#[derive(Persist, Clone, Copy)]
#[repr(u8)]
#[allow(dead_code)]
enum Choice {
    None = 0,
    Small(u8) = 1,
    Large(u64, u64, u64, Record) = 2,
}

#[derive(Persist, Clone, Copy)]
#[repr(C, u16)]
#[allow(dead_code)]
enum Tagged {
    Empty,
    Some { word: u64, last: u8 },
}

#[derive(Persist, Clone, Copy)]
#[repr(C)]
struct Wide<T> {
    tag: u8,
    choice: Choice,
    tagged: Tagged,
    all: [T; 2],
    last: u8,
}

fn dirty<T>(store: impl FnOnce(*mut T)) -> T {
    let mut place = MaybeUninit::<T>::uninit();
    // SAFETY: the place is a `T` once `store` has stored its fields.
    unsafe {
        place.as_mut_ptr().cast::<u8>().write_bytes(SECRET, size_of::<T>());
        store(place.as_mut_ptr());
        place.assume_init()
    }
}

fn store_record(at: *mut Record, n: u64) {
    // SAFETY: a place for it.
    unsafe {
        (&raw mut (*at).a).write(n as u8);
        (&raw mut (*at).b).write(n);
        (&raw mut (*at).c).write(3);
    }
}

fn record(n: u64) -> Record {
    dirty(|at| store_record(at, n))
}

fn store_choice(at: *mut Choice, n: u64) {
    let bytes = at.cast::<u8>();
    // SAFETY: the tag of a variant, and its field behind it.
    unsafe {
        bytes.write((n % 2) as u8);
        bytes.add(1).write(if n % 2 == 1 { 5 } else { SECRET });
    }
}

fn choice(n: u64) -> Choice {
    dirty(|at| store_choice(at, n))
}

fn wide(n: u64) -> Wide<Wrapping<u32>> {
    dirty(|at: *mut Wide<Wrapping<u32>>| {
        // SAFETY: a place for it, and its fields; the tag of a variant without any.
        unsafe {
            (&raw mut (*at).tag).write(1);
            store_choice(&raw mut (*at).choice, n);
            (&raw mut (*at).tagged).cast::<u16>().write(0);
            (&raw mut (*at).all).write([Wrapping(n as u32), Wrapping(2)]);
            (&raw mut (*at).last).write(9);
        }
    })
}

fn some(n: u64) -> POption<Record> {
    dirty(|at: *mut POption<Record>| {
        let bytes = at.cast::<u8>();
        // SAFETY: the tag comes first, the value behind it, aligned.
        unsafe {
            bytes.write((n % 2) as u8);
            if n % 2 == 1 {
                store_record(bytes.add(align_of::<Record>()).cast(), n);
            }
        }
    })
}

fn pair(n: u64) -> (u8, u64, Record) {
    dirty(|at: *mut (u8, u64, Record)| {
        // SAFETY: a place for it, and its fields.
        unsafe {
            (&raw mut (*at).0).write(1);
            (&raw mut (*at).1).write(n);
            store_record(&raw mut (*at).2, n);
        }
    })
}

/// Runs of such bytes in the object. (One or two occur by chance.)
fn found(heap: &mut Heap) -> usize {
    heap.psync().unwrap();
    heap.object().as_slice().windows(4).filter(|run| run.iter().all(|byte| *byte == SECRET)).count()
}

#[track_caller]
fn expect_clean(what: &str, store: impl for<'h> FnOnce(&'h mut Heap)) {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    let mut heap = pool.heap("h", 4 << 20).unwrap();
    store(&mut heap);
    assert_eq!(found(&mut heap), 0, "{what}");
}

macro_rules! containers {
    ($what:literal, $type:ty, $make:expr) => {
        expect_clean(concat!($what, " in vectors"), |heap| {
            let list = heap.root_or_default::<PVec<'_, $type>>("list").unwrap();
            (0..300).for_each(|n| list.push($make(n)));
            (0..10).for_each(|n| list.insert(3, $make(n)));
            list.extend((0..40).map($make));
            list.truncate(100);
        });
        expect_clean(concat!($what, " in maps"), |heap| {
            let map = heap.root_or_default::<PHashMap<'_, u32, $type>>("map").unwrap();
            for n in 0..600 {
                let _ = map.insert((n % 300) as u32, $make(n));
            }
            map.update(&7, |value| *value = $make(8));
            map.entry(7_u32).and_modify(|value| *value = $make(9)).or_insert_with(|| $make(9));
            map.entry(7000_u32).or_insert_with(|| $make(1));
        });
        expect_clean(concat!($what, " in trees"), |heap| {
            let tree = heap.root_or_default::<PBTreeMap<'_, u8, $type>>("tree").unwrap();
            for n in 0..500 {
                let _ = tree.insert((n * 7 % 250) as u8, $make(n));
            }
            for n in 0..200_u8 {
                let _ = tree.remove(&n);
            }
            tree.entry(3_u8).or_insert_with(|| $make(1));
        });
        expect_clean(concat!($what, " in queues"), |heap| {
            let queue = heap.root_or_default::<PVecDeque<'_, $type>>("queue").unwrap();
            (0..100).for_each(|n| queue.push_back($make(n)));
            (0..100).for_each(|n| queue.push_front($make(n)));
        });
        expect_clean(concat!($what, " in blocks"), |heap| {
            let (boxes, place) = heap.root_and_heap::<PVec<'_, PBox<'_, $type>>>("boxes").unwrap();
            (0..50).for_each(|n| boxes.push(PBox::new_in($make(n), place)));
            let (shared, place) = heap.root_and_heap::<PVec<'_, PRc<'_, $type>>>("shared").unwrap();
            (0..50).for_each(|n| shared.push(PRc::new_in($make(n), place)));
            let (locks, place) = heap.root_and_heap::<PVec<'_, PMutex<'_, $type>>>("locks").unwrap();
            (0..50).for_each(|n| locks.push(PMutex::new_in($make(n), place)));
        });
        expect_clean(concat!($what, " as a root"), |heap| {
            heap.root_or_insert_with::<$type, _>("root", |_| $make(4)).unwrap();
        });
    };
}

#[test]
fn no_bytes_between_fields_get_into_an_object() {
    containers!("a struct", Record, record);
    containers!("an enum", Choice, choice);
    containers!("a struct of all", Wide<Wrapping<u32>>, wide);
    containers!("a tuple", (u8, u64, Record), pair);
    containers!("an option", POption<Record>, some);
}

#[test]
fn keys_and_copies_of_slices_bring_none() {
    expect_clean("copies", |heap| {
        let list = heap.root_or_default::<PVec<'_, Record>>("list").unwrap();
        let values: Vec<Record> = (0..100).map(record).collect();
        list.extend_from_slice(&values);
        list.try_append(&values).unwrap();
        list.try_extend_from_slice(&values).unwrap();
        list.resize(400, record(1));
    });
    expect_clean("options that are filled", |heap| {
        let option = heap.root_or_default::<POption<u64>>("option").unwrap();
        option.replace(1);
        let again = option.take();
        assert_eq!(again, Some(1));
        option.insert(2);
        assert_eq!(option.as_ref(), Some(&2));
    });
}
