//! Optional features: serde, events of `tracing`, containers of other libraries in a heap.

use indelible::collections::{
    HeapRef, InHeap, PBTreeMap, PBTreeSet, PBinaryHeap, PBox, PDuration, PHashMap, PHashSet, PIpAddr,
    POption, PString, PVec, PVecDeque,
};
use indelible::{ErrorKind, Heap, HeapOptions, Outside, Pool};
use serde::de::DeserializeSeed;
use serde_json::{Deserializer, Value, json};
use std::net::Ipv4Addr;
use std::sync::{Mutex, Once};
use std::thread::{ThreadId, current};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

type All<'h> = PHashMap<'h, PString<'h>, PBTreeMap<'h, u32, PVec<'h, POption<PBox<'h, PString<'h>>>>>>;

fn pool() -> (tempfile::TempDir, Pool) {
    // Before any event: each event site caches whether a listener exists.
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| tracing::subscriber::set_global_default(Messages).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    (dir, pool)
}

fn blocks(heap: &Heap) -> u64 {
    heap.stats().unwrap().blocks
}

#[test]
fn values_come_back_as_they_were_written() {
    let (_dir, pool) = pool();
    let mut heap = pool.heap("o", 1 << 20).unwrap();
    let text = json!({ "trees": { "1": ["oak", null, "a name that is longer than the others"], "7": [] }, "none": {} });
    let (all, place) = heap.root_and_heap::<All>("all").unwrap();
    let seed = InHeap::<All>::new(place);
    *all = seed.deserialize(&mut Deserializer::from_str(&text.to_string())).unwrap();
    assert_eq!(serde_json::to_value(&*all).unwrap(), text);
    assert_eq!(all["trees"][&1][0].as_ref().unwrap().as_str(), "oak");
    heap.psync().unwrap();
    drop(heap);
    let mut heap = pool.heap("o", 1 << 20).unwrap();
    assert_eq!(serde_json::to_value(heap.root_mut::<All>("all").unwrap()).unwrap(), text);
    assert_eq!((heap.check(), heap.audit().unwrap().leaks), (vec![], vec![]));
}

#[test]
fn each_container_is_written_as_that_of_std() {
    let (_dir, pool) = pool();
    let mut heap = pool.heap("o", 1 << 20).unwrap();
    macro_rules! sequence {
        ($($container:ty: $name:literal),*) => { $(
            let (all, place) = heap.root_and_heap::<$container>($name).unwrap();
            *all = InHeap::<$container>::new(place).deserialize(&json!([3, 1, 2])).unwrap();
            let Value::Array(mut found) = serde_json::to_value(&*all).unwrap() else { panic!("no sequence") };
            found.sort_by_key(Value::as_u64);
            assert_eq!(found, [1, 2, 3], $name);
        )* };
    }
    sequence!(PVec<u8>: "vec", PVecDeque<u16>: "deque", PBinaryHeap<u32>: "heap", PHashSet<u64>: "set", PBTreeSet<i8>: "ordered");
}

#[test]
fn times_and_addresses_are_written_as_those_of_std() {
    let (_dir, pool) = pool();
    let mut heap = pool.heap("o", 1 << 20).unwrap();
    let (all, place) = heap.root_and_heap::<PHashMap<PIpAddr, PDuration>>("all").unwrap();
    let text = json!({ "127.0.0.1": { "secs": 3, "nanos": 5 }, "::1": { "secs": 0, "nanos": 0 } });
    let seed = InHeap::<PHashMap<PIpAddr, PDuration>>::new(place);
    *all = seed.deserialize(&mut Deserializer::from_str(&text.to_string())).unwrap();
    assert_eq!(serde_json::to_value(&*all).unwrap(), text);
    assert_eq!(all.get(&Ipv4Addr::LOCALHOST), Some(&Duration::new(3, 5).into()));
}

#[test]
fn a_text_that_cannot_be_read_leaves_nothing_in_the_heap() {
    let (_dir, pool) = pool();
    let mut heap = pool.heap_with("o", 64 << 10, indelible::HeapOptions::new()).unwrap();
    heap.root_or_default::<All>("all").unwrap();
    let before = blocks(&heap);
    let place = heap.heap_ref().unwrap();
    for wrong in
        [r#"{"a":{"1":["x","y",7]}}"#, r#"{"a":{"1":["x"]},"b":{"x":[]}}"#, r#"{"a":{"1":["x"]"#, "[]"]
    {
        InHeap::<All>::new(place).deserialize(&mut Deserializer::from_str(wrong)).unwrap_err();
    }
    let much = json!(vec!["a text that needs a block"; 5000]);
    let error = InHeap::<PVec<PString>>::new(place).deserialize(&much).unwrap_err();
    assert!(error.to_string().contains("no room for"), "{error}");
    assert_eq!(blocks(&heap), before);
}

static MESSAGES: Mutex<Vec<(ThreadId, String)>> = Mutex::new(Vec::new());

struct Messages;

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => self.0.insert_str(0, &format!("{value:?}:")),
            name => self.0 += &format!(" {name}"),
        }
    }
}

