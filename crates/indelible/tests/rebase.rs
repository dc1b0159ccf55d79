use crate::support::{World, everywhere};
use indelible::collections::{HeapRef, PBTreeMap, PBox, PHashMap, PMutex, POption, PString, PVec};
use indelible::retention::{Extensions, extendible};
use indelible::{CreateOptions, ErrorKind, Heap, Persist, Pool, PoolOptions, Relative, TypeInfo};
use indelible_testing::sim::{Choice, Fault, OpKind, SimConfig, SimMedium};
use indelible_testing::sparse;
use std::sync::Arc;

fn silent(_: u64, _: u64) {}

fn other(world: &World) -> Pool {
    world.options().format(world.dir().join("other.pmo"), 32 << 20).unwrap()
}

#[derive(Persist)]
#[repr(C, u8)]
enum Shape<'h> {
    Nothing,
    Named(PString<'h>),
    Boxed { inner: PBox<'h, u64>, area: f64 },
}

#[derive(Persist)]
#[repr(C)]
struct Node<'h> {
    number: u64,
    name: PString<'h>,
    shape: Shape<'h>,
    #[persist(target)]
    next: *mut Node<'h>,
    #[persist(target)]
    back: Relative<Node<'h>>,
}

#[extendible]
#[derive(Persist)]
#[repr(C)]
struct Extended<'h> {
    name: PString<'h>,
    #[extension(1, init = |_| 0)]
    later: u64,
    #[extension(2)]
    last: [u64; 9],
}

#[derive(Persist)]
#[repr(C)]
struct Everything<'h> {
    #[persist(target)]
    ring: *mut Node<'h>,
    favourite: *const u64,
    numbers: PVec<'h, u64>,
    maybe: Option<PBox<'h, PString<'h>>>,
    flat: POption<PBTreeMap<'h, u64, PString<'h>>>,
    locked: PMutex<'h, PVec<'h, PString<'h>>>,
    words: PHashMap<'h, PString<'h>, PVec<'h, PBox<'h, u64>>>,
    extended: PVec<'h, Extended<'h>>,
    empty: PVec<'h, u64>,
}

fn extended_in<'h>(name: &str, h: HeapRef<'h>) -> Extended<'h> {
    Extended { name: PString::from_in(name, h), extensions: Extensions::new_in(h) }
}

const NODES: u64 = 40;

