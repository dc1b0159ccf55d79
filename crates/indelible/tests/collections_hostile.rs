//! Hostile bytes in collections: an error, a panic that names the damage, or wrong values; never a
//! hang, or an access outside the object.

use crate::support::{Ground, World};
use indelible::collections::{
    HeapRef, PBTreeMap, PBox, PHashMap, PMutex, POption, PString, PVec, PVecDeque, RootTypes,
};
use indelible::{ErrorKind, Heap, Object, Persist, Pool, Tracking};
use indelible_testing::Seeded;
use std::panic::{AssertUnwindSafe, catch_unwind};

const SIZE: u64 = 512 << 10;

#[derive(Persist)]
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq)]
enum Colour {
    Red = 3,
    Green = 4,
}

#[derive(Persist)]
#[repr(u8)]
enum Payload<'h> {
    Numbers(PVec<'h, u64>) = 1,
    Text { text: PString<'h>, shown: bool },
    Again(Option<PBox<'h, Payload<'h>>>),
    Nothing,
}

#[derive(Persist)]
#[repr(C)]
struct Item<'h> {
    name: PString<'h>,
    colour: Colour,
    on: bool,
    sign: char,
    more: POption<PVec<'h, bool>>,
    next: Option<PBox<'h, Item<'h>>>,
    payload: Payload<'h>,
}

#[derive(Persist)]
#[repr(C)]
struct All<'h> {
    items: PVec<'h, Item<'h>>,
    words: PHashMap<'h, PString<'h>, Item<'h>>,
    numbers: PHashMap<'h, u64, u64>,
    ordered: PBTreeMap<'h, u64, PString<'h>>,
    names: PBTreeMap<'h, PString<'h>, Colour>,
    lock: PMutex<'h, PVec<'h, PString<'h>>>,
    ring: PVecDeque<'h, PString<'h>>,
}

