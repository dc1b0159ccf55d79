use crate::support::{Ground, World};
use indelible::collections::{PHashMap, PVec};
use indelible::{Heap, Tracking};
use indelible_testing::Seeded;

type Bytes<'h> = PVec<'h, u8>;
type Values<'h> = PHashMap<'h, Bytes<'h>, Bytes<'h>>;

const KEYS: u64 = 20_000;

fn key(number: u64) -> String {
    format!("key:{number:012}")
}

fn value(random: &mut Seeded) -> [u8; 64] {
    let mut value = [0; 64];
    value.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&random.u64(..).to_le_bytes()));
    value
}

fn set(heap: &mut Heap, number: u64, value: &[u8]) {
    let values = heap.root_mut::<Values>("values").unwrap();
    let changed = values.update(key(number).as_bytes(), |text| {
        text.clear();
        text.try_extend_from_slice(value)
    });
    match changed {
        Some(changed) => changed.unwrap(),
        None => drop(values.try_insert(key(number).as_bytes(), value).unwrap()),
    }
}

fn bytes_of(
    heap: &mut Heap,
    random: &mut Seeded,
    changes: u64,
    mut next: impl FnMut(&mut Seeded) -> u64,
) -> [f64; 2] {
    const PSYNCS: u64 = 20;
    let count = |heap: &mut Heap| [heap.psync_stats().logged_bytes, heap.object().lane_use().bytes];
    let before = count(heap);
    for _ in 0..PSYNCS {
        for _ in 0..changes {
            let (number, value) = (next(random), value(random));
            set(heap, number, &value);
        }
        heap.psync().unwrap();
    }
    let after = count(heap);
    [0, 1].map(|of| (after[of] - before[of]) as f64 / (PSYNCS * changes) as f64)
}

#[test]
fn a_change_of_a_value_is_the_lines_of_the_value() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let pool = world.format();
    let mut heap = pool.heap("heap", 16 << 20).unwrap();
    heap.root_or_default::<Values>("values").unwrap();
    let mut random = Seeded::new(1);
    // Twice, so that the pages are in memory: a marked line of an absent page counts as changed.
    for number in (0..KEYS).chain(0..KEYS) {
        let value = value(&mut random);
        set(&mut heap, number, &value);
        if number % 800 == 0 {
            heap.psync().unwrap();
        }
    }
    heap.psync().unwrap();
    for changes in [1, 50, 800] {
        let [lines, lane] = bytes_of(&mut heap, &mut random, changes, |random| random.u64(..KEYS));
        println!(
            "{changes} changed values in a psync: {lines:.0} bytes of lines, {lane:.0} of the lane each"
        );
        // One line, 16 bytes of its place, and the batch's header and section, a line each.
        assert!(
            lines <= 64.0 && lane <= 64.0 + 16.0 + 192.0 / changes as f64,
            "{changes}: {lines} and {lane}"
        );
    }
    let mut number = KEYS;
    for changes in [1, 50, 800] {
        let [lines, lane] = bytes_of(&mut heap, &mut random, changes, |_| {
            number += 1;
            number
        });
        println!("{changes} new keys in a psync: {lines:.0} bytes of lines, {lane:.0} of the lane each");
        // The value, the key, the slot that may reach over two lines, and the byte that marks it
        // used; all but the first and the third are shared.
        assert!(
            lines <= [520.0, 260.0, 220.0][usize::from(changes > 1) + usize::from(changes > 50)],
            "{changes}: {lines}"
        );
    }
}
