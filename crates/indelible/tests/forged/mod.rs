#![forbid(unsafe_code)]
#![allow(dead_code)]

use indelible::collections::{
    PBTreeMap, PBTreeSet, PBinaryHeap, PBox, PHashMap, PMutex, POption, PRc, PString, PVec, PVecDeque,
    RootTypes,
};
use indelible::{Heap, Persist, Pool};
use tempfile::TempDir;

pub const LIST: &str = "list";

#[derive(Persist)]
#[repr(C)]
pub struct Planted<'h> {
    pub text: PString<'h>,
    pub number: u64,
}

#[derive(Persist)]
#[repr(C, u8)]
pub enum Part<'h> {
    Tree(PBTreeMap<'h, u64, PString<'h>>),
    Box { of: Option<PBox<'h, Part<'h>>>, more: POption<PVec<'h, u64>> },
    Lock(PMutex<'h, PVec<'h, PString<'h>>>),
    Nothing,
}

pub fn pool() -> (TempDir, Pool) {
    let dir = TempDir::new_in("/dev/shm").expect("a temporary directory on /dev/shm");
    let pool = Pool::format(dir.path().join("pool.pmo"), 64 << 20).unwrap();
    (dir, pool)
}

pub fn format(pool: &Pool) {
    let mut heap = Heap::format(pool.create_attached("heap", 1 << 20).unwrap()).unwrap();
    fill(&mut heap);
    heap.psync().unwrap();
}

pub fn fill(heap: &mut Heap) {
    let (list, place) = heap.root_and_heap::<PVec<Planted>>(LIST).unwrap();
    for number in 0..3 {
        list.push(Planted { text: PString::from_in(&format!("text {number}"), place), number });
    }
    let (map, place) = heap.root_and_heap::<PHashMap<PString, PBox<u64>>>("map").unwrap();
    for (name, number) in [("a", 1_u64), ("b", 2), ("c", 3)] {
        map.insert(name, PBox::new_in(number, place));
    }
    let (parts, place) = heap.root_and_heap::<PVec<Part>>("parts").unwrap();
    let mut tree = PBTreeMap::new_in(place);
    (0..60_u64).for_each(|number| drop(tree.insert(number, "leaf")));
    parts.push(Part::Tree(tree));
    let inner = Part::Box { of: None, more: POption::some(PVec::from_in([1_u64, 2], place)) };
    parts.push(Part::Box { of: Some(PBox::new_in(inner, place)), more: POption::NONE });
    parts.push(Part::Lock(PMutex::new_in(["x", "y"], place)));
    parts.push(Part::Nothing);
    let (names, queue) = heap.roots2::<PBTreeSet<PString>, PBinaryHeap<PString>>("names", "queue").unwrap();
    names.extend(["a", "b", "c"]);
    queue.extend(["a", "c", "b"]);
    let ring = heap.root_or_default::<PVecDeque<PString>>("ring").unwrap();
    ring.extend(["a", "b", "c"]);
    ring.push_front("z"); // the last slot
    let (owners, place) = heap.root_and_heap::<PVec<PRc<PString>>>("owners").unwrap();
    let owner = PRc::new_in("owned", place);
    owners.push(owner.clone());
    owners.push(owner);
}

pub fn types() -> RootTypes<'static> {
    RootTypes::new()
        .root::<PVec<Planted>>(LIST)
        .root::<PHashMap<PString, PBox<u64>>>("map")
        .root::<PVec<Part>>("parts")
        .root::<PBTreeSet<PString>>("names")
        .root::<PBinaryHeap<PString>>("queue")
        .root::<PVecDeque<PString>>("ring")
        .root::<PVec<PRc<PString>>>("owners")
}

pub fn list<'h>(heap: &'h mut Heap) -> &'h mut PVec<'h, Planted<'h>> {
    heap.root_mut::<PVec<Planted>>(LIST).unwrap()
}
