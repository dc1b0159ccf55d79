use super::support::{World, everywhere};
use indelible::collections::PVec;
use indelible::{CreateOptions, Difference, ErrorKind, Object, Pool};
use std::collections::BTreeMap;
use std::ops::Range;

const PAGE: usize = 4096;

struct Rng(u64);

impl Rng {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }
}

type Model = BTreeMap<String, Vec<u8>>;

fn filled(world: &World, len: usize) -> (Pool, Model) {
    let pool = world.format();
    pool.create("a", len as u64).unwrap();
    let bytes: Vec<u8> = (0..len).map(|at| (at / 61 % 251) as u8).collect();
    let mut a = pool.attach("a").unwrap();
    a.as_mut_slice().copy_from_slice(&bytes);
    a.psync().unwrap();
    a.detach().unwrap();
    (pool, Model::from([("a".to_owned(), bytes)]))
}

fn expect(pool: &Pool, model: &Model, context: &str) {
    for (name, bytes) in model {
        let object = pool.attach_read(name).unwrap();
        let found = object.as_slice().iter().zip(bytes).position(|(a, b)| a != b);
        assert_eq!((found, object.as_slice().len()), (None, bytes.len()), "{name}, {context}");
    }
}

fn change(object: &mut Object, bytes: &mut [u8], rng: &mut Rng) {
    for _ in 0..1 + rng.below(6 - 1) {
        let at = rng.below(bytes.len());
        let end = (at + [1, 8, 200, 9000][rng.below(4)]).min(bytes.len());
        let value = 1 + rng.below(255) as u8;
        object.range_mut(at..end).fill(value);
        bytes[at..end].fill(value);
    }
    object.psync().unwrap();
}

fn differing(older: &[u8], newer: &[u8]) -> Difference {
    let mut pages: Vec<Range<u64>> = Vec::new();
    let page = |bytes: &[u8], page: usize| {
        let mut page = bytes.chunks(PAGE).nth(page).unwrap_or_default().to_vec();
        page.resize(PAGE, 0);
        page
    };
    for nth in 0..older.len().max(newer.len()).div_ceil(PAGE) {
        if page(older, nth) == page(newer, nth) {
            continue;
        }
        match pages.last_mut() {
            Some(last) if last.end == nth as u64 => last.end += 1,
            _ => pages.push(nth as u64..nth as u64 + 1),
        }
    }
    Difference { pages, older_size: older.len() as u64, newer_size: newer.len() as u64 }
}