fn filled(pool: &Pool, name: &str) -> Heap {
    let mut heap = pool.heap(name, 1 << 20).unwrap();
    let blocks = (0..NODES).map(|_| heap.calloc(1, size_of::<Node<'_>>()).unwrap().as_ptr());
    let nodes: Vec<*mut Node<'static>> = blocks.map(<*mut u8>::cast).collect();
    heap.root_or_insert_with::<Everything<'_>, _>("everything", |h| {
        for (number, &node) in (0..).zip(&nodes) {
            let name = PString::from_in(&format!("the name of node {number}"), h);
            let shape = match number % 3 {
                0 => Shape::Nothing,
                1 => Shape::Named(PString::from_in("a shape with a name", h)),
                _ => Shape::Boxed { inner: PBox::new_in(number, h), area: 0.5 },
            };
            let next = nodes[(number as usize + 1) % nodes.len()].cast();
            let node = node.cast::<Node<'_>>();
            // SAFETY: a block of this heap, large enough, known to no other code.
            unsafe {
                node.write(Node { number, name, shape, next, back: Relative::null() });
                (*node).back.set(nodes[(number as usize + nodes.len() - 1) % nodes.len()].cast());
            }
        }
        let numbers: PVec<'_, u64> = PVec::from_slice_in(&[5, 6, 7], h);
        let mut words = PHashMap::new_in(h);
        let mut flat = PBTreeMap::new_in(h);
        let mut locked = PVec::new_in(h);
        for n in 0..100_u64 {
            let mut boxes = PVec::new_in(h);
            boxes.push(PBox::new_in(n, h));
            words.insert(format!("word {n}").as_str(), boxes);
            flat.insert(n, format!("text {n}").as_str());
            locked.push(format!("locked {n}").as_str());
        }
        let mut extended = PVec::new_in(h);
        for n in 0..5_u64 {
            let mut one = extended_in("extended", h);
            if n > 0 {
                *one.later_mut() = n;
            }
            if n > 2 {
                one.last_mut()[8] = n;
            }
            extended.push(one);
        }
        Everything {
            ring: nodes[0].cast(),
            favourite: &raw const numbers[1],
            numbers,
            maybe: Some(PBox::new_in(PString::from_in("maybe", h), h)),
            flat: POption::some(flat),
            locked: PMutex::new_in(locked, h),
            words,
            extended,
            empty: PVec::new_in(h),
        }
    })
    .unwrap();
    let base = heap.object().as_ptr().addr();
    for at in nodes.iter().map(|node| node.addr() - base) {
        heap.object().mark_dirty(at..at + size_of::<Node<'_>>());
    }
    heap.psync().unwrap();
    heap
}

fn holds(heap: &mut Heap) {
    assert_eq!(heap.check(), []);
    let audit = heap.audit().unwrap();
    assert_eq!((&audit.findings[..], &audit.pointers[..], &audit.leaks[..]), (&[][..], &[][..], &[][..]));
    let range = heap.object().as_slice().as_ptr_range();
    let inside = |address: *const u8| assert!(range.contains(&address), "{address:?} is not in {range:?}");
    let all = heap.root_mut::<Everything<'_>>("everything").unwrap();
    let mut node = all.ring;
    for number in 0..NODES {
        inside(node.cast());
        // SAFETY: a node of this object.
        let (one, next) = unsafe { (&*node, &*(*node).next) };
        assert_eq!((one.number, one.name.as_str()), (number, &*format!("the name of node {number}")));
        inside(one.name.as_ptr());
        match &one.shape {
            Shape::Nothing => assert_eq!(number % 3, 0),
            Shape::Named(name) => assert_eq!(name.as_str(), "a shape with a name"),
            Shape::Boxed { inner, area } => assert_eq!((**inner, *area), (number, 0.5)),
        }
        assert_eq!(next.back.get(), node);
        node = one.next;
    }
    assert_eq!(node, all.ring);
    assert_eq!(all.favourite, &raw const all.numbers[1]);
    assert_eq!(all.maybe.as_ref().unwrap().as_str(), "maybe");
    let flat = all.flat.as_ref().unwrap();
    assert!(flat.iter().zip(0..100).all(|((key, text), n)| *key == n && *text == *format!("text {n}")));
    let locked = all.locked.lock();
    assert!((0..100).all(|n| *locked[n] == *format!("locked {n}")) && locked.len() == 100);
    drop(locked);
    assert!((0..100).all(|n| *all.words[format!("word {n}").as_str()][0] == n) && all.words.len() == 100);
    for (n, one) in (0..).zip(all.extended.iter()) {
        assert_eq!((one.name.as_str(), one.later()), ("extended", n));
        assert_eq!(one.last()[8], if n > 2 { n } else { 0 });
    }
    assert!(all.empty.is_empty());
}

#[test]
fn an_object_and_its_copy_at_other_addresses_are_attached_at_once() {
    everywhere(|world| {
        let (pool, other) = (world.format(), other(world));
        let mut one = filled(&pool, "one");
        pool.copy_rebased("one", b"", &pool, "two", &mut silent).unwrap();
        pool.copy_rebased("two", b"", &other, "three", &mut silent).unwrap();
        let (mut two, mut three) = (pool.heap("two", 0).unwrap(), other.heap("three", 0).unwrap());
        [&mut one, &mut two, &mut three].into_iter().for_each(holds);
        for (heap, added) in [(&mut two, 0..5000_u64), (&mut three, 7..9)] {
            let all = heap.root_mut::<Everything<'_>>("everything").unwrap();
            all.empty.extend(added);
            all.words.clear();
            heap.psync().unwrap();
            assert_eq!(heap.check(), []);
        }
        holds(&mut one);
        drop((one, two, three));
        let mut added = 0..5000;
        let mut two = pool.heap("two", 0).unwrap();
        assert!(two.root_mut::<Everything<'_>>("everything").unwrap().empty.iter().copied().eq(&mut added));
        let before = pool.stat("one").unwrap();
        pool.move_rebased("one", b"", &other, &mut silent).unwrap();
        let after = other.stat("one").unwrap();
        assert_eq!((after.id, after.psyncs, after.created), (before.id, before.psyncs, before.created));
        assert_ne!(after.address, before.address);
        holds(&mut other.heap("one", 0).unwrap());
        assert_eq!(pool.stat("one").unwrap_err().kind(), ErrorKind::NotFound);
        drop((two, pool, other));
        for path in [world.path(), world.dir().join("other.pmo")] {
            if path.exists() {
                let report = indelible::check(path, &world.options(), &mut |_, _| {}).unwrap();
                assert!(report.findings.is_empty(), "{:?}", report.findings);
            }
        }
    });
}

fn described(pool: &Pool, layout: &str, words: impl FnOnce(u64, &Heap) -> Vec<u64>) -> Heap {
    let mut heap = Heap::format(pool.create_attached("o", 1 << 20).unwrap()).unwrap();
    let base = heap.object().as_ptr().addr() as u64;
    let words = words(base, &heap);
    let block = heap.calloc(1, 8 * words.len()).unwrap().as_ptr();
    for (at, word) in words.iter().enumerate() {
        // SAFETY: within the block.
        unsafe { block.cast::<u64>().add(at).write(*word) };
    }
    let size = indelible_size(layout);
    // SAFETY: a block with that many bytes.
    unsafe { heap.create_root("root", block, size, &TypeInfo::described("Any", layout)) }.unwrap();
    heap.psync().unwrap();
    heap
}

fn indelible_size(layout: &str) -> u64 {
    layout.split(':').nth(1).unwrap().parse().unwrap()
}

fn block(heap: &Heap, words: &[u64]) -> u64 {
    let block = heap.calloc(words.len(), 8).unwrap().as_ptr().cast::<u64>();
    // SAFETY: a block that large.
    unsafe { block.copy_from(words.as_ptr(), words.len()) };
    block.addr() as u64
}

#[track_caller]
fn refused(pool: &Pool, kind: ErrorKind, needle: &str) {
    let before = (pool.info().unwrap().free, pool.list().count());
    let error = pool.copy_rebased("o", b"", pool, "copy", &mut silent).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(needle), "{needle:?} is not in {error}");
    assert_eq!((pool.info().unwrap().free, pool.list().count()), before, "nothing is left of it");
}

#[test]
fn a_heap_with_an_unknown_pointer_is_refused() {
    const LIST: &str = "list:16:8 { count@0:8 u64 head@8:8 *mut node } ";
    const NODE: &str = "list:16:8 { count@0:8 u64 head@8:8 *mut node } -> 0 node:16:8 { value@0:8 u64 next@8:8 *mut node } -> 1 =1 ";
    type Words = Box<dyn FnOnce(u64, &Heap) -> Vec<u64>>;
    let cases: [(&str, Words, &str); 14] = [
        (
            "own:24:8 { list@0:24 PVec u64 } ",
            Box::new(|base, heap| vec![block(heap, &[1, base + 9]), 2, 2]),
            "root.list has 0x",
        ),
        ("own:16:8 { a@0:8 NonZeroU64 b@8:8 u64 } ", Box::new(|base, _| vec![base, 0]), "root.a has 0x"),
        ("own:24:8 { a@0:8 u64 head@16:8 *mut node } ", Box::new(|base, _| vec![1, base, 0]), "root has 0x"),
        ("own:16:8 { head@0:8 *mut node } ", Box::new(|base, _| vec![0, base]), "root has 0x"),
        (LIST, Box::new(|base, _| vec![base + 5000, 0]), "root.count has 0x"),
        (LIST, Box::new(|_, _| vec![1, 0x1234_5678]), "root.head leads out of the object, to 0x12345678"),
        (LIST, Box::new(|base, _| vec![1, base + (1 << 20)]), "leads out of the object"),
        (LIST, Box::new(|_, heap| vec![1, block(heap, &[7, 7])]), "no described value leads to the block"),
        (LIST, Box::new(|base, _| vec![1, 0, base + 4096]), "behind the described value"),
        (NODE, Box::new(|base, heap| vec![1, block(heap, &[base, 0])]), "root.head.value has 0x"),
        (NODE, Box::new(|base, heap| vec![1, block(heap, &[7, 0, 9, base])]), "behind the described value"),
        (NODE, Box::new(|_, heap| vec![1, block(heap, &[7, 99])]), "root.head.next leads out of the object"),
        (
            "own:16:8 { of@0:8 u64 tree@8:8 std::map:8:8 < u64 > } ",
            Box::new(|_, _| vec![1, 0]),
            "root.tree is a std::map, whose content is not described",
        ),
        (
            "own:48:8 { of@0:8 u64 keys@8:40 PHashSet key:8:8 { at@0:8 *const u8 } } ",
            Box::new(|base, _| vec![1, base, 0, 0, 0, 0]),
            "hashes of keys of type key may depend on addresses",
        ),
    ];
    for (number, (layout, words, needle)) in cases.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
        println!("case {number}: {needle}");
        drop(described(&pool, layout, words));
        refused(&pool, ErrorKind::Unsuitable, needle);
    }
    for (layout, values) in [(LIST, [1, 0].as_slice()), (NODE, &[7, 0])] {
        let dir = tempfile::tempdir().unwrap();
        let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
        drop(described(&pool, layout, |_, heap| {
            vec![values[0], if layout == NODE { block(heap, &[7, 0]) } else { 0 }]
        }));
        pool.copy_rebased("o", b"", &pool, "copy", &mut silent).unwrap();
        let mut copy = pool.heap("copy", 0).unwrap();
        let audit = copy.audit().unwrap();
        assert_eq!((audit.leaks.len(), audit.pointers.len()), (0, 0));
    }
}

