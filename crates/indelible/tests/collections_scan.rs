use indelible::collections::{KeyHash, PHashMap, PHashSet, StableHash};
use indelible::{Heap, Persist, Pool};
use indelible_testing::Seeded;
use std::collections::{HashMap, HashSet};

#[derive(Persist, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
struct Key {
    number: u64,
    hashes: u64,
}

impl StableHash for Key {
    fn stable_hash(&self, hash: &mut KeyHash) {
        hash.number(self.number % self.hashes);
    }
}

fn on_heap(test: impl FnOnce(&mut Heap)) {
    let dir = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    test(&mut pool.heap("heap", 1 << 20).unwrap());
}

fn change(
    map: &mut PHashMap<'_, Key, u64>,
    random: &mut Seeded,
    (hashes, shrinks): (u64, bool),
    present: &mut HashSet<u64>,
) -> bool {
    let key = |number| Key { number, hashes };
    match random.usize(..10) {
        0..=3 => {
            for _ in 0..1 << random.usize(..8) {
                map.insert(key(random.u64(..3000)), 0_u64);
            }
        }
        4..=6 => {
            for _ in 0..1 << random.usize(..6) {
                let number = random.u64(..3000);
                map.remove(&key(number));
                present.remove(&number);
            }
        }
        7 => {
            let number = random.u64(..3000);
            if map.remove(&key(number)).is_some() {
                map.insert(key(number), 1_u64);
                present.remove(&number);
            }
        }
        8 if random.usize(..4) == 0 => {
            let rest = random.u64(..5);
            map.retain(|key, _| key.number % 5 == rest);
            present.retain(|number| number % 5 == rest);
        }
        9 if shrinks && random.usize(..2) == 0 => {
            map.shrink_to_fit();
            return true;
        }
        _ => {}
    }
    false
}

#[test]
fn keys_that_stay_are_met_whatever_happens_between_the_steps() {
    let mut random = Seeded::new(21);
    let (mut walks, mut grown, mut shrunk, mut again) = (0, 0, 0, 0);
    for round in 0..160 {
        on_heap(|heap| {
            let map = heap.root_or_default::<PHashMap<Key, u64>>("map").unwrap();
            let (hashes, shrinks) = ([1, 3, 50, u64::MAX][round % 4], round / 4 % 2 == 0);
            for number in 0..random.u64(..1500) {
                map.insert(Key { number, hashes }, 0_u64);
            }
            let mut present: HashSet<u64> = map.keys().map(|key| key.number).collect();
            let mut met: HashMap<u64, u64> = HashMap::new();
            let (mut cursor, mut smaller) = (0, false);
            for step in 0.. {
                let capacity = map.capacity();
                let count = random.usize(..8);
                cursor = map.scan(cursor, count, |key, _| *met.entry(key.number).or_default() += 1);
                if cursor == 0 {
                    break;
                }
                assert!(step < 1 << 16, "a walk without an end");
                smaller |= change(map, &mut random, (hashes, shrinks), &mut present);
                grown += usize::from(map.capacity() > capacity + 14);
            }
            for number in &present {
                let times = met.get(number).copied().unwrap_or_default();
                assert!(times > 0, "{number} of {} was not met", map.len());
                assert!(smaller || times == 1, "{number} was met {times} times");
                again += usize::from(times > 1);
            }
            walks += usize::from(!present.is_empty());
            shrunk += usize::from(smaller);
        });
    }
    assert!(
        walks > 80 && grown > 30 && (20..=80).contains(&shrunk) && again > 0,
        "{walks} {grown} {shrunk} {again}"
    );
}

#[test]
fn a_step_is_bounded() {
    on_heap(|heap| {
        let set = heap.root_or_default::<PHashSet<u64>>("set").unwrap();
        assert_eq!(set.scan(0, 10, |_| panic!("none")), 0);
        assert_eq!(set.scan(77, 10, |_| panic!("none")), 0);
        set.extend(0..10_000_u64);
        let mut most = 0;
        let (mut cursor, mut steps, mut all) = (0, 0, 0);
        loop {
            let mut met = 0;
            cursor = set.scan(cursor, 100, |_| met += 1);
            (most, steps, all) = (most.max(met), steps + 1, all + met);
            if cursor == 0 {
                break;
            }
        }
        assert!(all == 10_000 && most < 160 && steps > 60, "{all} in {steps} steps of {most}");
        set.retain(|number| *number == 5);
        let (mut cursor, mut steps) = (0, 0);
        loop {
            cursor = set.scan(cursor, 100, |number| assert_eq!(*number, 5));
            steps += 1;
            if cursor == 0 {
                break;
            }
        }
        assert!((5..20).contains(&steps), "{steps} steps through 1,024 groups");
        let mut random = Seeded::new(9);
        for _ in 0..1000 {
            let _ = set.scan(random.u64(..), random.usize(..5), |number| assert_eq!(*number, 5));
        }
    });
}
