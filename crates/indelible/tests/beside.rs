use super::support::{Ground, everywhere};
use indelible::collections::PVec;
use indelible::{Object, Pool};
use indelible_testing::sparse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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

fn expect(pool: &Pool, model: &BTreeMap<String, Vec<u8>>, context: &str) {
    for (name, bytes) in model {
        let object = pool.attach_read(name).unwrap();
        let found = object.as_slice().iter().zip(bytes).position(|(a, b)| a != b);
        assert_eq!((found, object.as_slice().len()), (None, bytes.len()), "{name}, {context}");
    }
}

fn change(object: &mut Object, bytes: &mut [u8], rng: &mut Rng) {
    for _ in 0..1 + rng.below(5) {
        let at = rng.below(bytes.len());
        let end = (at + [1, 8, 200, 9000][rng.below(4)]).min(bytes.len());
        let value = 1 + rng.below(255) as u8;
        object.range_mut(at..end).fill(value);
        bytes[at..end].fill(value);
    }
}

/// Uses another handle of the pool, which on files is a descriptor as of another process; here the
/// locks are this process's.
#[test]
fn s2_02_an_attached_object_goes_on_beside_its_snapshots() {
    everywhere(|world| {
        let seed = 23;
        let mut rng = Rng(seed);
        let pool = world.format();
        pool.create("a", 30 * PAGE as u64 + 50).unwrap();
        let mut model = BTreeMap::new();
        let (mut bytes, mut kept) = (vec![0; 30 * PAGE + 50], Vec::new());
        for attachment in 0..4 {
            let mut a = pool.attach("a").unwrap();
            assert!(a.as_slice() == bytes, "attachment {attachment} of {seed}");
            for round in 0..12 {
                let mut unsynced = bytes.clone();
                change(&mut a, &mut unsynced, &mut rng);
                if rng.below(3) == 0 {
                    let name = format!("{attachment}.{round}");
                    pool.snapshot("a", &name, b"").unwrap();
                    model.insert(name, bytes.clone());
                    kept.clone_from(&bytes);
                    assert!(a.as_slice() == unsynced, "round {round} of {seed}: stores are gone");
                }
                match rng.below(8) {
                    0 => {
                        a.revert().unwrap();
                        assert!(a.as_slice() == bytes, "round {round} of {seed}: reverted");
                        continue;
                    }
                    1 => {
                        let size = bytes.len() + 1 + rng.below(6 * PAGE);
                        a.grow(size as u64).unwrap();
                        unsynced.resize(size, 0);
                        bytes.resize(size, 0);
                        assert!(a.as_slice() == unsynced, "round {round} of {seed}: grown");
                        change(&mut a, &mut unsynced, &mut rng);
                    }
                    2 => a.checkpoint().unwrap(),
                    4 if !kept.is_empty() => {
                        let end = kept.len().min(unsynced.len());
                        unsynced[..end].copy_from_slice(&kept[..end]);
                        a.range_mut(0..end).copy_from_slice(&kept[..end]);
                    }
                    3 if world.ground != Ground::Simulated => assert!(a.is_unsynced().unwrap()),
                    _ => {}
                }
                if rng.below(4) == 0 { a.psync_cut() } else { a.psync() }.unwrap();
                bytes = unsynced;
                assert!(a.as_slice() == bytes, "round {round} of {seed}: psynced");
            }
            a.detach().unwrap();
            model.insert("a".into(), bytes.clone());
            expect(&pool, &model, &format!("attachment {attachment} of {seed}"));
        }
        drop(pool);
        expect(&world.open(), &model, "opened again");
        if world.sim().is_none() {
            let report = indelible::check(world.path(), &world.options(), &mut |_, _| {}).unwrap();
            assert!(report.findings.is_empty(), "{:?}", report.findings);
        }
    });
}

#[test]
fn objects_are_kept_as_one_psync_left_them() {
    everywhere(|world| {
        let pool = world.format();
        let (mut a, mut b) =
            (pool.create_attached("a", 9000).unwrap(), pool.create_attached("b", 70_000).unwrap());
        for round in 1..6_u8 {
            for object in [&mut a, &mut b] {
                object.range_mut(usize::from(round) * 100..usize::from(round) * 100 + 50).fill(round);
            }
            indelible::psync_all(&mut [&mut a, &mut b]).unwrap();
            let missing =
                pool.snapshot_all(&[("a", "kept"), ("none", "too"), ("b", "as well")], b"").unwrap_err();
            assert!(missing.to_string().contains("object \"none\""), "{missing}");
            let names = [("a", format!("a{round}")), ("b", format!("b{round}"))];
            pool.snapshot_all(&names.each_ref().map(|(name, kept)| (*name, kept.as_str())), b"").unwrap();
        }
        drop((a, b));
        for round in 1..6_u8 {
            for name in ["a", "b"] {
                let kept = pool.attach_read(&format!("{name}{round}")).unwrap();
                for at in 1..6_u8 {
                    let expected = if at <= round { at } else { 0 };
                    assert_eq!(kept.as_slice()[usize::from(at) * 100], expected, "{name}{round}");
                }
            }
        }
    });
}

