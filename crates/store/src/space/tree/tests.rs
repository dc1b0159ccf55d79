use crate::format::node::{Node, Slot};
use crate::format::root::{Root, TREES, TreeId, TreeRoot};
use crate::format::{DATA, PAGE};
use crate::medium::volatile::VolatileMedium;
use crate::space::{PAGES, TableTransaction};
use proptest::prelude::*;
use std::collections::BTreeMap;
use zerocopy::FromZeros;
use zerocopy::little_endian::U64;

const LEN: u64 = 64 << 20;

fn table(medium: &VolatileMedium) -> TableTransaction<'_> {
    of_pool(medium, LEN)
}

fn of_pool(medium: &VolatileMedium, len: u64) -> TableTransaction<'_> {
    let mut root = Root::new_zeroed();
    root.chunk_next = U64::new(DATA);
    root.chunk_end = U64::new(LEN);
    TableTransaction::blank(medium, 7, len, root)
}

fn assert_sound(table: &TableTransaction<'_>, tree: TreeId, model: &BTreeMap<(u64, u64), u64>) {
    let mut leaves = Vec::new();
    table
        .walk(tree, &mut |_, level, slots| {
            assert!(!slots.is_empty());
            if level == 0 {
                leaves.extend(slots.iter().map(|slot| (slot.key(), slot.value.get())));
            }
            Ok(())
        })
        .unwrap();
    assert!(leaves.iter().copied().eq(model.iter().map(|(k, v)| (*k, *v))));
    assert_eq!(table.root.trees[tree as usize].count.get(), model.len() as u64);
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u64, u64),
    Remove(usize),
    Seek(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => (0..5000u64, any::<u64>()).prop_map(|(k, v)| Op::Insert(k, v)),
        3 => any::<usize>().prop_map(Op::Remove),
        1 => (0..5000u64).prop_map(Op::Seek),
    ];
    prop::collection::vec(op, 1..if cfg!(miri) { 30 } else { 3000 })
}

const EXTENTS: usize = if cfg!(miri) { 5 } else { 80 };

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 24 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_a_sorted_map(ops in ops()) {
        let medium = VolatileMedium::new(LEN);
        let mut table = table(&medium);
        let mut model = BTreeMap::new();
        for op in ops {
            match op {
                Op::Insert(k, v) => {
                    table.insert(TreeId::Names, (k, k ^ 1), v).unwrap();
                    model.insert((k, k ^ 1), v);
                }
                Op::Remove(at) => {
                    let key = model.keys().nth(at % model.len().max(1)).copied().unwrap_or((9, 9));
                    prop_assert_eq!(table.remove(TreeId::Names, key).unwrap(), model.remove(&key));
                }
                Op::Seek(k) => {
                    let after = table.at_or_after(TreeId::Names, (k, 0)).unwrap().map(|s| s.key());
                    prop_assert_eq!(after, model.range((k, 0)..).next().map(|(k, _)| *k));
                    let before = table.before(TreeId::Names, (k, 0)).unwrap().map(|s| s.key());
                    prop_assert_eq!(before, model.range(..(k, 0)).next_back().map(|(k, _)| *k));
                }
            }
        }
        assert_sound(&table, TreeId::Names, &model);
    }

    #[test]
    fn free_space_comes_back_whole(sizes in prop::collection::vec(1..200u64, 1..EXTENTS), order in any::<u64>()) {
        let medium = VolatileMedium::new(LEN);
        let total = 1 << 20;
        let mut table = of_pool(&medium, (100 + total) * PAGE);
        PAGES.release(&mut table, 100, total).unwrap();
        let mut held = Vec::new();
        for size in &sizes {
            held.push((PAGES.allocate(&mut table, *size).unwrap(), *size));
        }
        let mut sorted = held.clone();
        sorted.sort_unstable();
        prop_assert!(sorted.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0), "extents overlap");
        let mut state = order;
        while !held.is_empty() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (start, len) = held.swap_remove((state >> 33) as usize % held.len());
            PAGES.release(&mut table, start, len).unwrap();
        }
        prop_assert_eq!(PAGES.largest(&table).unwrap(), total);
        prop_assert_eq!(table.at_or_after(TreeId::FreeByPage, (0, 0)).unwrap().unwrap().key().0, 100);
    }
}

#[test]
#[cfg_attr(miri, ignore = "two levels take 170 keys and many minutes")]
fn a_full_tree_empties_and_returns_its_pages() {
    let (keys, height) = (40_000_u64, 3);
    let medium = VolatileMedium::new(LEN);
    let mut table = table(&medium);
    for key in 0..keys {
        table.insert(TreeId::Ids, (key, 0), key).unwrap();
    }
    assert_eq!(table.root.trees[TreeId::Ids as usize].height.get(), height);
    for key in 0..keys {
        assert_eq!(table.remove(TreeId::Ids, (key, 0)).unwrap(), Some(key));
    }
    let handed_out = (table.root.chunk_next.get() - DATA) / PAGE;
    assert_eq!(table.root.free_page_count.get(), handed_out);
    let empty = TreeRoot::default();
    assert_eq!(table.root.trees[TreeId::Ids as usize].height, empty.height);
    assert_eq!(TREES.len(), table.root.trees.len());
}

#[test]
fn merging_inner_nodes_keeps_every_key_in_reach() {
    let medium = VolatileMedium::new(LEN);
    let mut table = table(&medium);
    let mut node = |level, slots: &[((u64, u64), u64)]| {
        let mut node = Node::empty(level, table.take_page().unwrap());
        slots.iter().enumerate().for_each(|(at, (key, value))| node.insert(at, Slot::new(*key, *value)));
        table.put_node(node).unwrap();
        node.own_offset.get()
    };
    let low = node(0, &[((1, 0), 10), ((2, 0), 20)]);
    let middle = node(0, &[((150, 0), 30), ((160, 0), 35), ((210, 0), 40)]);
    let high = node(0, &[((300, 0), 50)]);
    let left = node(1, &[((0, 0), low)]);
    let right = node(1, &[((200, 0), middle), ((300, 0), high)]);
    let top = node(2, &[((0, 0), left), ((100, 0), right)]);
    table.set_top(TreeId::Names, top, 3);
    table.adjust_count(TreeId::Names, 6);
    assert_eq!(table.get(TreeId::Names, (150, 0)).unwrap(), Some(30));
    assert_eq!(table.remove(TreeId::Names, (2, 0)).unwrap(), Some(20));
    for (key, value) in [(1, 10), (150, 30), (160, 35), (210, 40), (300, 50)] {
        assert_eq!(table.get(TreeId::Names, (key, 0)).unwrap(), Some(value), "key {key}");
    }
}

#[test]
fn claiming_takes_exactly_what_was_asked() {
    let medium = VolatileMedium::new(LEN);
    let mut table = table(&medium);
    PAGES.release(&mut table, 100, 50).unwrap();
    assert!(!PAGES.claim(&mut table, 90, 20).unwrap());
    assert!(!PAGES.claim(&mut table, 140, 20).unwrap());
    assert!(PAGES.claim(&mut table, 110, 10).unwrap());
    assert!(!PAGES.claim(&mut table, 115, 1).unwrap());
    PAGES.release(&mut table, 110, 10).unwrap();
    assert_eq!(PAGES.largest(&table).unwrap(), 50);
    assert!(PAGES.release(&mut table, 120, 5).is_err(), "a double free is refused");
}