#[test]
fn objects_of_which_nothing_says_where_their_pointers_are_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    let mut plain = pool.create_attached("o", 10_000).unwrap();
    pool.copy_rebased("o", b"", &pool, "blank", &mut silent).unwrap();
    plain.as_mut_slice()[9_000] = 1;
    plain.psync().unwrap();
    plain.detach().unwrap();
    refused(&pool, ErrorKind::Unsuitable, "it holds no heap");
    let mut plain = pool.attach("o").unwrap();
    plain.as_mut_slice()[..9].copy_from_slice(b"PMO-NDAR\x01");
    plain.psync().unwrap();
    pool.copy_rebased("o", b"", &pool, "array", &mut silent).unwrap();
    let array = pool.attach_read("array").unwrap();
    assert!(array.as_slice() == plain.as_slice() && array.as_ptr() != plain.as_ptr());
    drop((plain, array));
    pool.destroy("o").unwrap();
    let mut heap = Heap::format(pool.create_attached("o", 100_000).unwrap()).unwrap();
    let block = heap.calloc(1, 16).unwrap().as_ptr();
    let text = TypeInfo { name: "Thing", fingerprint: 1, layout: "a thing, for people" };
    // SAFETY: a block of that size.
    unsafe { heap.create_root("thing", block, 16, &text) }.unwrap();
    heap.psync().unwrap();
    drop(heap);
    refused(&pool, ErrorKind::Unsuitable, "root \"thing\" of type \"Thing\": no description");
}