#[test]
fn snapshots_are_cuts_while_threads_store() {
    everywhere(|world| {
        let pool = world.format();
        let mut object = pool.create_attached("a", 40 * PAGE as u64).unwrap();
        object.psync().unwrap();
        let shared = object.share::<[AtomicU64; 2 * PAGE]>().unwrap();
        let done = AtomicBool::new(false);
        let mut kept = Vec::new();
        std::thread::scope(|scope| {
            // Two counters, pages apart: the second is never ahead of the first, nor two behind.
            scope.spawn(|| {
                for count in 1.. {
                    for at in [1, 6000] {
                        shared[at].store(count, Ordering::SeqCst);
                    }
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            for round in 0..20 {
                shared.psync_cut().unwrap();
                if round % 3 == 0 {
                    let name = format!("s{round}");
                    pool.snapshot("a", &name, b"").unwrap();
                    kept.push(name);
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        object.psync().unwrap();
        drop(object);
        let mut last = 0;
        for name in kept {
            let kept = pool.attach_read(&name).unwrap();
            let words: Vec<u64> = [8, 8 * 6000]
                .map(|at| u64::from_le_bytes(kept.as_slice()[at..at + 8].try_into().unwrap()))
                .into();
            assert!(words[0] == words[1] || words[0] == words[1] + 1, "{name}: {words:?}");
            assert!(words[0] >= last);
            last = words[0];
        }
    });
}

#[test]
fn a_heap_grows_beside_its_snapshots() {
    everywhere(|world| {
        let pool = world.format();
        let mut heap = pool.heap("list", 100_000).unwrap();
        let mut expected = 0;
        for round in 0..6_u64 {
            let list = heap.root_or_default::<PVec<u64>>("numbers").unwrap();
            assert_eq!(list.len() as u64, expected);
            list.extend(expected..expected + 4_000);
            expected += 4_000;
            if round == 3 {
                pool.create("wall", 4096).unwrap();
            }
            heap.psync().unwrap();
            pool.snapshot("list", &format!("s{round}"), b"").unwrap();
        }
        drop(heap);
        let shows = |name: &str, len: u64| {
            let mut heap = pool.heap(name, 0).unwrap();
            let list = heap.root_or_default::<PVec<u64>>("numbers").unwrap();
            assert!(list.iter().copied().eq(0..len), "{name}");
        };
        shows("list", expected);
        for round in 0..6_u64 {
            pool.create_from(&format!("s{round}"), "then", b"", &indelible::CreateOptions::new(0)).unwrap();
            shows("then", (round + 1) * 4_000);
            pool.destroy("then").unwrap();
        }
    });
}

fn put(object: &mut Object, pages: Range<usize>, at: usize, value: u8) {
    pages.for_each(|page| object.range_mut(page * PAGE + at..page * PAGE + at + 1).fill(value));
    object.psync().unwrap();
}

fn fill(pool: &Pool) {
    loop {
        let info = pool.info().unwrap();
        if info.largest_free < 64 * PAGE as u64 {
            return;
        }
        let size = info.largest_free - 16 * PAGE as u64;
        let mut filler = pool.create_attached(&format!("filler {}", info.objects), size).unwrap();
        filler.as_mut_slice().fill(0x55);
        filler.psync().unwrap();
    }
}

/// Snapshots come and go, their space is reused, and the object may grow.
#[test]
fn pages_that_a_writer_has_not_touched_stay() {
    const PAGES: usize = 200;
    let cases = [(true, true), (false, false), (true, false), (false, true)];
    for (shares, grows) in cases.into_iter().take(4 / sparse(2)) {
        everywhere(|world| {
            let pool = world.format();
            pool.create("a", (PAGES * PAGE) as u64).unwrap();
            let mut a = pool.attach("a").unwrap();
            put(&mut a, 0..PAGES, 0, 1);
            if shares {
                pool.snapshot("a", "first", b"").unwrap();
                put(&mut a, PAGES / 2..PAGES * 3 / 4, 0, 2);
                pool.snapshot("a", "second", b"").unwrap();
            }
            drop(a);
            let mut a = pool.attach("a").unwrap();
            if shares {
                ["first", "second"].iter().for_each(|name| pool.destroy(name).unwrap());
            }
            for round in 0..6 {
                put(&mut a, 0..PAGES / 4, 1, round);
                if grows && round == 2 {
                    a.grow((2 * PAGES * PAGE) as u64).unwrap();
                }
                pool.snapshot("a", "s", b"").unwrap();
                pool.destroy("s").unwrap();
            }
            pool.collect(&mut |_, _| {}).unwrap();
            fill(&pool);
            let expected = |page| match page {
                page if page >= PAGES => 0,
                page if shares && (PAGES / 2..PAGES * 3 / 4).contains(&page) => 2,
                _ => 1,
            };
            let wrong =
                (0..a.len() / PAGE).filter(|page| a.as_slice()[page * PAGE] != expected(*page)).count();
            assert_eq!(wrong, 0, "pages are wrong; shares: {shares}, grows: {grows}");
        });
    }
}

#[test]
fn a_writer_goes_back_to_a_psync_that_others_have_moved() {
    const PAGES: usize = 100;
    everywhere(|world| {
        let pool = world.format();
        pool.create("a", (PAGES * PAGE) as u64).unwrap();
        let mut a = pool.attach("a").unwrap();
        put(&mut a, 0..PAGES, 0, 1);
        pool.snapshot("a", "first", b"").unwrap();
        put(&mut a, 0..PAGES / 2, 0, 2);
        pool.snapshot("a", "second", b"").unwrap();
        let kept = a.as_slice().to_vec();
        assert!(!a.is_unsynced().unwrap());
        for snapshot in ["first", "second"] {
            pool.destroy(snapshot).unwrap();
        }
        pool.collect(&mut |_, _| {}).unwrap();
        fill(&pool);
        assert!(world.ground == Ground::Simulated || !a.is_unsynced().unwrap());
        a.as_mut_slice().fill(9);
        assert!(a.is_unsynced().unwrap());
        a.revert().unwrap();
        assert!(a.as_slice() == kept);
        put(&mut a, 3..4, 1, 3);
        a.detach().unwrap();
        let mut expected = kept;
        expected[3 * PAGE + 1] = 3;
        assert!(pool.attach_read("a").unwrap().as_slice() == expected);
    });
}
