use crate::support::{Ground, World};
use indelible::collections::{
    PBTreeMap, PBTreeSet, PBox, PDuration, PHashMap, PHashSet, PIpAddr, POption, PString, PVec, PVecDeque,
};
use indelible::{ErrorKind, Heap, Persist, Tracking};
use indelible_testing::Seeded;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

fn world() -> World {
    World::new(Ground::Memory, Tracking::Auto, false)
}

fn heap(world: &World) -> Heap {
    world.format().heap("o", 1 << 20).unwrap()
}

fn again(world: &World) -> Heap {
    world.open().heap("o", 1 << 20).unwrap()
}

#[test]
fn spans_of_time_come_back_and_are_keys() {
    let world = world();
    let spans = [Duration::ZERO, Duration::new(3, 999_999_999), Duration::from_nanos(1), Duration::MAX];
    let mut first = heap(&world);
    let (hashed, ordered) = first
        .roots2::<PHashMap<PDuration, u64>, PBTreeMap<PDuration, PDuration>>("hashed", "ordered")
        .unwrap();
    for (number, span) in (0_u64..).zip(spans) {
        hashed.insert(span, number);
        ordered.insert(span, span);
    }
    first.psync().unwrap();
    drop(first);
    let mut second = again(&world);
    let (hashed, ordered) = second
        .roots2::<PHashMap<PDuration, u64>, PBTreeMap<PDuration, PDuration>>("hashed", "ordered")
        .unwrap();
    for (number, span) in (0_u64..).zip(spans) {
        assert_eq!((hashed.get(&span), hashed.get(&PDuration::from(span))), (Some(&number), Some(&number)));
        assert_eq!(ordered.get(&span).map(|value| Duration::from(*value)), Some(span));
        assert_eq!(format!("{:?}", PDuration::from(span)), format!("{span:?}"));
    }
    assert_eq!(hashed.get(&Duration::from_secs(1)), None);
    let mut sorted = spans;
    sorted.sort();
    assert!(ordered.keys().map(|span| Duration::from(*span)).eq(sorted), "the order is that of std");
    assert_eq!(ordered.range(Duration::from_nanos(1)..Duration::MAX).count(), 2);
}

#[test]
fn a_span_of_damaged_bytes_is_the_longest_and_no_panic() {
    let world = world();
    let mut heap = heap(&world);
    let spans = heap.root_or_default::<PVec<PDuration>>("spans").unwrap();
    spans.push(Duration::MAX);
    let at = spans.as_ptr().cast_mut().cast::<u8>();
    // SAFETY: the nanoseconds of the first element, which nothing borrows now.
    unsafe { at.add(8).cast::<u32>().write(u32::MAX) };
    let spans = heap.root_mut::<PVec<PDuration>>("spans").unwrap();
    assert_eq!(Duration::from(spans[0]), Duration::MAX);
}

#[test]
fn addresses_of_networks_come_back_and_are_keys() {
    let world = world();
    let addresses: [IpAddr; 5] = [
        Ipv4Addr::LOCALHOST.into(),
        Ipv4Addr::new(255, 1, 2, 3).into(),
        Ipv6Addr::LOCALHOST.into(),
        Ipv4Addr::LOCALHOST.to_ipv6_mapped().into(),
        Ipv6Addr::new(0xfe80, 1, 2, 3, 4, 5, 6, 7).into(),
    ];
    let mut first = heap(&world);
    let (hashed, ordered) =
        first.roots2::<PHashMap<PIpAddr, u64>, PBTreeMap<PIpAddr, u64>>("hashed", "ordered").unwrap();
    for (number, address) in (0_u64..).zip(addresses) {
        hashed.insert(address, number);
        ordered.insert(address, number);
    }
    first.psync().unwrap();
    drop(first);
    let mut second = again(&world);
    let (hashed, ordered) =
        second.roots2::<PHashMap<PIpAddr, u64>, PBTreeMap<PIpAddr, u64>>("hashed", "ordered").unwrap();
    for (number, address) in (0_u64..).zip(addresses) {
        assert_eq!(
            (hashed.get(&address), ordered.get(&address)),
            (Some(&number), Some(&number)),
            "{address}"
        );
        assert_eq!(hashed.get(&PIpAddr::from(address)), Some(&number));
        assert_eq!(PIpAddr::from(address).to_string(), address.to_string());
    }
    assert_eq!(hashed.get(&Ipv4Addr::LOCALHOST), Some(&0));
    assert_eq!(hashed.get(&Ipv6Addr::LOCALHOST), Some(&2));
    assert_eq!(hashed.get(&Ipv6Addr::UNSPECIFIED), None);
    let mut sorted = addresses;
    sorted.sort();
    assert!(ordered.keys().map(|key| IpAddr::from(*key)).eq(sorted), "the order is that of std");
}

