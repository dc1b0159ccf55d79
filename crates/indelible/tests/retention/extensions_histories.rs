use crate::histories::{Names, Type};
use crate::record_histories::{Step, encoded, random_record, random_value};
use indelible::raw::{self, ExtensionOf, Permission};
use indelible::{Error, ErrorKind, Pool, TypeInfo};
use indelible_testing::Seeded;

#[repr(C)]
struct Item {
    number: u64,
    link: u64,
}

const LINK: usize = std::mem::offset_of!(Item, link);
const LINES: &str = "the program's own";

#[derive(Clone)]
struct Known {
    of: Type,
    identity: u64,
}

impl Known {
    fn new(of: Type) -> Known {
        let identity = TypeInfo::described(&of.name(), &of.describe()).fingerprint as u64;
        Known { of, identity }
    }

    fn random_bytes(&self, rng: &mut Seeded) -> Vec<u8> {
        encoded(&self.of, &random_value(&self.of, rng))
    }

    fn extension(&self, number: usize) -> ExtensionOf<'static> {
        let (size, align) = (self.of.size() as usize, self.of.align() as usize);
        ExtensionOf { of: "item", number, size, align, identity: self.identity }
    }
}

type Version = Vec<Known>;

type Chain = Vec<(u64, Vec<u8>)>;

fn versions(rng: &mut Seeded, names: &mut Names) -> Vec<Version> {
    let mut all = vec![Version::new()];
    for _ in 0..rng.u8(2..6) {
        let mut next = all[all.len() - 1].clone();
        let changed = (!next.is_empty() && rng.u8(..4) == 0).then(|| rng.usize(..next.len()));
        match changed {
            Some(at) => next[at] = Known::new(Step::random(&next[at].of, rng, names).0),
            None => next.push(Known::new(random_record(rng, names, 1))),
        }
        all.push(next);
    }
    all
}

struct Value {
    at: *mut Item,
    number: u64,
    chain: Chain,
}

impl Value {
    fn new(object: *const u8, number: u64) -> Value {
        // SAFETY: no other thread uses the object.
        let at: *mut Item = unsafe { raw::calloc(object, 1, size_of::<Item>()) }.unwrap().as_ptr().cast();
        // SAFETY: a new block.
        unsafe { (*at).number = number };
        Value { at, number, chain: Chain::new() }
    }

    fn link(&self) -> *const u64 {
        // SAFETY: a field of the value.
        unsafe { &raw const (*self.at).link }
    }

    fn read(&self, number: usize, known: &Known) -> indelible::Result<Option<Vec<u8>>> {
        let of = known.extension(number);
        // SAFETY: the link of a value of an object that stays attached.
        let found = unsafe { raw::extension(self.link(), &of, || LINES.to_owned()) }?;
        // SAFETY: all fields of an extension.
        Ok(found.map(|at| unsafe { std::slice::from_raw_parts(at.as_ptr(), of.size) }.to_vec()))
    }

    fn check(&self, version: &Version, refused: &mut u64, case: &str) {
        // SAFETY: a field of the value.
        assert_eq!(unsafe { (*self.at).number }, self.number, "{case}");
        for (number, known) in (1..).zip(version) {
            match (self.read(number, known), self.chain.get(number - 1)) {
                (Ok(found), Some((identity, bytes))) if *identity == known.identity => {
                    assert_eq!(found.as_ref(), Some(bytes), "{case}, extension {number}");
                }
                (Ok(None), None) => {}
                (Err(error), Some((identity, _))) if *identity != known.identity => {
                    assert_eq!(error.kind(), ErrorKind::RootType, "{case}, extension {number}: {error}");
                    assert!(error.to_string().contains(LINES), "{error}");
                    *refused += 1;
                }
                (found, expected) => panic!("{case}, extension {number}: {found:?}, expected {expected:?}"),
            }
        }
    }

