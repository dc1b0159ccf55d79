use crate::support::{Ground, World, psynced_whole};
use indelible::collections::{PHashMap, PMutex, PRc, PString, PVec, RootTypes};
use indelible::raw::{self, Permission};
use indelible::{ErrorKind, Heap, HeapOptions, Persist, ReadHeap, Tracking};
use indelible_testing::{Limits, Seeded, for_each_crash};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const SLOTS: usize = 6;

#[derive(Persist, Clone)]
#[repr(C)]
struct Node<'h> {
    number: u64,
    text: PString<'h>,
    next: Option<PRc<'h, Node<'h>>>,
}

#[derive(Persist, Default)]
#[repr(C)]
struct Data<'h> {
    round: u64,
    slots: PVec<'h, Option<PRc<'h, Node<'h>>>>,
    named: PHashMap<'h, u64, PRc<'h, Node<'h>>>,
}

type More<'h> = PVec<'h, PRc<'h, Node<'h>>>;

#[derive(Clone, Debug, Default)]
struct Model {
    nodes: BTreeMap<u64, (String, Option<u64>)>,
    slots: Vec<Option<u64>>,
    named: BTreeMap<u64, u64>,
    more: Vec<u64>,
    last: u64,
}

impl Model {
    fn owners(&self, node: u64) -> usize {
        let inner = self.nodes.values().filter_map(|(_, next)| *next);
        let all = self.slots.iter().flatten().copied();
        let all = all.chain(self.named.values().copied()).chain(self.more.iter().copied()).chain(inner);
        all.filter(|owned| *owned == node).count()
    }

    fn settle(&mut self) {
        while let Some(node) = self.nodes.keys().copied().find(|node| self.owners(*node) == 0) {
            self.nodes.remove(&node);
        }
    }

    fn new_node(&mut self, text: String, next: Option<u64>) -> u64 {
        self.last += 1;
        self.nodes.insert(self.last, (text, next));
        self.last
    }
}

fn same<'h>(owner: &PRc<'h, Node<'h>>, node: u64, model: &Model) {
    let (text, next) = &model.nodes[&node];
    assert_eq!((owner.number, owner.text.as_str()), (node, text.as_str()));
    assert_eq!(PRc::owners(owner), model.owners(node) as u64, "owners of node {node}");
    match (&owner.next, next) {
        (Some(owner), Some(node)) => same(owner, *node, model),
        (None, None) => {}
        _ => panic!("another next of node {node}"),
    }
}

fn verify(heap: &mut Heap, model: &Model) {
    assert_eq!(heap.check_roots(&RootTypes::new().root::<Data>("data").root::<More>("more")), []);
    let audit = heap.audit().unwrap();
    assert!(audit.findings.is_empty() && audit.leaks.is_empty() && audit.owned == audit.blocks, "{audit:?}");
    let (data, more) = heap.roots2::<Data, More>("data", "more").unwrap();
    assert_eq!((data.named.len(), more.len()), (model.named.len(), model.more.len()));
    for (owner, node) in data.slots.iter().zip(&model.slots) {
        match (owner, node) {
            (Some(owner), Some(node)) => same(owner, *node, model),
            (None, None) => {}
            _ => panic!("a slot has an owner in one of them only"),
        }
    }
    model.named.iter().for_each(|(name, node)| same(&data.named[name], *node, model));
    more.iter().zip(&model.more).for_each(|(owner, node)| same(owner, *node, model));
}

fn text(number: u64) -> String {
    format!("text {number:>0$}", (number % 40) as usize)
}