impl Subscriber for Messages {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "indelible"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(format!(" {}", event.metadata().level()));
        event.record(&mut text);
        MESSAGES.lock().unwrap().push((current().id(), text.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn attaches_psyncs_growth_and_failures_are_events() {
    let (_dir, pool) = pool();
    let mut object = pool.create_attached("o", 8192).unwrap();
    object.as_mut_slice().fill(1);
    object.psync().unwrap();
    object.psync_cut().unwrap();
    object.grow(20_000).unwrap();
    assert_eq!(object.grow(1).unwrap_err().kind(), ErrorKind::BadSize);
    let expected = [
        "attached: DEBUG object bytes",
        "psync: TRACE object logged_bytes",
        "psync: TRACE object logged_bytes",
        "grown: DEBUG object bytes",
        "failed: DEBUG error",
    ];
    assert_eq!(own_messages(), expected);
}

fn own_messages() -> Vec<String> {
    let mut messages = MESSAGES.lock().unwrap();
    let (own, others) = messages.drain(..).partition(|(thread, _)| *thread == current().id());
    *messages = others;
    let own: Vec<(ThreadId, String)> = own;
    own.into_iter().map(|(_, text)| text).collect()
}

#[test]
fn a_recovery_is_an_event() {
    let (dir, pool) = pool();
    let mut object = pool.create_attached("o", 1 << 20).unwrap();
    object.as_mut_slice()[70_000] = 1;
    object.psync().unwrap();
    object.as_mut_slice()[70_000] = 2;
    object.psync().unwrap();
    let died = dir.path().join("died");
    std::fs::copy(dir.path().join("p"), &died).unwrap();
    drop((object, pool));
    own_messages();
    let pool = Pool::open(&died).unwrap();
    let object = pool.attach("o").unwrap();
    assert_eq!(object.as_slice()[70_000], 2);
    assert_eq!(own_messages(), ["attached and recovered: INFO object bytes recovered_bytes"]);
}

#[test]
fn containers_of_other_libraries_have_their_blocks_in_the_heap() {
    let (_dir, pool) = pool();
    let mut heap = pool.heap("o", 1 << 20).unwrap();
    assert_eq!(heap.rung(), "explicit");
    {
        let place = heap.heap_ref().unwrap();
        let inside = |address: *const u8, heap: &Heap| {
            let offset = address.addr().wrapping_sub(heap.base().addr());
            offset < heap.size()
        };
        let mut numbers = allocator_api2::vec::Vec::new_in(place);
        numbers.extend(0..100_000_u64);
        assert_eq!(numbers.iter().sum::<u64>(), 99_999 * 50_000);
        assert!(inside(numbers.as_ptr().cast(), &heap), "and the heap grew for it");
        let mut table = Table::with_hasher_in(Default::default(), place);
        table.extend((0..5000_u64).map(|key| (key, [key; 3])));
        table.retain(|key, _| key % 3 == 0);
        table.shrink_to_fit();
        assert!((0..5000).all(|key| table.get(&key) == (key % 3 == 0).then_some(&[key; 3])));
        let aligned = allocator_api2::boxed::Box::new_in(Wide([1; 64]), place);
        assert!(
            (&raw const *aligned).addr().is_multiple_of(64) && inside((&raw const *aligned).cast(), &heap)
        );
        assert_eq!(aligned.0, [1; 64]);
        let nothing = allocator_api2::boxed::Box::new_in((), place);
        let full: Result<allocator_api2::vec::Vec<u8, _>, _> = {
            let mut much = allocator_api2::vec::Vec::new_in(place);
            much.try_reserve(1 << 40).map(|()| much)
        };
        assert!(full.is_err());
        assert!(blocks(&heap) >= 3);
        drop((numbers, table, aligned, nothing));
        assert_eq!(blocks(&heap), 0);
    }
    assert_ne!(heap.rung(), "explicit", "stores by address are found");
    assert_eq!(heap.check(), []);
    heap.psync().unwrap();
}

#[repr(align(64))]
struct Wide([u8; 64]);

type Table<'h> = hashbrown::HashMap<
    u64,
    [u64; 3],
    std::hash::BuildHasherDefault<std::collections::hash_map::DefaultHasher>,
    HeapRef<'h>,
>;

#[test]
fn the_address_in_an_empty_table_is_found_before_it_is_durable() {
    let (_dir, pool) = pool();
    let object = pool.create_attached("o", 1 << 20).unwrap();
    let mut heap = Heap::format_with(object, HeapOptions::new().audit(indelible::Audit::Everything)).unwrap();
    let block = heap.malloc(size_of::<Table<'_>>()).unwrap();
    fn found(heap: &mut Heap) -> Vec<Outside> {
        heap.stray_pointers().unwrap().iter().map(|stray| stray.into).collect()
    }
    // SAFETY: a block of its own, large enough; each table is dropped before the next takes its
    // place, and before the heap.
    unsafe {
        block.cast().write(Table::with_hasher_in(Default::default(), heap.heap_ref().unwrap()));
        assert_eq!(found(&mut heap), [Outside::Program]);
        block.cast::<Table<'_>>().drop_in_place();
        block.cast().write(Table::with_capacity_and_hasher_in(
            1,
            Default::default(),
            heap.heap_ref().unwrap(),
        ));
        assert_eq!(found(&mut heap), []);
        block.cast::<Table<'_>>().as_mut().insert(1, [1; 3]);
        block.cast::<Table<'_>>().as_mut().clear();
        assert_eq!(found(&mut heap), [], "a table that was emptied keeps its slots");
        block.cast::<Table<'_>>().as_mut().shrink_to_fit();
        assert_eq!(found(&mut heap), [Outside::Program], "and one that was shrunk does not");
        block.cast::<Table<'_>>().drop_in_place();
    }
    let error = heap.psync().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StrayPointer, "{error}");
    // SAFETY: the block, which is not used any more.
    unsafe { heap.free(block.as_ptr()).unwrap() };
    heap.psync().unwrap();
}
