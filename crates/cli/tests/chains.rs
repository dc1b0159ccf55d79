//! `pmo heap` and `pmo types` find damage in chains of extensions.

use crate::common::Rig;
use indelible::collections::{PVec, RootTypes};
use indelible::retention::{Extensions, extendible};
use indelible::{Heap, Object, Persist, Pool};

#[extendible]
#[derive(Persist)]
#[repr(C)]
struct Item<'h> {
    count: u64,
    #[extension(1)]
    price: i64,
    #[extension(2)]
    weight: i64,
}

type Items<'h> = PVec<'h, Item<'h>>;

fn word(object: &Object, at: usize) -> usize {
    usize::from_le_bytes(object.as_slice()[at..at + 8].try_into().unwrap())
}

fn made(rig: &Rig) -> (Object, usize, [[usize; 2]; 2]) {
    let pool = Pool::open(&rig.pool).unwrap();
    let mut heap = Heap::format(pool.create_attached("words", 1 << 20).unwrap()).unwrap();
    let items = heap.root_or_default::<Items<'_>>("items").unwrap();
    for count in [1, 2] {
        items.push(Item { count, extensions: Extensions::new() });
        items[count as usize - 1].extend().unwrap();
    }
    let links = [0, 1].map(|item| std::ptr::from_ref(&items[item].extensions).addr());
    let object = heap.into_object();
    let base = object.as_ptr().addr();
    let chains = links.map(|link| {
        let first = word(&object, link - base) - base;
        [first, word(&object, first) - base]
    });
    (object, base, chains)
}

fn planned(rig: &Rig, types: &RootTypes<'_>) -> String {
    let file = rig.path("types.json");
    std::fs::write(&file, types.to_json()).unwrap();
    rig.pmo(["migrate", "--plan"], ["words", "--to", file.to_str().unwrap()]).fine().out
}

fn found(finding: &str, damage: impl Fn(usize, [[usize; 2]; 2]) -> (usize, usize)) {
    let rig = Rig::new();
    let (mut object, base, chains) = made(&rig);
    let (at, value) = damage(base, chains);
    object.range_mut(at..at + 8).copy_from_slice(&value.to_le_bytes());
    object.psync().unwrap();
    object.detach().unwrap();
    for what in ["check", "audit"] {
        let run = rig.pmo(["heap", what], ["words"]);
        assert_eq!((run.code, &*run.err), (Some(3), ""), "{run:?}");
        assert!(run.out.contains("].extensions: ") && run.out.contains(finding), "{finding:?}: {run:?}");
    }
    let run = rig.pmo(["heap", "leaks"], ["words"]);
    assert_eq!((run.code, &*run.err), (Some(3), ""), "{run:?}");
    assert!(
        run.out.contains("so that the figures for leaks are not to be relied on"),
        "{finding:?}: {run:?}"
    );
    whole_types(&rig);
    let plan = planned(&rig, &RootTypes::new().root::<PVec<'_, u64>>("items"));
    let refused = plan.lines().find_map(|line| line.strip_prefix("  a reset is refused: "));
    assert!(refused.is_some_and(|why| why.contains(finding)), "{finding:?}: {plan}");
}

fn whole_types(rig: &Rig) {
    let run = rig.pmo(["types"], ["words"]).fine();
    assert!(run.out.contains("extensions: Extensions at 8, size 8"), "{run:?}");
    let run = rig.pmo(["heap", "roots"], ["words"]).fine();
    assert!(run.out.starts_with("items: PVec<Item>, 24 bytes at "), "{run:?}");
    assert_eq!(planned(rig, &RootTypes::new().root::<Items<'_>>("items")), "items: PVec<Item>: the same\n");
}

#[test]
fn damaged_chains_are_found_by_their_names() {
    let owners = "a block has two owners";
    found(owners, |base, [[first, _], _]| (first, base + first));
    found(owners, |base, [[first, second], _]| (second, base + first));
    found(owners, |base, [[first, _], [_, last]]| (first, base + last));
    found("no value of its type", |_, [[first, _], _]| (first, 1 << 60));
    found("another size", |_, [[first, _], _]| (first + 8, usize::MAX - 7));
    found("smaller than its value", |_, [[_, second], _]| (second + 8, 4000));
}

#[test]
fn a_chain_without_an_end_is_found() {
    let rig = Rig::new();
    let (object, base, [[_, last], _]) = made(&rig);
    let mut heap = Heap::open(object).unwrap();
    let size = heap.usable_size(std::ptr::without_provenance(base + last)).unwrap();
    let more: Vec<usize> = (0..100).map(|_| heap.calloc(1, size).unwrap().as_ptr().addr()).collect();
    heap.psync().unwrap();
    let mut object = heap.into_object();
    let links = std::iter::once(base + last).chain(more.iter().copied());
    for (block, next) in links.zip(&more) {
        let words = [*next, 24, 0].map(usize::to_le_bytes).concat();
        let at = block - base;
        object.range_mut(at..at + 8).copy_from_slice(&words[..8]);
        if block != base + last {
            object.range_mut(at + 8..at + 24).copy_from_slice(&words[8..]);
        }
    }
    object.psync().unwrap();
    object.detach().unwrap();
    for what in ["check", "audit"] {
        let run = rig.pmo(["heap", what], ["words"]);
        assert_eq!(run.code, Some(3), "{run:?}");
        assert!(run.out.contains("items[0].extensions: more extensions than a value can have"), "{run:?}");
    }
    let run = rig.pmo(["heap", "leaks"], ["words"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.out.contains("so that the figures for leaks are not to be relied on"), "{run:?}");
    whole_types(&rig);
}

#[test]
fn extensions_that_no_program_here_knows_are_clean() {
    let rig = Rig::new();
    let (mut object, _, [[first, _], _]) = made(&rig);
    object.range_mut(first + 16..first + 24).fill(0xa5);
    object.psync().unwrap();
    object.detach().unwrap();
    for what in ["check", "audit", "leaks"] {
        let run = rig.pmo(["heap", what], ["words"]).fine();
        assert!(run.out.starts_with("object \"words\": 6 blocks in use, 6 owned by "), "{run:?}");
    }
    whole_types(&rig);
    let plan = planned(&rig, &RootTypes::new().root::<PVec<'_, u64>>("items"));
    assert!(plan.contains("\n  a reset frees 6 blocks, "), "{plan}");
}