fn step(heap: &mut Heap, model: &mut Model, random: &mut Seeded) {
    let number = random.u64(..1000);
    let (i, j, name) = (random.usize(..SLOTS), random.usize(..SLOTS), random.u64(..5));
    let kind = random.u8(..10);
    let (data, more) = heap.roots2::<Data, More>("data", "more").unwrap();
    let place = data.slots.heap();
    let mine = model.slots[i];
    match (kind, &mut data.slots[i], mine) {
        (0 | 1, ..) => {
            let next = data.slots[j].clone();
            let node = Node { number: model.last + 1, text: PString::from_in(&text(number), place), next };
            data.slots[i] = Some(PRc::new_in(node, place));
            let next = model.slots[j];
            model.slots[i] = Some(model.new_node(text(number), next));
        }
        (2, ..) => {
            data.slots[i] = data.slots[j].clone();
            model.slots[i] = model.slots[j];
        }
        (3, slot, _) => (*slot = None, model.slots[i] = None).0,
        (4, slot, Some(node)) => {
            data.named.insert(name, slot.take().unwrap());
            model.slots[i] = None;
            model.named.insert(name, node);
        }
        (5, ..) => assert_eq!(data.named.remove(&name).is_some(), model.named.remove(&name).is_some()),
        (6, Some(owner), Some(node)) => {
            let alone = PRc::get_mut(owner);
            assert_eq!(alone.is_some(), model.owners(node) == 1);
            if let Some(alone) = alone {
                alone.text = PString::from_in(&text(number), place);
                model.nodes.get_mut(&node).unwrap().0 = text(number);
            }
        }
        (7, Some(owner), Some(node)) => {
            let others = model.owners(node) > 1;
            PRc::make_mut(owner).number = model.last + 1;
            let (text, next) = model.nodes[&node].clone();
            if !others {
                model.nodes.remove(&node);
            }
            model.slots[i] = Some(model.new_node(text, next));
        }
        (8, slot, Some(node)) => match PRc::into_inner(slot.take().unwrap()) {
            Ok(inner) => {
                assert_eq!((inner.number, model.owners(node)), (node, 1));
                let Node { next, .. } = inner;
                data.slots[i] = next;
                model.slots[i] = model.nodes.remove(&node).unwrap().1;
            }
            Err(owner) => {
                assert!(model.owners(node) > 1);
                data.slots[i] = Some(owner);
            }
        },
        (9, Some(owner), Some(node)) if more.len() < 6 => {
            more.push(owner.clone());
            model.more.push(node);
        }
        _ if !more.is_empty() => {
            more.swap_remove(i % more.len());
            model.more.swap_remove(i % model.more.len());
        }
        _ => {}
    }
    model.settle();
}

fn made(world: &World, options: HeapOptions) -> (Heap, Model) {
    let pool = world.format();
    pool.create("heap", 1 << 20).unwrap();
    let mut heap = Heap::format_with(pool.attach("heap").unwrap(), options).unwrap();
    heap.root_or_default::<More>("more").unwrap();
    let data = heap.root_or_default::<Data>("data").unwrap();
    (0..SLOTS).for_each(|_| data.slots.push(None));
    heap.psync().unwrap();
    (heap, Model { slots: vec![None; SLOTS], ..Model::default() })
}

fn rebased(world: &World, mut heap: Heap, model: &Model) -> Heap {
    heap.psync().unwrap();
    let pool = world.open();
    pool.copy_rebased("heap", b"", &pool, "copy", &mut |_, _| {}).unwrap();
    let mut copy = Heap::open(pool.attach("copy").unwrap()).unwrap();
    emptied(&mut heap);
    verify(&mut copy, model);
    drop((heap, copy));
    pool.destroy("heap").unwrap();
    pool.rename("copy", "heap", b"").unwrap();
    Heap::open(pool.attach("heap").unwrap()).unwrap()
}

fn emptied(heap: &mut Heap) {
    heap.drop_root::<Data>("data").unwrap();
    assert_eq!(heap.check(), []);
    heap.drop_root::<More>("more").unwrap();
    assert_eq!(heap.stats().unwrap().blocks, 0, "blocks are left");
}

fn random_programs(world: &World, rounds: usize, random: &mut Seeded) {
    let options = HeapOptions::new();
    let (mut heap, mut model) = made(world, options);
    let mut psynced = model.clone();
    for round in 0..rounds {
        for _ in 0..random.usize(1..12) {
            step(&mut heap, &mut model, random);
        }
        verify(&mut heap, &model);
        match random.u8(..8) {
            0 => {
                heap.revert().unwrap();
                model = psynced.clone();
            }
            1 => {
                drop(heap);
                heap = Heap::open(world.open().attach("heap").unwrap()).unwrap();
                model = psynced.clone();
            }
            2 if round % 4 == 0 => {
                heap = rebased(world, heap, &model);
                psynced = model.clone();
            }
            _ => {
                heap = psynced_whole(world, heap, options, "a round of a program");
                psynced = model.clone();
            }
        }
        verify(&mut heap, &model);
    }
    emptied(&mut heap);
}

