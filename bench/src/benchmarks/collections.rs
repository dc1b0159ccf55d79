//! Maps in an object beside std's in DRAM: insert, look up, walk, remove, without psync.

use crate::Result;
use crate::environment::{Environment, Medium, discard, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::pattern::Random;
use crate::stats::{Samples, Spread};
use indelible::collections::{KeyHash, PBTreeMap, PHashMap, PString};
use indelible::{CreateOptions, Heap, Persist};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher};
use std::time::Instant;

const SIZE: u64 = 1 << 30;

/// std's map with our hash, differently seeded each time: else branch prediction favours repeated
/// turns.
#[derive(Clone, Copy)]
struct Same(u64);

impl Default for Same {
    fn default() -> Same {
        Same(std::hash::RandomState::new().hash_one(0))
    }
}

struct SameHasher(KeyHash);

impl BuildHasher for Same {
    type Hasher = SameHasher;

    #[inline]
    fn build_hasher(&self) -> SameHasher {
        SameHasher(KeyHash::new(self.0))
    }
}

impl Hasher for SameHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0.bytes(bytes);
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0.number(number);
    }

    #[inline]
    fn write_u8(&mut self, _: u8) {}

    #[inline]
    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

type Words<'h> = PHashMap<'h, PString<'h>, u64>;
type Names<'h> = PBTreeMap<'h, PString<'h>, u64>;

trait Map<K: ?Sized> {
    fn add(&mut self, key: &K, value: u64);
    fn look(&self, key: &K) -> Option<u64>;
    fn sum(&self) -> u64;
    fn take(&mut self, key: &K) -> Option<u64>;
}

macro_rules! map {
    ($ty:ty, $key:ty, $of:ident => $own:expr) => {
        impl Map<$key> for $ty {
            #[inline]
            fn add(&mut self, $of: &$key, value: u64) {
                self.insert($own, value);
            }

            #[inline]
            fn look(&self, key: &$key) -> Option<u64> {
                self.get(key).copied()
            }

            fn sum(&self) -> u64 {
                self.iter().fold(0, |sum, (_, value)| sum.wrapping_add(*value))
            }

            #[inline]
            fn take(&mut self, key: &$key) -> Option<u64> {
                self.remove(key)
            }
        }
    };
}