#[test]
fn an_address_in_an_extension_or_a_table_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    let mut heap = pool.heap("o", 1 << 20).unwrap();
    let base = heap.object().as_ptr().addr() as u64;
    let item = heap.root_or_insert_with::<Extended<'_>, _>("item", |h| extended_in("x", h));
    *item.unwrap().later_mut() = base;
    heap.psync().unwrap();
    drop(heap);
    refused(&pool, ErrorKind::Unsuitable, "and is no pointer by its type");
    let mut heap = pool.heap("o", 0).unwrap();
    *heap.root_mut::<Extended<'_>>("item").unwrap().later_mut() = 5;
    heap.root_or_default::<PHashMap<'_, u64, u64>>("table").unwrap().insert(1, base);
    heap.psync().unwrap();
    drop(heap);
    refused(&pool, ErrorKind::Unsuitable, "table.values[0] has 0x");
    let mut heap = pool.heap("o", 0).unwrap();
    heap.root_mut::<PHashMap<'_, u64, u64>>("table").unwrap().clear();
    heap.psync().unwrap();
    pool.copy_rebased("o", b"", &pool, "copy", &mut silent).unwrap();
}

#[test]
fn forged_heaps_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 32 << 20).unwrap();
    drop(filled(&pool, "o"));
    let wanted = pool.attach_read("o").unwrap().as_slice().to_vec();
    let mut seeded = indelible_testing::Seeded::new(0x4eba5e);
    println!("seed {:#x}", seeded.seed());
    let (mut refusals, mut copies) = (0, 0);
    let rounds = 300 / sparse(3);
    for round in 0..rounds {
        let mut bytes = wanted.clone();
        for _ in 0..=round % 4 {
            let at = seeded.usize(..if round % 2 == 0 { 4096 } else { 60_000 }) & !7;
            let word = match seeded.u8(..4) {
                0 => seeded.u64(..),
                1 => 0,
                2 => seeded.u64(..4096),
                _ => u64::from_le_bytes(wanted[40_000..40_008].try_into().unwrap()) ^ 1 << seeded.u32(..64),
            };
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        let mut object = pool.attach("o").unwrap();
        object.as_mut_slice().copy_from_slice(&bytes);
        object.psync().unwrap();
        object.detach().unwrap();
        match pool.copy_rebased("o", b"", &pool, "copy", &mut silent) {
            Ok(()) => {
                copies += 1;
                let heap = indelible::ReadHeap::open(pool.attach_read("copy").unwrap()).unwrap();
                assert_eq!(heap.audit().unwrap().findings, []);
                drop(heap);
                pool.destroy("copy").unwrap();
            }
            Err(error) => {
                refusals += 1;
                let known = [ErrorKind::Damaged, ErrorKind::Unsuitable, ErrorKind::Version];
                assert!(known.contains(&error.kind()), "{error}");
            }
        }
    }
    assert!(refusals > rounds / 6 && copies > rounds / 30, "{refusals} refusals, {copies} copies");
}