#[test]
fn s2_02_copies_and_snapshots_change_apart() {
    everywhere(|world| {
        let seed = 17;
        let mut rng = Rng(seed);
        let (pool, mut model) = filled(world, 20 * PAGE + 100);
        let mut snapshots = Vec::new();
        for round in 0..60 {
            let names: Vec<String> = model.keys().cloned().collect();
            let name = &names[rng.below(names.len())];
            let is_snapshot = snapshots.contains(name);
            let new = format!("copy {round}");
            match rng.below(12) {
                0..2 => {
                    pool.create_from(name, &new, b"", &CreateOptions::new(0)).unwrap();
                    model.insert(new, model[name].clone());
                }
                2 if is_snapshot => {
                    assert_eq!(pool.snapshot(name, &new, b"").unwrap_err().kind(), ErrorKind::ObjectReadOnly);
                    assert_eq!(pool.attach(name).unwrap_err().kind(), ErrorKind::ObjectReadOnly);
                }
                2 => {
                    pool.snapshot(name, &new, b"").unwrap();
                    assert!(pool.stat(&new).unwrap().snapshot && pool.stat(name).unwrap().shares);
                    model.insert(new.clone(), model[name].clone());
                    snapshots.push(new);
                }
                3 if names.len() > 2 => {
                    pool.destroy(name).unwrap();
                    model.remove(name);
                    snapshots.retain(|snapshot| snapshot != name);
                }
                11 if !is_snapshot && !snapshots.is_empty() => {
                    let snapshot: &String = &snapshots[rng.below(snapshots.len())];
                    let had = pool.stat(name).unwrap();
                    pool.rollback(name, snapshot, b"").unwrap();
                    let has = pool.stat(name).unwrap();
                    assert_eq!((has.id, has.created), (had.id, had.created), "round {round} of {seed}");
                    assert!(has.psyncs >= had.psyncs && has.shares, "round {round} of {seed}: {has:?}");
                    model.insert(name.clone(), model[snapshot].clone());
                }
                4 if !is_snapshot => {
                    let size = 1 + rng.below(30 * PAGE - 1);
                    pool.resize(name, size as u64, b"").unwrap();
                    model.get_mut(name).unwrap().resize(size, 0);
                }
                _ if !is_snapshot => {
                    let bytes = model.get_mut(name).unwrap();
                    let mut object = pool.attach(name).unwrap();
                    change(&mut object, bytes, &mut rng);
                    if rng.below(3) == 0 {
                        object.range_mut(0..1).fill(bytes[0] ^ 1);
                        let size = bytes.len() + 1 + rng.below(4 * PAGE - 1);
                        object.grow(size as u64).unwrap();
                        assert_eq!(object.as_slice()[0], bytes[0] ^ 1);
                        bytes.resize(size, 0);
                        object.revert().unwrap();
                        change(&mut object, bytes, &mut rng);
                    }
                    assert!(object.as_slice() == &bytes[..], "round {round} of {seed}: {name}");
                }
                _ => {}
            }
            expect(&pool, &model, &format!("round {round} of {seed}"));
            let names: Vec<_> = model.keys().collect();
            let [older, newer] = [(); 2].map(|()| names[rng.below(names.len())]);
            let found = pool.diff(older, newer, b"").unwrap();
            let context = format!("round {round} of {seed}: {older}, {newer}");
            assert_eq!(found, differing(&model[older], &model[newer]), "{context}");
        }
        drop(pool);
        expect(&world.open(), &model, "opened again");
        if world.sim().is_none() {
            let report = indelible::check(world.path(), &world.options(), &mut |_, _| {}).unwrap();
            assert!(report.findings.is_empty(), "{:?}", report.findings);
        }
    });
}

/// A psync that compares untouched pages waits for the thread that fills them, which does not wait
/// for the psync.
#[test]
fn pages_of_a_copy_are_filled_whenever_they_are_compared() {
    everywhere(|world| {
        let (pool, mut model) = filled(world, 30 * PAGE);
        pool.create_from("a", "b", b"", &CreateOptions::new(0)).unwrap();
        let mut bytes = model["a"].clone();
        let mut b = pool.attach("b").unwrap();
        b.mark_dirty(0..30 * PAGE);
        b.psync().unwrap();
        for round in 1..4 {
            b.range_mut(5 * PAGE..7 * PAGE).fill(round);
            bytes[5 * PAGE..7 * PAGE].fill(round);
            b.mark_dirty(0..30 * PAGE);
            b.psync().unwrap();
        }
        b.detach().unwrap();
        model.insert("b".into(), bytes);
        expect(&pool, &model, "afterwards");
    });
}

/// Both have the same addresses: pointers in a copy of a heap lead into the copy.
#[test]
fn a_copy_of_a_heap_is_a_heap() {
    everywhere(|world| {
        let pool = world.format();
        let mut heap = pool.heap("list", 1 << 20).unwrap();
        let list = heap.root_or_default::<PVec<u64>>("numbers").unwrap();
        list.extend(0..5000);
        heap.psync().unwrap();
        drop(heap);
        pool.create_from("list", "trial", b"", &CreateOptions::new(0)).unwrap();
        let mut trial = pool.heap("trial", 1 << 20).unwrap();
        let list = trial.root_or_default::<PVec<u64>>("numbers").unwrap();
        assert!(list.iter().copied().eq(0..5000));
        list[7] = 70;
        list.extend(0..100_000);
        trial.psync().unwrap();
        drop(trial);
        let mut heap = pool.heap("list", 1 << 20).unwrap();
        assert!(heap.root_or_default::<PVec<u64>>("numbers").unwrap().iter().copied().eq(0..5000));
        drop(heap);
        let mut trial = pool.heap("trial", 1 << 20).unwrap();
        let list = trial.root_or_default::<PVec<u64>>("numbers").unwrap();
        assert_eq!((list[7], list.len()), (70, 105_000));
    });
}
