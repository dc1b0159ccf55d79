//! Looks of stores that change and lock nothing.

use indelible_store::format::{TABLE_LANE, TABLE_LANE_LEN};
use indelible_store::medium::Medium;
use indelible_store::store::Store;
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::process;
use indelible_testing::scenario::formatted;
use indelible_testing::{Hook, Hooked, SimConfig, SimMedium};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const KEY: Key<'static> = Key(&[]);

/// Bytes read of the table's lane.
#[derive(Default)]
struct OfLane(AtomicU64);

impl Hook for OfLane {
    fn reads(&self, range: Range<u64>) {
        let (from, to) = (range.start.max(TABLE_LANE), range.end.min(TABLE_LANE + TABLE_LANE_LEN));
        self.0.fetch_add(to.saturating_sub(from), Ordering::Relaxed);
    }
}

impl OfLane {
    fn taken(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

fn writer(medium: &SimMedium) -> Arc<Store> {
    Store::open(Arc::new(medium.handle()), process(1)).unwrap()
}

fn create(store: &Arc<Store>, name: &str) {
    store.create(name, &CreateOptions { size: 4096, ..CreateOptions::default() }).unwrap();
}

#[test]
fn looks_read_the_tables_lane_once_while_it_does_not_change() {
    let medium = formatted(4 << 20, SimConfig::default());
    let store = writer(&medium);
    (0..50).for_each(|number| create(&store, &format!("object {number}")));
    let hooked = Hooked::new(Arc::new(medium.read_only_handle()), OfLane::default());
    let looks = Store::open(hooked.clone(), process(2)).unwrap();
    let count = || {
        let entries = looks.entries().unwrap();
        looks.statuses(&entries, None, |_, _| ()).unwrap().into_iter().flatten().count()
    };
    assert_eq!(count(), 50);
    let first = hooked.taken();
    assert_eq!(count(), 50);
    let later = hooked.taken();
    assert!(later * 10 < first, "{later} bytes of the lane, and {first} at first");
    create(&store, "another");
    assert_eq!(count(), 51);
    assert!(hooked.taken() > later);
    store.destroy("another", KEY).unwrap();
    assert_eq!(count(), 50);
}

#[test]
fn an_unwanted_object_is_not_judged_and_one_with_a_damaged_name_is_reported() {
    let medium = formatted(4 << 20, SimConfig::default());
    let store = writer(&medium);
    ["a/1", "a/2", "b/1", "b/2"].into_iter().for_each(|name| create(&store, name));
    // A checkpoint comes between, after which the lane does not show these entries any more.
    for _ in 0..500 {
        create(&store, "passing");
        store.destroy("passing", KEY).unwrap();
    }
    let wanted = |name: &str| name.starts_with("a/");
    let of_a = || {
        let looks = Store::open(Arc::new(medium.read_only_handle()), process(2)).unwrap();
        let entries = looks.entries().unwrap();
        let found = looks.statuses(&entries, Some(&wanted), |object, _| object.entry.name()).unwrap();
        let (names, errors): (Vec<_>, Vec<_>) = found.into_iter().flatten().partition(Result::is_ok);
        (names.into_iter().map(Result::unwrap).collect::<Vec<_>>(), errors.len())
    };
    let both = vec!["a/1".to_owned(), "a/2".to_owned()];
    assert_eq!(of_a(), (both.clone(), 0));
    let place = |name: &str| store.find(name).unwrap().offset;
    let flip = |at: u64| {
        let mut byte = [0];
        medium.handle().read(at, &mut byte).unwrap();
        medium.handle().write(at, &[byte[0] ^ 1]).unwrap();
    };
    const SIZE: u64 = 40;
    const NAME: u64 = 384;
    flip(place("b/1") + SIZE);
    assert_eq!(of_a(), (both.clone(), 0));
    let (another, own) = (place("b/2"), place("a/2"));
    flip(another + NAME);
    assert_eq!(of_a(), (both.clone(), 1));
    flip(own + SIZE);
    assert_eq!(of_a(), (both[..1].to_vec(), 2));
}
