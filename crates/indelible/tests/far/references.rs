use crate::graph::{Node, free, list, made};
use crate::support::{Ground, World, everywhere};
use indelible::collections::{PBox, PVec};
use indelible::{ErrorKind, Far, Heap, Persist, Plain, Pool, ReadHeap, Relative, Rights, Tracking};

#[derive(Plain, Persist)]
#[repr(C)]
struct Raw {
    next: *mut Raw,
}

#[derive(Persist)]
#[repr(C)]
struct Mixed<'h> {
    numbers: PVec<'h, u64>,
    #[persist(target)]
    node: Far<Node>,
    boxed: PBox<'h, Far<u64>>,
    value: u64,
}

#[test]
fn pointers_are_found_with_the_way_to_them() {
    everywhere(|world| {
        let pool = world.format();
        let (mut space, ids) = made(&[&pool], &["a", "b"]);
        list(&mut space, &ids, 3);
        let mut heap = space.remove(&ids[0]).unwrap();
        let found = heap.far_pointers().unwrap();
        assert_eq!(
            found.iter().map(|found| (&*found.path, found.to.index())).collect::<Vec<_>>(),
            [("first.next", 1)]
        );
        let audit = heap.audit().unwrap();
        assert_eq!((&audit.findings[..], &audit.pointers[..]), (&[][..], &[][..]));
        heap.psync().unwrap();
        drop(heap);
        let heap = ReadHeap::open(pool.attach_read("a").unwrap()).unwrap();
        assert_eq!(heap.far_pointers().unwrap(), found);
    });
}

#[test]
fn an_audit_follows_pointers_within_the_object() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let pool = world.format();
    let (mut space, ids) = made(&[&pool], &["a"]);
    list(&mut space, &ids, 5);
    let mut heap = space.remove(&ids[0]).unwrap();
    let audit = heap.audit().unwrap();
    assert_eq!((audit.blocks, audit.leaks.len(), audit.pointers.len()), (6, 0, 0));
    assert_eq!(heap.far_pointers().unwrap().len(), 5);
    heap.root_mut::<Node>("first").unwrap().next = Far::own(900_000).unwrap();
    let audit = heap.audit().unwrap();
    assert_eq!(audit.leaks.len(), 5);
    assert_eq!((&*audit.pointers[0].path, audit.pointers[0].inside), ("first.next", true));
}

#[derive(Plain, Persist, Clone, Copy)]
#[repr(C)]
struct Numbers([u64; 2]);

#[derive(Plain, Persist, Clone, Copy)]
#[repr(C)]
struct Link {
    number: u64,
    next: Far<u64>,
}

#[derive(Plain, Persist, Clone, Copy)]
#[repr(C)]
struct Two {
    #[persist(target)]
    numbers: Far<Numbers>,
    #[persist(target)]
    link: Far<Link>,
    #[persist(target)]
    numbers_again: Far<Numbers>,
}

pub fn two_types(pool: &Pool, name: &str, pointer: Far<u64>, first: bool) -> Heap {
    let mut heap = Heap::format(pool.create_attached_with(name, &free(1 << 20)).unwrap()).unwrap();
    let block = heap.calloc(1, size_of::<Link>()).unwrap().as_ptr().cast::<Link>();
    // SAFETY: a block of this function, as large as the value.
    unsafe { block.write(Link { number: 3, next: pointer }) };
    let offset = block.addr() as u64 - pool.stat(name).unwrap().address;
    let numbers = [Far::own(offset).unwrap(), Far::null()];
    let two = Two {
        numbers: numbers[usize::from(first)],
        link: Far::own(offset).unwrap(),
        numbers_again: numbers[usize::from(!first)],
    };
    heap.root_or_insert_with::<Two, _>("two", |_| two).unwrap();
    heap
}

#[test]
pub fn a_pointer_behind_a_second_type_is_judged() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = world.format();
    for first in [false, true] {
        let name = format!("first: {first}");
        let mut heap = two_types(&pool, &name, Far::own(1 << 30).unwrap(), first);
        let paths: Vec<String> = heap.far_pointers().unwrap().into_iter().map(|found| found.path).collect();
        assert!(paths.contains(&"two.link.next".into()), "{name}: {paths:?}");
        let audit = heap.audit().unwrap();
        assert_eq!(audit.pointers.iter().map(|lost| &lost.path[..]).collect::<Vec<_>>(), ["two.link.next"]);
        heap.psync().unwrap();
        drop(heap);
        let mut space = indelible::Space::new();
        space.add(&pool);
        let dangling = space.dangling(&pool.stat(&name).unwrap().id).unwrap();
        assert_eq!(dangling.len(), 1, "{name}: {dangling:?}");
        assert_eq!(dangling[0].pointer.as_ref().unwrap().path, "two.link.next");
    }
}