fn payload(number: u64, heap: HeapRef<'_>) -> Payload<'_> {
    match number % 4 {
        0 => Payload::Numbers(PVec::from_in([number, 2], heap)),
        1 => Payload::Text { text: PString::from_in("text", heap), shown: true },
        2 => Payload::Again(Some(PBox::new_in(payload(number / 4, heap), heap))),
        _ => Payload::Nothing,
    }
}

fn sample(world: &World) -> Pool {
    let pool = world.format();
    pool.create("heap", SIZE).unwrap();
    let mut heap = Heap::open_or_format(pool.attach("heap").unwrap()).unwrap();
    let all = heap
        .root_or_insert_with::<All, _>("all", |heap| All {
            items: PVec::new(),
            words: PHashMap::new(),
            numbers: PHashMap::new(),
            ordered: PBTreeMap::new(),
            names: PBTreeMap::new(),
            lock: PMutex::new_in(["a", "b"], heap),
            ring: PVecDeque::new(),
        })
        .unwrap();
    let heap_ref = all.items.heap();
    for number in 0..40_u64 {
        let item = |depth| Item {
            name: PString::from_in(&format!("name {number}"), heap_ref),
            colour: Colour::Green,
            on: true,
            sign: 'é',
            more: POption::some(PVec::from_in([true, false], heap_ref)),
            next: depth,
            payload: payload(number, heap_ref),
        };
        let inner = PBox::new_in(item(None), heap_ref);
        all.items.push(item(Some(inner)));
        all.words.insert(format!("word {number}"), item(None));
        all.numbers.insert(number, number);
        all.ordered.insert(number * 7 % 40, "text");
        all.names.insert(format!("{number}"), Colour::Red);
        all.ring.push_back("back");
        all.ring.push_front("front");
    }
    heap.psync().unwrap();
    pool
}

fn look(item: &Item<'_>) -> usize {
    assert!(matches!(item.colour, Colour::Red | Colour::Green));
    let mut seen = item.name.chars().count() + usize::from(item.on) + item.sign.len_utf8();
    seen += item.more.as_ref().map_or(0, |more| more.iter().filter(|bit| **bit).count());
    seen += match &item.payload {
        Payload::Numbers(numbers) => numbers.iter().filter(|number| **number == 2).count(),
        Payload::Text { text, shown } => text.chars().count() + usize::from(*shown),
        Payload::Again(again) => usize::from(again.is_some()),
        Payload::Nothing => 0,
    };
    // A damaged list may be a ring.
    let (mut next, mut left) = (item.next.as_ref(), 100);
    while let Some(inner) = next {
        seen += inner.name.len();
        left -= 1;
        next = inner.next.as_ref().filter(|_| left > 0);
    }
    seen
}

fn use_it(heap: &mut Heap) -> bool {
    let mut found = false;
    let mut attempt = |work: &mut dyn FnMut()| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
            let text = panic
                .downcast::<String>()
                .map(|text| *text)
                .or_else(|panic| panic.downcast::<&str>().map(|text| (*text).to_owned()))
                .expect("a text");
            let known =
                ["damaged", "no room", "range that ends", "heap cannot be stored", "is not where its order"];
            assert!(known.iter().any(|known| text.contains(known)), "{text}");
            found = true;
        }
    };
    let Ok(all) = heap.root_mut::<All>("all") else { return true };
    attempt(&mut || assert!(all.items.iter().map(look).sum::<usize>() < 1 << 40));
    attempt(&mut || assert!(all.items.iter_mut().rev().map(|item| look(item)).max() < Some(1 << 40)));
    attempt(&mut || assert!(all.words.values().map(look).sum::<usize>() < 1 << 40));
    attempt(&mut || assert!((0..40).filter_map(|n| all.words.get(&format!("word {n}"))).count() <= 40));
    attempt(&mut || assert!(all.numbers.iter().count() <= 1 << 20));
    attempt(&mut || {
        assert!((0..60_u64).filter_map(|number| all.numbers.remove(&(number * 3))).count() <= 60)
    });
    attempt(&mut || (0..200_u64).for_each(|number| drop(all.numbers.try_insert(number, 1_u64))));
    attempt(&mut || {
        assert!(all.ordered.values().rev().map(|text| text.chars().count()).max() < Some(1 << 30))
    });
    attempt(&mut || assert!(all.ordered.range::<u64>(5..30).count() < 1 << 30));
    attempt(&mut || (0..40_u64).for_each(|number| drop(all.ordered.remove(&(number * 3)))));
    attempt(&mut || (0..200_u64).for_each(|number| drop(all.ordered.try_insert(number, "new"))));
    attempt(&mut || all.names.retain(|name, colour| name.len() == 1 && *colour == Colour::Red));
    attempt(&mut || drop(all.names.pop_first()));
    attempt(&mut || all.lock.lock().push("c"));
    attempt(&mut || assert!(all.ring.iter().map(|text| text.chars().count()).max() < Some(1 << 30)));
    attempt(&mut || (0..20).for_each(|_| drop((all.ring.pop_back(), all.ring.pop_front()))));
    attempt(&mut || (0..100).for_each(|_| drop(all.ring.try_push_front("new"))));
    attempt(&mut || drop((all.ring.try_insert(9, "new"), all.ring.remove(90))));
    attempt(&mut || all.ring.retain(|text| text.len() == 3));
    attempt(&mut || all.ring.truncate(3));
    attempt(&mut || all.items.truncate(20));
    attempt(&mut || assert!(all.items.pop().map(|item| look(&item)) < Some(1 << 40)));
    attempt(&mut || all.words.clear());
    attempt(&mut || all.names.clear());
    attempt(&mut || heap.drop_root::<All>("all").unwrap_or(()));
    found
}

fn trusted(object: Object) -> Heap {
    let mut heap = Heap::open(object).unwrap();
    // SAFETY: none. SAFETY.md lists the possible effects of damage; here they are seen not to be
    // worse.
    unsafe { heap.trust() };
    heap
}

fn data(pool: &Pool) -> Vec<usize> {
    let heap = indelible::ReadHeap::open(pool.attach_read("heap").unwrap()).unwrap();
    let base = heap.object().as_ptr().addr();
    heap.blocks()
        .flat_map(|block| {
            let block = block.unwrap();
            block.address - base..block.address - base + block.size
        })
        .collect()
}

#[test]
fn every_word_may_be_wrong() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = sample(&world);
    let data: Vec<usize> = data(&pool).into_iter().filter(|at| at % 8 == 0).collect();
    let base = pool.attach_read("heap").unwrap().as_ptr().addr() as u64;
    let mut random = Seeded::new(5);
    let mut found = 0;
    for round in 0..4_000 {
        let mut object = pool.attach("heap").unwrap();
        for _ in 0..random.usize(1..4) {
            let at = data[random.usize(..data.len())];
            let word = &mut object.as_mut_slice()[at..at + 8];
            let old = u64::from_le_bytes(word.try_into().unwrap());
            let new = match random.usize(..7) {
                0 => random.u64(..),
                1 => u64::MAX,
                2 => old ^ 1 << random.u64(..64),
                3 => base + random.u64(..SIZE),
                4 => base + random.u64(..SIZE) / 16 * 16,
                5 => base + data[random.usize(..data.len())] as u64,
                _ => random.u64(..300),
            };
            word.copy_from_slice(&new.to_le_bytes());
        }
        let mut heap = trusted(object);
        found += usize::from(use_it(&mut heap));
        assert!(round < 50 || found > 5, "damage is not found");
    }
    assert!(found > 400, "damage was found {found} times only");
    assert!(!use_it(&mut Heap::open(pool.attach("heap").unwrap()).unwrap()), "the sample itself is sound");
}