#[test]
fn random_programs_count_owners_as_a_model_does() {
    let mut random = Seeded::new(21);
    for (ground, tracking, rounds) in [
        (Ground::Memory, Tracking::Auto, 120),
        (Ground::Memory, Tracking::Explicit, 120),
        (Ground::File, Tracking::Explicit, 20),
        (Ground::File, Tracking::Mprotect, 20),
        (Ground::Simulated, Tracking::Auto, 20),
    ] {
        match tracking.is_available() {
            true => random_programs(&World::new(ground, tracking, false), rounds, &mut random),
            false => indelible_testing::not_tested(format_args!("shared values with tracking {tracking:?}")),
        }
    }
}

#[test]
fn a_power_cut_leaves_counts_as_their_owners_are() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let (heap, model) = made(&world, HeapOptions::new());
    drop(heap);
    let models = RefCell::new(vec![model]);
    let record = |sim: &indelible_testing::SimMedium| {
        let mut heap = Heap::open(world.open().attach("heap").unwrap()).unwrap();
        let mut model = models.borrow()[0].clone();
        let mut random = Seeded::new(22);
        sim.mark(0);
        for round in 1..=12 {
            (0..10).for_each(|_| step(&mut heap, &mut model, &mut random));
            heap.root_mut::<Data>("data").unwrap().round = round;
            models.borrow_mut().push(model.clone());
            heap.psync().unwrap();
            sim.mark(round);
        }
    };
    let verify_image = |image: &indelible_testing::CrashImage| -> Result<(), String> {
        let pool = world.options().on_device(Arc::new(image.medium()), false).unwrap();
        let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
        let (found, said) = (heap.root_mut::<Data>("data").unwrap().round, image.last_mark().unwrap_or(0));
        verify(&mut heap, &models.borrow()[found as usize]);
        emptied(&mut heap);
        if found == said || found == said + 1 { Ok(()) } else { Err(format!("round {found}, said {said}")) }
    };
    let limits = Limits { exhaustive: 4, singles: 2, random: 3, points: 100, seed: 1 };
    let report = for_each_crash(world.sim().unwrap(), record, verify_image, &limits).unwrap();
    assert!(report.distinct > 60, "only {} images", report.distinct);
}

type Pair<'h> = PVec<'h, PRc<'h, u64>>;

fn pair() -> (World, Heap) {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = world.format();
    let mut heap = Heap::format(pool.create_attached("heap", 1 << 20).unwrap()).unwrap();
    let (pair, place) = heap.root_and_heap::<Pair>("pair").unwrap();
    let owner = PRc::new_in(7_u64, place);
    pair.push(owner.clone());
    pair.push(owner);
    heap.psync().unwrap();
    (world, heap)
}

fn forge(heap: Heap, owners: u64) -> Heap {
    let mut object = heap.into_object();
    let bytes = object.as_mut_slice();
    let at =
        bytes.windows(16).step_by(8).position(|at| at[0] == 2 && at[8] == 7 && at[1..8] == [0; 7]).unwrap();
    bytes[8 * at..8 * at + 8].copy_from_slice(&owners.to_le_bytes());
    Heap::open(object).unwrap()
}

#[test]
fn counts_that_are_wrong_are_found() {
    let types = || RootTypes::new().root::<Pair>("pair");
    let (_world, heap) = pair();
    let mut heap = forge(heap, 1);
    let error = heap.verify(&types()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(error.to_string().contains("pair[1]: a block has more owners than it counts"), "{error}");
    assert_eq!(heap.audit().unwrap().findings.len(), 1);
    let mut heap = forge(forge_back(heap), 3);
    let audit = heap.audit().unwrap();
    assert_eq!(audit.findings.len(), 1);
    let found = &audit.findings[0].what;
    assert!(found.contains("counts 3 owners, and 2 were found"), "{found}");
    heap.verify(&types()).unwrap();
    heap.root_mut::<Pair>("pair").unwrap().clear();
    let audit = heap.audit().unwrap();
    assert_eq!((audit.leaks.len(), audit.findings.len()), (1, 0));
    let (_world, heap) = pair();
    let mut heap = forge(heap, 2);
    heap.verify(&types()).unwrap();
    assert_eq!(heap.root_mut::<Pair>("pair").unwrap().len(), 2);
}

fn forge_back(heap: Heap) -> Heap {
    let mut object = heap.into_object();
    let bytes = object.as_mut_slice();
    let at =
        bytes.windows(16).step_by(8).position(|at| at[0] == 1 && at[8] == 7 && at[1..8] == [0; 7]).unwrap();
    bytes[8 * at] = 2;
    Heap::open(object).unwrap()
}

#[derive(Persist)]
#[repr(C)]
struct Looped<'h> {
    next: PMutex<'h, Option<PRc<'h, Looped<'h>>>>,
}

