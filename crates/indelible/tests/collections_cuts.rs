use crate::support::{Ground, World};
use indelible::collections::{Entry, OrderedEntry, PBTreeMap, PHashMap, PMutex, PVec};
use indelible::{Heap, Persist, Tracking};
use std::panic::{AssertUnwindSafe, catch_unwind};

type Value = [u64; 512];

const KEYS: u64 = 64;

#[derive(Persist)]
#[repr(C)]
struct All<'h> {
    hashed: PHashMap<'h, u64, Value>,
    ordered: PBTreeMap<'h, u64, Value>,
    listed: PVec<'h, Value>,
}

type Shared<'h> = PMutex<'h, All<'h>>;

fn of(number: u64) -> Value {
    [number; 512]
}

fn compared(heap: &Heap, change: impl FnOnce(&mut All<'_>)) -> u64 {
    let all = heap.root_ref::<Shared>("all").unwrap();
    change(&mut all.lock());
    heap.psync_cut().unwrap();
    let before = heap.psync_stats().pages_compared;
    all.lock().hashed.insert(0, of(7));
    heap.psync_cut().unwrap();
    heap.psync_stats().pages_compared - before
}

#[test]
fn a_cut_does_not_look_again_at_values_whose_change_is_over() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let mut heap = world.format().heap("heap", 4 << 20).unwrap();
    heap.root_or_insert_with::<Shared, _>("all", |place| {
        let mut all = All {
            hashed: PHashMap::new_in(place),
            ordered: PBTreeMap::new_in(place),
            listed: PVec::new_in(place),
        };
        for key in 0..KEYS {
            all.hashed.insert(key, of(key));
            all.ordered.insert(key, of(key));
            all.listed.push(of(key));
        }
        PMutex::new_in(all, place)
    })
    .unwrap();
    heap.psync().unwrap();
    type Change = fn(&mut All<'_>);
    let changes: [(&str, Change); 11] = [
        ("insert", |all| (0..KEYS).for_each(|key| _ = all.hashed.insert(key, of(key + 1)))),
        ("entry, insert", |all| {
            for key in 0..KEYS {
                if let Entry::Occupied(mut entry) = all.hashed.entry(key) {
                    entry.insert(of(key + 2));
                }
            }
        }),
        ("and_modify", |all| {
            (0..KEYS).for_each(|key| drop(all.hashed.entry(key).and_modify(|value| value[3] += 1)));
        }),
        ("update", |all| (0..KEYS).for_each(|key| _ = all.hashed.update(&key, |value| value[4] += 1))),
        ("retain", |all| {
            all.hashed.retain(|_, value| {
                value[5] += 1;
                true
            })
        }),
        ("ordered insert", |all| (0..KEYS).for_each(|key| _ = all.ordered.insert(key, of(key + 1)))),
        ("ordered entry, insert", |all| {
            for key in 0..KEYS {
                if let OrderedEntry::Occupied(mut entry) = all.ordered.entry(key) {
                    entry.insert(of(key + 2));
                }
            }
        }),
        ("ordered and_modify", |all| {
            (0..KEYS).for_each(|key| drop(all.ordered.entry(key).and_modify(|value| value[3] += 1)));
        }),
        ("ordered retain", |all| {
            all.ordered.retain(|_, value| {
                value[5] += 1;
                true
            })
        }),
        ("vector retain", |all| {
            all.listed.retain(|value| {
                value[6] += 1;
                true
            })
        }),
        ("dedup_by", |all| {
            all.listed.dedup_by(|this, before| {
                this[7] += 1;
                before[8] += 1;
                false
            })
        }),
    ];
    let panics = |all: &mut All<'_>| {
        let change = |value: &mut Value| {
            value[10] = 77;
            panic!("on purpose");
        };
        let done = catch_unwind(AssertUnwindSafe(|| all.hashed.update(&5, change)));
        assert!(done.is_err());
    };
    assert!(compared(&heap, panics) < KEYS / 4);
    for (what, change) in changes {
        let pages = compared(&heap, change);
        assert!(pages < KEYS / 4, "after {what} a cut with one change compares {pages} pages");
    }
    let pages = compared(&heap, |all| {
        (0..KEYS).for_each(|key| all.hashed.get_mut(&key).unwrap()[9] += 1);
    });
    assert!(pages >= KEYS, "only {pages} of what is borrowed");
    let (hashed, listed) = {
        let all = heap.root_ref::<Shared>("all").unwrap().lock();
        (all.hashed[&5], all.listed[5])
    };
    drop(heap);
    let heap = Heap::open(world.open().attach("heap").unwrap()).unwrap();
    let all = heap.root_ref::<Shared>("all").unwrap().lock();
    assert_eq!((all.hashed[&5], all.listed[5]), (hashed, listed), "a change was lost");
}