#[test]
fn damage_of_each_kind_is_found() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = sample(&world);
    let read = pool.attach_read("heap").unwrap();
    let base = read.as_ptr().addr();
    let heap = indelible::ReadHeap::open(read).unwrap();
    let root = heap.root_any("all").unwrap().address - base;
    drop(heap);
    // The root's vector: pointer, capacity, length; the table behind it; the trees; the box of the
    // lock; the ring.
    let end = base as u64 + SIZE;
    let cases: [(usize, u64); 18] = [
        (0, end - 8),
        (0, base as u64 + 1),
        (0, 0x1000),
        (8, 1 << 60),
        (16, 1 << 40),
        (24, end),
        (32, 48),
        (32, 8),
        (32, 1 << 62),
        (40, 1 << 30),
        (104, 17),
        (104, 0),
        (112, 99),
        (120, 0),
        (160, 8),
        (184, 1 << 40),
        (192, 1 << 40),
        (176, 0),
    ];
    for (at, value) in cases {
        let mut object = pool.attach("heap").unwrap();
        object.as_mut_slice()[root + at..][..8].copy_from_slice(&value.to_le_bytes());
        let mut heap = trusted(object);
        let error =
            heap.root_mut::<All>("all").err().unwrap_or_else(|| panic!("{at}: {value:#x} is not found"));
        assert_eq!(error.kind(), ErrorKind::Damaged, "{at}: {error}");
    }
}

#[test]
fn safe_code_does_not_corrupt_a_verified_heap() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = sample(&world);
    let types = RootTypes::new().root::<All>("all");
    let words: Vec<usize> = data(&pool).into_iter().filter(|at| at % 8 == 0).collect();
    let read = pool.attach_read("heap").unwrap();
    let base = read.as_ptr().addr() as u64;
    let is_address = |at: &usize| {
        let word = u64::from_le_bytes(read.as_slice()[*at..*at + 8].try_into().unwrap());
        (base..base + SIZE).contains(&word)
    };
    let owners: Vec<usize> = words.iter().copied().filter(is_address).collect();
    let targets: Vec<u64> = owners
        .iter()
        .map(|at| u64::from_le_bytes(read.as_slice()[*at..*at + 8].try_into().unwrap()))
        .collect();
    drop(read);
    assert!(owners.len() > 200, "only {} owners", owners.len());
    let mut random = Seeded::new(6);
    let (mut passed, mut shared) = (0, 0);
    for _ in 0..1_500 {
        let mut object = pool.attach("heap").unwrap();
        match random.usize(..4) {
            0 | 1 => {
                let owner = owners[random.usize(..owners.len())];
                let target = targets[random.usize(..targets.len())];
                object.as_mut_slice()[owner..owner + 8].copy_from_slice(&target.to_le_bytes());
            }
            2 => {
                let owner = owners[random.usize(..owners.len())];
                let target = base + (owner as u64).saturating_sub(random.u64(..4) * 16) / 16 * 16;
                object.as_mut_slice()[owner..owner + 8].copy_from_slice(&target.to_le_bytes());
            }
            _ => {
                let at = random.usize(..SIZE as usize / 8) * 8;
                object.as_mut_slice()[at] ^= 1 << random.usize(..8);
            }
        }
        let Ok(mut heap) = Heap::open(object) else { continue };
        if heap.verify(&types).is_err() {
            shared +=
                usize::from(heap.check_roots(&types).iter().any(|found| found.what.contains("two owners")));
            assert!(heap.root_mut::<All>("all").is_err());
            continue;
        }
        passed += 1;
        use_it(&mut heap);
        assert_eq!(heap.check_roots(&types), [], "corrupted by what was let pass");
    }
    assert!(passed > 50 && shared > 200, "{passed} passed, {shared} had two owners");
}
