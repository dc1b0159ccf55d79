//! Optional features: values that serde writes and reads, events of `tracing`.

use indelible::collections::{
    InHeap, PBTreeMap, PBTreeSet, PBinaryHeap, PBox, PHashMap, PHashSet, POption, PString, PVec, PVecDeque,
};
use indelible::{ErrorKind, Heap, Pool};
use serde::de::DeserializeSeed;
use serde_json::{Deserializer, Value, json};
use std::sync::{Mutex, Once};
use std::thread::{ThreadId, current};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

type All<'h> = PHashMap<'h, PString<'h>, PBTreeMap<'h, u32, PVec<'h, POption<PBox<'h, PString<'h>>>>>>;

fn pool() -> (tempfile::TempDir, Pool) {
    // Before any event: whether anybody listens is remembered for each place that makes some.
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

/// The messages of events, with the names of their fields, and the threads that made them.
static MESSAGES: Mutex<Vec<(ThreadId, String)>> = Mutex::new(Vec::new());

/// Keeps them.
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
    let messages = MESSAGES.lock().unwrap();
    let own = messages.iter().filter(|(thread, _)| *thread == current().id());
    assert_eq!(own.map(|(_, text)| text.as_str()).collect::<Vec<_>>(), expected);
}