#[test]
fn a_copy_at_other_addresses_is_whole_or_not_there_wherever_it_ends() {
    const KINDS: [OpKind; 4] = [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier, OpKind::Zero];
    let options = PoolOptions::new();
    let first = SimMedium::new(8 << 20, SimConfig::default());
    let pool = options.on_device(Arc::new(first.handle()), true).unwrap();
    drop(filled(&pool, "o"));
    drop(pool);
    let mut deaths = 0;
    for kind in KINDS {
        for nth in 0.. {
            let medium = first.power_cut(Choice::All).medium();
            let handle = Arc::new(medium.handle());
            let pool = options.on_device(handle.clone(), false).unwrap();
            medium.fail_at(kind, nth, Fault::Kill);
            let done = pool.copy_rebased("o", b"", &pool, "copy", &mut silent);
            medium.clear_faults();
            let dead = handle.is_dead();
            drop(pool);
            deaths += u32::from(dead);
            for choice in [Choice::None, Choice::All] {
                let image = medium.power_cut(choice.clone()).medium();
                let pool = options.on_device(Arc::new(image.handle()), false).unwrap();
                let mut object = pool.heap("o", 0).unwrap();
                holds(&mut object);
                match pool.attach("copy") {
                    Ok(copy) => holds(&mut Heap::open(copy).unwrap()),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                        assert!(dead, "{kind:?} {nth}: the copy was made, and is not there");
                    }
                }
            }
            if !dead {
                done.unwrap();
                break;
            }
        }
    }
    assert!(deaths > 20, "{deaths}");
}