#[test]
fn forgotten_owners_and_cycles_leak_and_are_named() {
    let (_world, mut heap) = pair();
    std::mem::forget(heap.root_mut::<Pair>("pair").unwrap()[0].clone());
    heap.psync().unwrap();
    let audit = heap.audit().unwrap();
    assert!(audit.findings[0].what.contains("counts 3 owners, and 2 were found"), "{audit:?}");

    let (_world, mut heap) = pair();
    {
        let (slot, place) = heap.root_and_heap::<Option<PRc<Looped>>>("loop").unwrap();
        let looped = PRc::new_in(Looped { next: PMutex::new_in(None, place) }, place);
        *looped.next.lock() = Some(looped.clone());
        *slot = Some(looped);
    }
    let audit = heap.audit().unwrap();
    assert_eq!((audit.findings.len(), audit.leaks.len()), (0, 0), "a cycle that a root leads to");
    *heap.root_mut::<Option<PRc<Looped>>>("loop").unwrap() = None;
    let audit = heap.audit().unwrap();
    assert_eq!((audit.findings.len(), audit.leaks.len()), (0, 2), "the value, and that of its lock");
    assert_eq!(heap.check(), []);
}

#[test]
fn a_reader_sees_values_and_makes_no_owner() {
    let (world, heap) = pair();
    drop(heap);
    let mut heap = ReadHeap::open(world.open().attach_read("heap").unwrap()).unwrap();
    let pair = heap.root_alone::<Pair>("pair").unwrap();
    assert_eq!((*pair[0], *pair[1], PRc::owners(&pair[0])), (7, 7, 2));
    assert!(PRc::ptr_eq(&pair[0], &pair[1]));
    let panic = catch_unwind(AssertUnwindSafe(|| pair[0].clone())).expect_err("a store").downcast::<String>();
    assert!(panic.unwrap().contains("another owner is a store"));
    assert_eq!(PRc::owners(&pair[0]), 2);
}

#[test]
fn a_value_of_another_heap_is_refused() {
    let (_one, mut one) = pair();
    let (_two, mut two) = pair();
    let ours = one.root_mut::<Pair>("pair").unwrap();
    let theirs = two.root_mut::<Pair>("pair").unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| ours.push(theirs[0].clone()))).is_err());
    assert_eq!((ours.len(), PRc::owners(&theirs[0])), (2, 2));
}

#[test]
fn a_full_heap_refuses_a_value_and_takes_owners() {
    let (_world, mut heap) = pair();
    let (list, place) = heap.root_and_heap::<PVec<PRc<[u64; 512]>>>("list").unwrap();
    list.reserve(1000);
    while let Ok(owner) = PRc::try_new_in([1; 512], place) {
        list.push(owner);
    }
    let made = list.len();
    assert!(made > 100 && made < 300, "{made}");
    let error = PRc::<[u64; 512]>::try_new_in([1; 512], place).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HeapFull);
    (0..made).for_each(|index| list.push(list[index].clone()));
    assert!(list.iter().all(|owner| PRc::owners(owner) == 2));
    list.truncate(made);
    assert!(list.iter().all(|owner| PRc::owners(owner) == 1));
    assert_eq!(heap.audit().unwrap().findings, []);
}

/// C frees a value by the list of its blocks, which cannot express shared owners.
#[test]
fn blocks_that_others_own_are_not_listed_by_address() {
    let (world, mut heap) = pair();
    {
        let (pair, other) = heap.roots2::<Pair, Pair>("pair", "other").unwrap();
        other.push(pair[0].clone());
    }
    heap.psync().unwrap();
    drop(heap);
    let pool = world.open();
    let listed = |name: &str| {
        let object = raw::attach(&pool, "heap", Permission::Write, b"").unwrap().as_ptr();
        // SAFETY: this thread alone has the object.
        let blocks = unsafe { raw::value_blocks(object, name) };
        raw::detach(object).unwrap();
        blocks
    };
    let error = listed("pair").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RootType);
    assert!(error.to_string().contains("others own as well"), "{error}");
    Heap::open(pool.attach("heap").unwrap())
        .map(|mut heap| {
            heap.root_mut::<Pair>("other").unwrap().clear();
            heap.psync().unwrap();
        })
        .unwrap();
    assert_eq!(listed("pair").unwrap().len(), 3, "the root, its elements, the value");
}