map!(PHashMap<'_, u64, u64>, u64, key => *key);
map!(HashMap<u64, u64>, u64, key => *key);
map!(HashMap<u64, u64, Same>, u64, key => *key);
map!(PBTreeMap<'_, u64, u64>, u64, key => *key);
map!(BTreeMap<u64, u64>, u64, key => *key);
map!(Words<'_>, str, key => key);
map!(HashMap<String, u64>, str, key => key.to_owned());
map!(HashMap<String, u64, Same>, str, key => key.to_owned());
map!(Names<'_>, str, key => key);
map!(BTreeMap<String, u64>, str, key => key.to_owned());

const WORK: [&str; 6] =
    ["insert, random order", "look up", "look up what is absent", "walk", "insert again", "remove"];

/// Nanoseconds per key for each kind of work. Not inlined: the compiler would know every field of
/// std's map.
#[inline(never)]
fn measure<K: ?Sized, M: Map<K>>(map: &mut M, keys: &[&K], order: &[usize], absent: &[&K]) -> [f64; 6] {
    let timed = |work: &mut dyn FnMut() -> u64| {
        let start = Instant::now();
        std::hint::black_box(work());
        start.elapsed().as_nanos() as f64 / keys.len() as f64
    };
    let insert = timed(&mut || {
        keys.iter().for_each(|key| map.add(key, 1));
        0
    });
    let look = timed(&mut || order.iter().filter_map(|at| map.look(keys[*at])).sum());
    let miss = timed(&mut || absent.iter().filter_map(|key| map.look(key)).sum());
    let walk = timed(&mut || map.sum());
    let again = timed(&mut || {
        order.iter().for_each(|at| map.add(keys[*at], 2));
        0
    });
    let remove = timed(&mut || order.iter().filter_map(|at| map.take(keys[*at])).sum());
    [insert, look, miss, walk, again, remove]
}

fn random(count: usize, mut state: u64) -> Vec<u64> {
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..count).map(next).collect()
}

struct Keys {
    numbers: Vec<u64>,
    absent: Vec<u64>,
    words: Vec<String>,
    absent_words: Vec<String>,
    order: Vec<usize>,
}

impl Keys {
    fn new(count: usize) -> Keys {
        let (numbers, absent) = (random(count, 0x9e37_79b9), random(count, 0x85eb_ca6b));
        let word = |number: &u64| format!("{:.*}", 6 + (*number % 12) as usize, format!("{number:020}"));
        let words =
            |numbers: &[u64], prefix: &str| numbers.iter().map(|n| prefix.to_owned() + &word(n)).collect();
        Keys {
            words: words(&numbers, ""),
            absent_words: words(&absent, "-"),
            numbers,
            absent,
            order: (0..count).collect(),
        }
    }

    /// Else processors learn the order.
    fn shuffle(&mut self, random: &mut Random) {
        random.shuffle(&mut self.numbers);
        random.shuffle(&mut self.words);
        random.shuffle(&mut self.order);
    }
}

type Turn = fn(&mut Heap, &Keys) -> Result<Vec<[f64; 6]>>;

fn own<'h, K: ?Sized, M: Map<K> + Persist<'h> + Default>(
    heap: &'h mut Heap,
    keys: &[&K],
    order: &[usize],
    absent: &[&K],
) -> Result<[f64; 6]> {
    Ok(measure(heap.root_or_default::<M>("map")?, keys, order, absent))
}

macro_rules! turn {
    ($own:ty, [$($std:ty),+], $keys:ident, $absent:ident, $each:expr) => {
        |heap, keys| {
            let present: Vec<_> = keys.$keys.iter().map($each).collect();
            let absent: Vec<_> = keys.$absent.iter().map($each).collect();
            let ours = own::<_, $own>(heap, &present, &keys.order, &absent)?;
            heap.drop_root::<$own>("map")?;
            Ok(vec![ours, $(measure(&mut <$std>::default(), &present, &keys.order, &absent)),+])
        }
    };
}

const MAPS: [(&str, Turn); 4] = [
    (
        "hash map, u64 → u64",
        turn!(
            PHashMap<'_, u64, u64>,
            [HashMap<u64, u64>, HashMap<u64, u64, Same>],
            numbers,
            absent,
            |number| number
        ),
    ),
    (
        "hash map, text → u64",
        turn!(
            Words<'_>,
            [HashMap<String, u64>, HashMap<String, u64, Same>],
            words,
            absent_words,
            String::as_str
        ),
    ),
    (
        "ordered map, u64 → u64",
        turn!(PBTreeMap<'_, u64, u64>, [BTreeMap<u64, u64>], numbers, absent, |number| number),
    ),
    (
        "ordered map, text → u64",
        turn!(Names<'_>, [BTreeMap<String, u64>], words, absent_words, String::as_str),
    ),
];

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let pool = environment.pool(Medium::Memory, "collections", SIZE + (64 << 20))?;
    pool.create_with("heap", &CreateOptions::new(SIZE).sparse(true))?;
    let mut heap = Heap::format(pool.attach("heap")?)?;
    let counts: &[usize] = if environment.quick { &[1_000, 10_000] } else { &[1_000, 10_000, 300_000] };
    let bar = progress(counts.len() * MAPS.len(), "collections");
    for count in counts {
        let (turns, most) = if environment.quick { (5, 50) } else { (7, 200) };
        let turns = (200_000 / count).clamp(turns, most);
        let mut keys = Keys::new(*count);
        let mut shuffler = Random::new(*count as u64);
        let mut table = Table::new(
            format!("{count} keys: nanoseconds a key, in an object and of std's map in DRAM"),
            &[
                ("map", Unit::Text),
                ("work", Unit::Text),
                ("indelible", Unit::Nanoseconds),
                ("std", Unit::Nanoseconds),
                ("to std", Unit::Ratio),
                ("std, same hash", Unit::Nanoseconds),
                ("to that", Unit::Ratio),
            ],
        );
        for (name, turn) in MAPS {
            let mut samples: [[Samples; 6]; 3] = Default::default();
            for number in 0..=turns {
                keys.shuffle(&mut shuffler);
                let figures = turn(&mut heap, &keys)?;
                if number > 0 {
                    for (samples, figures) in samples.iter_mut().zip(figures) {
                        samples.iter_mut().zip(figures).for_each(|(samples, figure)| samples.push(figure));
                    }
                }
            }
            bar.inc(1);
            for (index, work) in WORK.iter().enumerate() {
                let [ours, std, same] = samples.each_ref().map(|samples| &samples[index]);
                let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
                let mut row = vec![name.into(), (*work).into(), cell(ours)];
                for (other, whose) in [(std, "std"), (same, "std with the same hash")] {
                    let ratio = ours.median() / other.median();
                    if other.len() > 0 {
                        row.extend([cell(other), ratio.into()]);
                        let what = format!("{name}, {count} keys, {work}: to {whose}");
                        section.goals.push(Goal::at_most(what, Unit::Ratio, 1.1, ratio));
                    }
                }
                table.row(row);
            }
        }
        section.tables.push(table);
    }
    bar.finish_and_clear();
    section.notes.push(
        "std's hash maps with the hash they have by default, and with that of ours: the latter compares the tables alone. \
         Keys come in another order in every turn. No psync while measuring. Blocks that the first turn touched are used again; std's maps allocate with the \
         system's allocator."
            .into(),
    );
    drop(heap);
    discard(pool);
    Ok(())
}
