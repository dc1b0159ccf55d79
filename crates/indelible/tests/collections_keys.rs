use indelible::collections::{KeyHash, PBTreeMap, PHashMap, PString, PVec, StableHash as _};
use indelible::{Composite, Heap, HeapOptions, Persist, Pool, StableHash};
use indelible_testing::Seeded;
use std::collections::BTreeMap;

#[derive(Persist, Composite, StableHash, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
struct Place<'h> {
    user: PString<'h>,
    day: u64,
}

#[derive(Persist, Composite, StableHash, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(C)]
struct Point(i32, i32, u8);

#[derive(Persist, Composite, StableHash, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
struct Tagged<'h, T: Persist<'h>> {
    tags: PVec<'h, u8>,
    of: T,
    level: u8,
    name: PString<'h>,
}

fn heap(dir: &tempfile::TempDir) -> Heap {
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    Heap::format(pool.create_attached("heap", 4 << 20).unwrap()).unwrap()
}

#[test]
fn tuples_find_what_tuples_made() {
    let dir = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let mut heap = heap(&dir);
    let (hashed, ordered) =
        heap.roots2::<PHashMap<Place, u64>, PBTreeMap<Place, u64>>("hashed", "ordered").unwrap();
    let mut model: BTreeMap<(String, u64), u64> = BTreeMap::new();
    let mut random = Seeded::new(33);
    for value in 0..4000_u64 {
        let (user, day) = ("ab".repeat(random.usize(..9)), random.u64(..30));
        let key = (user.as_str(), day);
        let expected = model.get(&(user.clone(), day)).copied();
        assert_eq!((hashed.get(&key).copied(), ordered.get(&key).copied()), (expected, expected));
        match random.usize(..4) {
            0 => assert_eq!((hashed.remove(&key), ordered.remove(&key)), (expected, expected)),
            1 => {
                *hashed.entry(key).or_insert(7_u64) += 1;
                *ordered.entry(key).or_insert(7_u64) += 1;
            }
            _ => assert_eq!((hashed.insert(key, value), ordered.insert(key, value)), (expected, expected)),
        }
        match hashed.get(&key) {
            Some(value) => drop(model.insert((user, day), *value)),
            None => drop(model.remove(&(user, day))),
        }
    }
    assert!(model.len() > 50);
    assert_eq!((hashed.len(), ordered.len()), (model.len(), model.len()));
    let found = ordered.iter().map(|(place, value)| ((place.user.to_string(), place.day), *value));
    assert!(found.eq(model.clone()), "the order of tuples is that of keys");
    let of_one = ordered.range(("abab", 5_u64)..("abab", 20_u64)).map(|(place, _)| place.day);
    let expected = model.range(("abab".to_owned(), 5)..("abab".to_owned(), 20)).map(|((_, day), _)| *day);
    assert!(of_one.eq(expected));
    let first = ordered.keys().next().unwrap();
    assert_eq!(hashed.get(first), ordered.get(first));
}

#[test]
fn every_number_of_fields_and_type_will_do() {
    let dir = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let mut heap = heap(&dir);
    let points = heap.root_or_default::<PHashMap<Point, u64>>("points").unwrap();
    points.insert((1, -2, 3_u8), 5_u64);
    points.insert(Point(1, -2, 4), 6_u64);
    assert_eq!((points[&(1, -2, 3_u8)], points[&Point(1, -2, 3)], points[&(1, -2, 4_u8)]), (5, 5, 6));
    assert!(points.get(&(1, 3, 3_u8)).is_none());

    let tagged = heap.root_or_default::<PHashMap<Tagged<[u64; 2]>, u64>>("tagged").unwrap();
    tagged.insert((&b"tags"[..], [1_u64, 2], 3_u8, "name"), 9_u64);
    let tags = b"tags".to_vec();
    assert_eq!(tagged.get(&(tags, [1_u64, 2], 3_u8, String::from("name"))), Some(&9));
    assert!(tagged.get(&(b"tag", [1_u64, 2], 3_u8, "name")).is_none());
}

/// As FORMAT.md has it: structs are hashed field by field.
#[test]
fn tuples_are_hashed_as_structs() {
    let hash = |key: &dyn Fn(&mut KeyHash)| {
        let mut hash = KeyHash::new(42);
        key(&mut hash);
        hash.finish()
    };
    let of_struct = hash(&|state| Point(1, 2, 3).stable_hash(state));
    assert_eq!(hash(&|state| (1_i32, 2_i32, 3_u8).stable_hash(state)), of_struct);
    assert_eq!(hash(&|state| [1, 2, 3].iter().for_each(|number| state.number(*number))), of_struct);
}

#[test]
fn a_full_heap_leaves_no_half_of_a_key() {
    let dir = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    let object = pool.create_attached("heap", 64 << 10).unwrap();
    let mut heap = Heap::format_with(object, HeapOptions::new()).unwrap();
    let map = heap.root_or_default::<PHashMap<Tagged<u64>, u64>>("map").unwrap();
    let large = "x".repeat(1 << 20);
    assert!(map.try_insert((&b"tags"[..], 1_u64, 2_u8, large.as_str()), 1_u64).is_err());
    assert!(map.is_empty());
    assert!(heap.blocks().count() <= 2, "the root, and the table that was made for the key");
}