    fn extend(&mut self, version: &Version, upto: usize, rng: &mut Seeded) {
        for (number, known) in (1..).zip(version).take(upto) {
            let of = known.extension(number);
            let initial = known.random_bytes(rng);
            let write = |fields: *mut u8| {
                // SAFETY: room for the fields.
                unsafe { fields.copy_from_nonoverlapping(initial.as_ptr(), initial.len()) };
                Ok::<(), Error>(())
            };
            // SAFETY: the link of a value of an object that stays attached.
            let made = unsafe { raw::extend(self.link(), &of, || LINES.to_owned(), write) };
            let Ok(fields) = made else { return };
            if self.chain.len() < number {
                self.chain.push((known.identity, initial));
            }
            if number == upto {
                let stored = known.random_bytes(rng);
                // SAFETY: all fields of an extension, known to no other code.
                unsafe { fields.copy_from_nonoverlapping(std::ptr::NonNull::from(&stored[0]), stored.len()) };
                self.chain[number - 1].1 = stored;
            }
        }
    }

    fn copy_to(&self, other: &mut Value) {
        // SAFETY: both are values of an object that no other thread uses.
        unsafe { raw::copy_extended(other.at.cast(), self.at.cast(), size_of::<Item>(), &[LINK]) }.unwrap();
        (other.number, other.chain) = (self.number, self.chain.clone());
    }

    fn free(self) {
        // SAFETY: the value is not used any more.
        unsafe { raw::free_extended(self.at.cast(), 1, size_of::<Item>(), &[LINK]) }.unwrap();
    }
}

fn blocks(object: *const u8) -> u64 {
    // SAFETY: no other thread uses the object.
    unsafe { raw::heap_stats(object) }.unwrap().blocks
}

fn history(object: *const u8, seed: u64, counts: &mut [u64; 2]) {
    let (mut rng, mut names) = (Seeded::new(seed), Names::new());
    let all = versions(&mut rng, &mut names);
    for (from, one) in all.iter().enumerate() {
        for (to, other) in all.iter().enumerate() {
            let case = format!("seed {seed}: data of version {from}, program of version {to}");
            let mut values: Vec<Value> = (0..3).map(|_| Value::new(object, rng.u64(..))).collect();
            for value in &mut values {
                value.extend(one, rng.usize(..=one.len()), &mut rng);
            }
            for value in &mut values {
                value.check(other, &mut counts[1], &case);
                if !other.is_empty() && rng.bool() {
                    value.extend(other, rng.usize(1..=other.len()), &mut rng);
                }
                // SAFETY: a field of the value.
                unsafe { (*value.at).number += 1 };
                value.number += 1;
            }
            let mut last = values.pop().unwrap();
            values[0].copy_to(&mut last);
            values.remove(0).free();
            values.push(last);
            for value in values {
                value.check(one, &mut counts[1], &case);
                value.check(other, &mut counts[1], &case);
                assert_eq!(value.chain.len(), chain_blocks(&value), "{case}");
                counts[0] += value.chain.len() as u64;
                value.free();
            }
            assert_eq!(blocks(object), 0, "{case}");
        }
    }
}

fn chain_blocks(value: &Value) -> usize {
    // SAFETY: a field of the value.
    let first = unsafe { (*value.at).link };
    // SAFETY: links of a chain of an object that no other code uses.
    let next = |link: &u64| Some(unsafe { *std::ptr::with_exposed_provenance::<u64>(*link as usize) });
    std::iter::successors((first != 0).then_some(first), |link| next(link).filter(|link| *link != 0)).count()
}

fn histories(count: u64) {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 16 << 20).unwrap();
    pool.create("o", 2 << 20).unwrap();
    let object = raw::attach(&pool, "o", Permission::Write, &[]).unwrap().as_ptr().cast_const();
    // SAFETY: no other thread uses the object.
    unsafe { raw::format_heap(object, indelible::HeapOptions::new()) }.unwrap();
    let mut counts = [0; 2];
    (0..count).for_each(|seed| history(object, seed, &mut counts));
    // SAFETY: no other thread uses the object.
    assert_eq!(unsafe { raw::check(object) }.unwrap(), []);
    let [read, refused] = counts;
    assert!(read > 10 * count && refused > count, "{counts:?}");
    raw::detach(object).unwrap();
}

#[test]
pub fn values_of_generated_histories_are_right_in_programs_of_each_version() {
    histories(300);
}

#[test]
#[ignore = "long: run by hand, or with the campaigns of a release"]
fn values_of_ten_thousand_generated_histories() {
    histories(10_000);
}