#[test]
fn a_pointer_to_an_owned_block_is_followed_as_its_own_type() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = world.format();
    pool.create_with("o", &free(1 << 20)).unwrap();
    let mut heap = Heap::format(pool.attach("o").unwrap()).unwrap();
    let far = Far::<u64>::new(9, 8).unwrap();
    let numbers = heap.root_or_insert_with::<Numbers, _>("numbers", |_| Numbers([4, far.word()])).unwrap();
    let at = std::ptr::from_mut(numbers).addr() as u64;
    let to = Far::own(at - pool.stat("o").unwrap().address).unwrap();
    heap.root_or_insert_with::<Two, _>("two", |_| Two {
        numbers: Far::null(),
        link: to,
        numbers_again: Far::null(),
    })
    .unwrap();
    let found = heap.far_pointers().unwrap();
    assert!(found.iter().any(|found| found.path == "two.link.next" && found.to == far.cast()), "{found:?}");
}

#[test]
fn position_independent_objects_take_no_type_with_addresses() {
    everywhere(|world| {
        let pool = world.format();
        pool.create_with("free", &free(1 << 20)).unwrap();
        let mut heap = Heap::format(pool.attach("free").unwrap()).unwrap();
        let refused = heap.root_or_default::<PVec<u64>>("list").err().unwrap();
        assert!(
            refused.kind() == ErrorKind::Unsuitable && refused.to_string().contains("PVec<u64>"),
            "{refused}"
        );
        let refused =
            heap.root_or_insert_with::<Raw, _>("raw", |_| Raw { next: std::ptr::null_mut() }).err().unwrap();
        assert!(
            refused.kind() == ErrorKind::Unsuitable && refused.to_string().contains("*mut Raw"),
            "{refused}"
        );
        heap.root_or_insert_with::<Node, _>("node", |_| Node::new(1, Far::null())).unwrap();
        heap.root_or_default::<Relative<u64>>("near").unwrap();
        assert_eq!(heap.roots().unwrap().len(), 2);
        assert_eq!(heap.check(), []);
        heap.psync().unwrap();
        drop(heap);
        pool.create("fixed", 1 << 20).unwrap();
        let mut heap = Heap::format(pool.attach("fixed").unwrap()).unwrap();
        heap.root_or_default::<PVec<u64>>("list").unwrap().push(7);
        heap.psync().unwrap();
        drop(heap);
        pool.set_position_independent("fixed", b"", true).unwrap();
        let mut heap = Heap::open(pool.attach("fixed").unwrap()).unwrap();
        assert_eq!(heap.root_mut::<PVec<u64>>("list").err().unwrap().kind(), ErrorKind::Unsuitable);
        let mut space = indelible::Space::new();
        let id = space.insert(heap).unwrap();
        let refused = space.create(&id, 7_u64).unwrap_err();
        assert!(
            refused.kind() == ErrorKind::Unsuitable
                && refused.to_string().contains("root \"list\" has a PVec<u64>"),
            "{refused}"
        );
    });
}

#[test]
fn other_addresses_leave_far_pointers_as_they_are() {
    everywhere(|world| {
        let pool = world.format();
        let mut heap = Heap::format(pool.create_attached("o", 1 << 20).unwrap()).unwrap();
        let address = pool.stat("o").unwrap().address;
        let far = Far::<u64>::from_word(address + 4096);
        heap.root_or_insert_with::<Mixed, _>("mixed", |place| Mixed {
            numbers: PVec::new(),
            node: Far::null(),
            boxed: PBox::new_in(far, place),
            value: 3,
        })
        .unwrap();
        let node = heap
            .root_or_insert_with::<Node, _>("node", |_| Node::new(2, Far::null()))
            .map(std::ptr::from_mut)
            .unwrap();
        let offset = node.addr() as u64 - address;
        let mixed = heap.root_mut::<Mixed>("mixed").unwrap();
        mixed.node = Far::own(offset).unwrap();
        mixed.numbers.extend(0..100);
        heap.psync().unwrap();
        drop(heap);
        pool.copy_rebased("o", b"", &pool, "copy", &mut |_, _| {}).unwrap();
        let heap = ReadHeap::open(pool.attach_read("copy").unwrap()).unwrap();
        let mixed = heap.root_ref::<Mixed>("mixed").unwrap();
        assert_eq!((*mixed.boxed, mixed.node, mixed.numbers.len()), (far, Far::own(offset).unwrap(), 100));
        let mut space = indelible::Space::new();
        space.add(&pool);
        let id = pool.stat("copy").unwrap().id;
        space.attach_read(&id).unwrap();
        assert_eq!(space.get(&id, mixed.node).unwrap().value, 2);
        assert!(!Rights::READ.has(Rights::EXECUTE));
    });
}
