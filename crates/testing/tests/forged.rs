use indelible_store::error::StoreError;
use indelible_store::format::node::Node;
use indelible_store::format::root::{HEIGHT, Root, TREES, TreeId};
use indelible_store::format::{DATA, PAGE, TABLE_ROOT};
use indelible_store::medium::read_struct;
use indelible_store::store::Store;
use indelible_testing::hostile::pool::{Pool, pools};
use indelible_testing::hostile::{Image, TARGETS, anatomy, edit};
use indelible_testing::pool::process;
use std::sync::Arc;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

fn use_all(image: &Image) {
    let open = || Store::open(Arc::new(image.copy()), process(5)).unwrap();
    let store = open();
    let _ = store.info();
    let _ = store.lanes();
    let _ = store.entries().and_then(|all| store.statuses(&all, None, |_, _| ()).map(drop));
    let _ = store.list((0, 0), 100);
    for name in ["a", "b", "absent"] {
        let _ = open().stat(name);
        let _ = open().attach_reader(name, Default::default());
        let _ = open().attach_writer(name, Default::default());
        let _ = open().destroy(name, Default::default());
        let _ = open().resize(name, Default::default(), 1 << 20);
        let _ =
            open().create(name, &indelible_store::table::CreateOptions { size: 5000, ..Default::default() });
    }
    let _ = Store::check(Arc::new(image.copy()), &mut |_, _| {});
    let _ = Store::repair(Arc::new(image.copy()), &Default::default(), &mut |_, _| {});
}

fn current(pool: &Pool) -> (Image, u64) {
    let image = pool.current();
    let seed = anatomy::seed(&image);
    anatomy::void_table_lane(&image, seed);
    (image, seed)
}

/// An image panics past its bound; there are 168 ways at each of 16 levels.
#[test]
fn a_tree_whose_nodes_all_lead_to_one_is_walked_once() {
    for pool in pools() {
        for tree in TREES {
            for (height, slots) in [(HEIGHT, 168), (HEIGHT, 2), (3, 168), (1, 1)] {
                let (image, seed) = current(pool);
                edit::tower(&image, seed, tree, height, slots, DATA);
                use_all(&image);
            }
        }
    }
}

#[test]
fn the_highest_numbers_there_are_overflow_nothing() {
    for pool in pools() {
        let (image, seed) = current(pool);
        for (tree, at) in TREES.into_iter().flat_map(|tree| [(tree, 0), (tree, 1), (tree, 2)]) {
            let forged = image.copy();
            let root: Root = read_struct(&forged, TABLE_ROOT).unwrap();
            let offset = root.trees[tree as usize].node.get();
            if offset == 0 {
                continue;
            }
            let mut node: Node = read_struct(&forged, offset).unwrap();
            let last = node.len() - 1;
            let slot = &mut node.slots[last];
            *[&mut slot.high, &mut slot.low, &mut slot.value][at] = U64::new(u64::MAX);
            node.seal(seed);
            forged.put(offset, node.as_bytes());
            use_all(&forged);
        }
        type Change = fn(&mut Root);
        let changes: [Change; 7] = [
            |root| root.free_page_count = U64::new(u64::MAX),
            |root| root.objects = U64::new(u64::MAX),
            |root| root.next_binding = U64::new(u64::MAX),
            |root| root.trees.iter_mut().for_each(|tree| tree.count = U64::new(u64::MAX)),
            |root| root.free_page = U64::new(0x1000),
            |root| root.free_slot = U64::new(u64::MAX),
            |root| (root.chunk_next, root.chunk_end) = (U64::new(0), U64::new(100 * PAGE)),
        ];
        for change in changes {
            let forged = image.copy();
            let mut root: Root = read_struct(&forged, TABLE_ROOT).unwrap();
            change(&mut root);
            forged.put(TABLE_ROOT, root.sealed(seed).as_bytes());
            use_all(&forged);
        }
    }
}

/// The search restarted from the first key for ever.
#[test]
fn a_search_ends_at_the_last_key() {
    let pool = pools().iter().find(|pool| pool.name == "many").unwrap();
    let (image, seed) = current(pool);
    let mut root: Root = read_struct(&image, TABLE_ROOT).unwrap();
    let offset = image_end(&image);
    let hash = indelible_store::table::name_hash(seed, "absent");
    let entry = read_struct::<Root>(&image, TABLE_ROOT).unwrap().free_slot.get();
    let used = (DATA..entry).rev().step_by(1024).find(|at| is_entry(&image, seed, at / 1024 * 1024)).unwrap();
    let mut leaf = Node::empty(0, offset);
    leaf.insert(0, indelible_store::format::node::Slot::new((hash, u64::MAX), used / 1024 * 1024));
    leaf.seal(seed);
    image.put(offset, leaf.as_bytes());
    root.trees[TreeId::Names as usize].node = U64::new(offset);
    root.trees[TreeId::Names as usize].height = 1.into();
    image.put(TABLE_ROOT, root.sealed(seed).as_bytes());
    let store = Store::open(Arc::new(image.copy()), process(5)).unwrap();
    let found = store.stat("absent");
    assert!(matches!(found, Err(StoreError::NotFound)), "{found:?}");
    use_all(&image);
}

fn image_end(image: &Image) -> u64 {
    indelible_store::medium::Medium::len(image) - PAGE
}

fn is_entry(image: &Image, seed: u64, offset: u64) -> bool {
    let entry: indelible_store::format::entry::Entry = read_struct(image, offset).unwrap();
    entry.verify(seed, offset, indelible_store::medium::Medium::len(image))
}

#[test]
fn fuzzing_begins_with_towers() {
    let towers = edit::seeds().into_iter().filter(|input| input.len() == 18 && input[3] == 0x80);
    let inputs: Vec<_> = towers.collect();
    assert_eq!(inputs.len(), pools().len() * TREES.len() * 2);
    for input in &inputs {
        for target in
            TARGETS.iter().filter(|target| ["table", "check", "recover", "repair"].contains(&target.name))
        {
            (target.run)(input);
        }
    }
}