#[test]
fn errors_of_copies_are_those_of_copies_at_other_addresses() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    let object = pool.create_attached_with("o", &CreateOptions::new(1 << 20).key(b"k")).unwrap();
    let mut heap = Heap::format(object).unwrap();
    heap.root_or_default::<PVec<'_, u64>>("list").unwrap().push(3);
    heap.psync().unwrap();
    drop(heap);
    let kind = |key: &[u8], name: &str| {
        pool.copy_rebased("o", key, &pool, name, &mut silent).map_err(|error| error.kind())
    };
    assert_eq!(kind(b"", "copy"), Err(ErrorKind::WrongKey));
    assert_eq!(kind(b"k", "o"), Err(ErrorKind::Exists));
    assert_eq!(kind(b"k", "copy"), Ok(()));
    assert_eq!(pool.attach("copy").unwrap_err().kind(), ErrorKind::WrongKey);
    let copy = Heap::open(pool.attach_with_key("copy", b"k").unwrap()).unwrap();
    assert!(copy.is_trusted(), "typed code alone stored to it");
    assert_eq!(copy.root_ref::<PVec<'_, u64>>("list").unwrap()[..], [3]);
    let (one, two) = (pool.stat("o").unwrap(), pool.stat("copy").unwrap());
    assert_ne!((one.id, one.address), (two.id, two.address));
    drop(copy);
    pool.create_from("copy", "again", b"k", &CreateOptions::new(0)).unwrap();
    assert_eq!(pool.stat("again").unwrap().address, two.address);
}

#[test]
fn a_position_independent_object_gets_other_addresses_as_it_is() {
    everywhere(|world| {
        let (pool, other) = (&world.format(), other(world));
        pool.create_with("told", &CreateOptions::new(9000).position_independent(true)).unwrap();
        pool.create("untold", 9000).unwrap();
        let address = pool.stat("told").unwrap().address;
        for name in ["told", "untold"] {
            let mut object = pool.attach(name).unwrap();
            object
                .as_mut_slice()
                .chunks_exact_mut(8)
                .for_each(|word| word.copy_from_slice(&address.to_le_bytes()));
            object.psync().unwrap();
            let held = pool.set_position_independent(name, b"", true).unwrap_err();
            assert_eq!(held.kind(), ErrorKind::Held);
        }
        let bytes = pool.attach_read("told").unwrap().as_slice().to_vec();
        let refused = pool.copy_rebased("untold", b"", &other, "x", &mut silent).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsuitable);
        pool.set_position_independent("untold", b"", true).unwrap();
        pool.snapshot("untold", "kept", b"").unwrap();
        for (number, name) in ["told", "untold", "kept"].into_iter().enumerate() {
            assert!(pool.stat(name).unwrap().position_independent, "{name}");
            let copy = format!("copy {number}");
            pool.copy_rebased(name, b"", pool, &copy, &mut silent).unwrap();
            let (one, two) = (pool.attach_read(name).unwrap(), pool.attach_read(&copy).unwrap());
            assert!(
                one.as_slice().as_ptr() != two.as_slice().as_ptr() && two.as_slice()[..8992] == bytes[..8992]
            );
            assert!(pool.stat(&copy).unwrap().position_independent);
        }
        pool.move_rebased("told", b"", &other, &mut silent).unwrap();
        assert!(other.attach_read("told").unwrap().as_slice()[..8992] == bytes[..8992]);
        pool.set_position_independent("untold", b"", false).unwrap();
        assert!(!pool.stat("untold").unwrap().position_independent);
        let refused = pool.move_rebased("untold", b"", &other, &mut silent).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsuitable);
    });
}

#[test]
fn only_who_may_store_to_an_object_says_that_it_is_position_independent() {
    everywhere(|world| {
        let pool = &world.format();
        pool.create_with("a", &CreateOptions::new(9000).read_key(b"r").write_key(b"w").sparse(true)).unwrap();
        for key in [&b""[..], b"r"] {
            let error = pool.set_position_independent("a", key, true).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WrongKey);
        }
        let before = pool.stat("a").unwrap();
        pool.set_position_independent("a", b"w", true).unwrap();
        let mut after = pool.stat("a").unwrap();
        assert!(after.position_independent);
        after.position_independent = false;
        assert_eq!(format!("{before:?}"), format!("{after:?}"));
        let missing = pool.set_position_independent("b", b"", true).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    });
}
