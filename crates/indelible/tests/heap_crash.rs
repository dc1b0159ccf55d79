use crate::support::{self, Ground, World, name_root};
use indelible::{Heap, HeapOptions, Tracking, TypeInfo};
use indelible_testing::Seeded;
use std::collections::BTreeSet;

const LIST: TypeInfo =
    TypeInfo { name: "List", fingerprint: 77, layout: "head: *Node at 0\ncount: u64 at 8\nround: u64 at 16" };
const SIZE: u64 = 8 << 20;

#[repr(C)]
struct List {
    head: *mut Node,
    count: u64,
    round: u64,
}

#[repr(C)]
struct Node {
    next: *mut Node,
    number: u64,
    len: u64,
}

fn byte(number: u64) -> u8 {
    (number * 31 % 251) as u8
}

fn push(heap: &Heap, list: &mut List, number: u64, size: usize) {
    let Ok(block) = heap.malloc(size_of::<Node>() + size) else { return };
    let node = block.cast::<Node>().as_ptr();
    // SAFETY: a new block of that size.
    unsafe {
        node.write(Node { next: list.head, number, len: size as u64 });
        block.as_ptr().add(size_of::<Node>()).write_bytes(byte(number), size);
    }
    list.head = node;
    list.count += 1;
}

fn pop(heap: &Heap, list: &mut List) {
    if list.head.is_null() {
        return;
    }
    let node = list.head;
    // SAFETY: the list's own node.
    unsafe {
        list.head = (*node).next;
        heap.free(node.cast()).unwrap();
    }
    list.count -= 1;
}

fn nodes(list: &List) -> BTreeSet<usize> {
    let mut all = BTreeSet::new();
    let mut node = list.head;
    while !node.is_null() {
        assert!(all.insert(node.addr()), "a ring");
        // SAFETY: the list's own nodes, as the last psync left them.
        unsafe {
            let bytes = std::slice::from_raw_parts(node.cast::<u8>().add(24), (*node).len as usize);
            assert!(bytes.iter().all(|found| *found == byte((*node).number)), "contents changed");
            node = (*node).next;
        }
    }
    all
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn work() {
    let Some(path) = std::env::var_os("WORK_POOL") else { return };
    let options = support::options_of(&std::env::var("WORK_WORLD").unwrap());
    let pool = options.open(path).unwrap();
    let mut heap = Heap::open_with(pool.attach("heap").unwrap(), HeapOptions::new()).unwrap();
    let root = heap.root("list", &LIST).unwrap().address as *mut List;
    // SAFETY: the root's block, known to no other code.
    let list = unsafe { &mut *root };
    let mut random = Seeded::new(list.round + 1);
    loop {
        for _ in 0..random.usize(1..40) {
            let number = random.u64(..1000);
            match random.usize(..20) {
                0..11 => push(&heap, list, number, random.usize(..1500)),
                11 => push(&heap, list, number, random.usize(..200_000)),
                _ => pop(&heap, list),
            }
        }
        list.round += 1;
        heap.psync().unwrap();
        println!("ROUND {}", list.round);
    }
}

#[test]
fn killed_at_any_moment_heap_and_data_agree() {
    for ground in [Ground::Memory, Ground::File] {
        let world = World::new(ground, Tracking::Auto, false);
        let pool = world.format();
        pool.create("heap", SIZE).unwrap();
        let mut heap = Heap::format(pool.attach("heap").unwrap()).unwrap();
        let block = heap.calloc(1, size_of::<List>()).unwrap();
        name_root(&heap, "list", block.as_ptr(), 24, &LIST).unwrap();
        heap.psync().unwrap();
        drop((heap, pool));
        let mut random = Seeded::new(11);
        let mut said = 0;
        for _ in 0..25 {
            said = support::killed_at_work(&world, "heap_crash::work", random.usize(..12)).unwrap_or(said);
            let mut heap = Heap::open(world.open().attach("heap").unwrap()).unwrap();
            let root = heap.root("list", &LIST).unwrap().address;
            // SAFETY: the root's block.
            let list = unsafe { &*(root as *const List) };
            assert!(list.round >= said, "round {said} was said to be durable, {} is there", list.round);
            let mut live = nodes(list);
            assert_eq!(live.len() as u64, list.count);
            live.insert(root);
            let found: BTreeSet<usize> = heap.blocks().map(|block| block.unwrap().address).collect();
            assert_eq!(found, live, "lost or invented blocks");
            assert_eq!(heap.check(), []);
        }
        assert!(said > 50, "only {said} rounds");
    }
}