#[test]
fn an_address_of_no_version_is_damage() {
    let world = world();
    let mut heap = heap(&world);
    let last = heap.root_or_insert_with::<PIpAddr, _>("last", |_| Ipv4Addr::LOCALHOST).unwrap();
    let at = std::ptr::from_mut(last).cast::<u8>();
    // SAFETY: the tag of the root, which nothing borrows now.
    unsafe { at.write(5) };
    assert_eq!(heap.root_mut::<PIpAddr>("last").unwrap_err().kind(), ErrorKind::Damaged);
}

#[test]
fn options_of_std_become_options_of_objects() {
    let world = world();
    let mut heap = heap(&world);
    let list = heap.root_or_default::<PVec<POption<PString>>>("list").unwrap();
    list.extend([Some("a text"), None]);
    list.push(Some(String::from("another")));
    let found: Vec<_> = list.iter().map(|value| value.as_ref().map(|text| text.as_str())).collect();
    assert_eq!(found, [Some("a text"), None, Some("another")]);
    let ports = heap.root_or_default::<PHashSet<PIpAddr>>("ports").unwrap();
    ports.insert(Ipv4Addr::LOCALHOST);
    assert!(ports.contains(&IpAddr::from([127, 0, 0, 1])));
    heap.psync().unwrap();
    assert_eq!((heap.check(), heap.audit().unwrap().leaks), (vec![], vec![]));
}

#[test]
fn queues_exchange_and_drain_as_those_of_std_do() {
    let world = world();
    let mut heap = heap(&world);
    let mut model: VecDeque<String> = VecDeque::new();
    let queue = heap.root_or_default::<PVecDeque<PString>>("queue").unwrap();
    for number in 0..13 {
        queue.push_back(format!("{number}").as_str());
        model.push_back(format!("{number}"));
        if number % 3 == 0 {
            queue.push_front("front");
            model.push_front("front".into());
        }
    }
    for (one, other) in [(0, 16), (3, 3), (7, 2), (16, 1)] {
        queue.swap(one, other);
        model.swap(one, other);
        assert!(queue.iter().map(|text| text.as_str()).eq(&model), "{queue:?}");
    }
    for range in [2..5, 0..1, 10..13, 4..4] {
        let taken: Vec<String> =
            queue.drain(range.clone()).take(2).map(|text| text.as_str().to_owned()).collect();
        assert_eq!(taken, model.drain(range).take(2).collect::<Vec<_>>());
        assert!(queue.iter().map(|text| text.as_str()).eq(&model), "{queue:?}");
    }
    assert_eq!(queue.drain(..).count(), model.len());
    heap.drop_root::<PVecDeque<PString>>("queue").unwrap();
    assert_eq!((heap.check(), heap.stats().unwrap().blocks), (vec![], 0));
}

#[test]
fn ordered_maps_are_split_and_joined_as_those_of_std_are() {
    let world = world();
    let mut heap = heap(&world);
    let map = heap.root_or_default::<PBTreeMap<u64, PString>>("map").unwrap();
    let mut model = BTreeMap::new();
    for number in 0..400_u64 {
        map.insert(number * 37 % 401, format!("{number}").as_str());
        model.insert(number * 37 % 401, format!("{number}"));
    }
    let same = |map: &PBTreeMap<u64, PString>, model: &BTreeMap<u64, String>| {
        map.iter()
            .map(|(key, text)| (*key, text.as_str()))
            .eq(model.iter().map(|(key, text)| (*key, text.as_str())))
    };
    for at in [500, 200, 0] {
        let (mut taken, mut expected) = (map.split_off(&at), model.split_off(&at));
        assert!(same(&taken, &expected) && same(map, &model), "at {at}");
        for number in [7, 250] {
            taken.insert(number, "other");
            expected.insert(number, "other".into());
        }
        map.append(&mut taken);
        model.append(&mut expected);
        assert!(taken.is_empty() && same(map, &model), "at {at}");
    }
    for (_, text) in map.range_mut(10..20) {
        text.push_str("!");
    }
    assert_eq!(map.values().filter(|text| text.ends_with('!')).count(), 10);
    heap.drop_root::<PBTreeMap<u64, PString>>("map").unwrap();
    assert_eq!((heap.check(), heap.stats().unwrap().blocks), (vec![], 0));
}

#[test]
fn values_of_an_ordered_set_move_where_no_node_is_added_or_removed() {
    let world = world();
    let mut heap = heap(&world);
    let set = heap.root_or_default::<PBTreeSet<PString>>("set").unwrap();
    let mut model = BTreeSet::new();
    let mut random = Seeded::new(54);
    let mut text = || format!("{:03}", random.u64(0..600));
    let (mut moved, mut left) = (0, 0);
    for round in 0..3_000 {
        let (from, to) = (text(), text());
        // The set grows from one value, and shrinks at the end.
        if round % 8 == 0 {
            set.insert(to.as_str());
            model.insert(to.clone());
        }
        if round > 2_400 {
            set.pop_first();
            model.pop_first();
        }
        let may = model.contains(&from) && !model.contains(&to);
        let does = set.move_within(from.as_str(), to.as_str(), |value| {
            value.clear();
            value.push_str(&to);
        });
        assert!(may || !does, "{from} to {to}");
        if does {
            assert!(model.remove(&from) && model.insert(to));
        }
        (moved, left) = (moved + usize::from(does), left + usize::from(may && !does));
        if round % 50 == 0 || set.len() < 12 {
            assert!(set.iter().map(PString::as_str).eq(model.iter().map(String::as_str)), "round {round}");
        }
    }
    println!("{moved} moved, {left} left");
    assert!(moved > 3 * left && left > 0, "{moved} moved, {left} left");
    heap.drop_root::<PBTreeSet<PString>>("set").unwrap();
    assert_eq!((heap.check(), heap.stats().unwrap().blocks), (vec![], 0));
}

#[derive(Persist)]
#[repr(C)]
struct Link<'h> {
    next: Option<PBox<'h, Link<'h>>>,
    number: u64,
}

#[test]
fn a_list_of_a_million_boxes_is_dropped() {
    const NODES: u64 = 1_000_000;
    let world = world();
    let pool = world.options().format(world.path(), 256 << 20).unwrap();
    let mut heap = pool.heap("o", 128 << 20).unwrap();
    let (list, place) = heap.root_and_heap::<Option<PBox<Link>>>("list").unwrap();
    for number in 0..NODES {
        let next = list.take();
        *list = Some(PBox::new_in(Link { next, number }, place));
    }
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(512 << 10);
        let dropped =
            small.spawn_scoped(scope, || assert_eq!(list.take().map(|first| first.number), Some(NODES - 1)));
        dropped.unwrap().join().unwrap();
    });
    let stats = heap.stats().unwrap();
    assert_eq!((heap.check(), stats.blocks - stats.roots), (vec![], 0));
}

type Pairs<'h> = PHashMap<'h, (u8, u64), (PString<'h>, u16, POption<u64>)>;

#[test]
fn tuples_come_back_and_are_keys() {
    let world = world();
    let mut first = heap(&world);
    let (pairs, place) = first.root_and_heap::<Pairs>("pairs").unwrap();
    for number in 0..200_u8 {
        let value = (PString::from_in(&format!("number {number}"), place), 7, POption::some(9));
        pairs.insert((number, u64::MAX), value);
    }
    let ordered = first.root_or_default::<PBTreeMap<(u64, u8, [u16; 3]), (u64,)>>("ordered").unwrap();
    for number in 0..200 {
        let _ = ordered.insert((number % 3, number as u8, [1, 2, 3]), (number,));
    }
    first.psync().unwrap();
    drop(first);
    let mut second = again(&world);
    assert_eq!(second.check(), []);
    let audit = second.audit().unwrap();
    let whole = audit.leaks.is_empty() && audit.referred == 0 && audit.findings.is_empty();
    assert!(whole && audit.roots.iter().all(|root| root.described), "{audit:?}");
    let pairs = second.root_mut::<Pairs>("pairs").unwrap();
    let (name, kind, option) = &pairs[&(41, u64::MAX)];
    assert_eq!((name.as_str(), *kind, option.as_ref()), ("number 41", 7, Some(&9)));
    assert!(pairs.get(&(41, 0)).is_none());
    let ordered = second.root_mut::<PBTreeMap<(u64, u8, [u16; 3]), (u64,)>>("ordered").unwrap();
    assert_eq!(ordered.keys().next(), Some(&(0, 0, [1, 2, 3])));
    assert_eq!(ordered.range((2, 0, [0; 3])..).next().map(|(_, value)| *value), Some((2,)));
}

#[test]
fn a_tuple_of_another_order_is_another_type() {
    let world = world();
    let mut heap = heap(&world);
    let _ = heap.root_or_insert_with::<(u8, u64), _>("pair", |_| (1, 2)).unwrap();
    let error = heap.root_mut::<(u64, u8)>("pair").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RootType);
    let places = [std::mem::offset_of!((u8, u64), 0), std::mem::offset_of!((u8, u64), 1)];
    let root = heap.roots().unwrap().remove(0);
    let definition = root.definitions().unwrap().remove(0);
    assert_eq!(definition.name, "(u8,u64)");
    assert!(definition.fields.iter().map(|field| field.offset as usize).eq(places));
}
