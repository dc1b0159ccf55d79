//! Generated histories of types: each version beside every other, with random data. A root opens as its own type and as no other,
//! the error names the first difference; a reset frees exactly the blocks that were made.

use crate::heaps::made;
use indelible::retention::Comparison;
use indelible::{ErrorKind, Heap, TypeInfo};
use indelible_testing::Seeded;
use std::cell::Cell;

/// A type of a history.
#[derive(Clone, PartialEq)]
enum Type {
    Number(&'static str, u64),
    Text,
    Vector(Box<Type>),
    Boxed(Box<Type>),
    Struct(String, Vec<(String, Type)>),
}

const NUMBERS: [(&str, u64); 6] = [("u8", 1), ("u16", 2), ("u32", 4), ("u64", 8), ("f32", 4), ("i64", 8)];

impl Type {
    fn align(&self) -> u64 {
        match self {
            Type::Number(_, size) => *size,
            Type::Text | Type::Vector(_) | Type::Boxed(_) => 8,
            Type::Struct(_, fields) => fields.iter().map(|(_, of)| of.align()).max().unwrap_or(1),
        }
    }

    fn size(&self) -> u64 {
        match self {
            Type::Number(_, size) => *size,
            Type::Text | Type::Vector(_) => 24,
            Type::Boxed(_) => 8,
            Type::Struct(..) => {
                let end = self.offsets().last().map_or(0, |(offset, of)| offset + of.size());
                end.next_multiple_of(self.align())
            }
        }
    }

    /// Fields of a struct, with their offsets.
    fn offsets(&self) -> Vec<(u64, &Type)> {
        let Type::Struct(_, fields) = self else { return Vec::new() };
        let mut end = 0_u64;
        let place = |(_, of): &'_ (String, Type)| {
            let at = end.next_multiple_of(of.align());
            end = at + of.size();
            at
        };
        let places: Vec<u64> = fields.iter().map(place).collect();
        places.into_iter().zip(fields.iter().map(|(_, of)| of)).collect()
    }

    fn describe(&self) -> String {
        match self {
            Type::Number(word, _) => format!("{word} "),
            Type::Text => "PString ".to_owned(),
            Type::Vector(of) => format!("PVec {}", of.describe()),
            Type::Boxed(of) => format!("PBox {}", of.describe()),
            Type::Struct(name, fields) => {
                let text = |((field, _), (at, of)): (&(String, Type), (u64, &Type))| {
                    format!("{field}@{at}:{} {}", of.size(), of.describe())
                };
                let fields: String = fields.iter().zip(self.offsets()).map(text).collect();
                format!("{name}:{}:{} {{ {fields}}} ", self.size(), self.align())
            }
        }
    }

    /// Whether values of `self` are values of `other` (`Some(false)`), or would be but for fields behind the last ones
    /// (`Some(true)`).
    fn grows_to(&self, other: &Type) -> Option<bool> {
        match (self, other) {
            (Type::Vector(one), Type::Vector(two)) | (Type::Boxed(one), Type::Boxed(two)) => {
                one.grows_to(two)
            }
            (Type::Struct(name, fields), Type::Struct(other_name, others)) => {
                if name != other_name || fields.len() > others.len() {
                    return None;
                }
                let places = self.offsets().into_iter().zip(other.offsets());
                let mut grown = fields.len() < others.len();
                for ((one, two), ((at, of), (elsewhere, other))) in fields.iter().zip(others).zip(places) {
                    if one.0 != two.0 || at != elsewhere {
                        return None;
                    }
                    grown |= of.grows_to(other)?;
                }
                Some(grown)
            }
            _ => (self == other).then_some(false),
        }
    }
}

/// Names are never given twice.
struct Names(u32);

impl Names {
    fn next(&mut self, kind: &str) -> String {
        self.0 += 1;
        format!("{kind}{}", self.0)
    }
}

fn random_type(rng: &mut Seeded, names: &mut Names, depth: u32) -> Type {
    match rng.u8(..if depth == 0 { 4 } else { 8 }) {
        0..3 => {
            let (word, size) = NUMBERS[rng.usize(..NUMBERS.len())];
            Type::Number(word, size)
        }
        3 => Type::Text,
        4 => Type::Vector(Box::new(random_type(rng, names, depth - 1))),
        5 => Type::Boxed(Box::new(random_type(rng, names, depth - 1))),
        _ => random_struct(rng, names, depth - 1),
    }
}

fn random_struct(rng: &mut Seeded, names: &mut Names, depth: u32) -> Type {
    let name = names.next("S");
    let fields = (0..rng.u8(1..5)).map(|_| (names.next("f"), random_type(rng, names, depth))).collect();
    Type::Struct(name, fields)
}

/// The next version: one field was added, nested, moved, removed, renamed, or has another number.
fn changed(of: &Type, rng: &mut Seeded, names: &mut Names) -> Type {
    let mut next = of.clone();
    let mut inside = &mut next;
    // On the way down, as far as chance has it.
    while let Type::Struct(_, fields) = inside {
        let deeper = fields.iter().position(|(_, of)| has_struct(of));
        match deeper {
            Some(index) if rng.bool() => inside = struct_in(&mut fields[index].1),
            _ => {
                change(fields, rng, names);
                break;
            }
        }
    }
    next
}

fn has_struct(of: &Type) -> bool {
    match of {
        Type::Vector(inner) | Type::Boxed(inner) => has_struct(inner),
        Type::Struct(..) => true,
        Type::Number(..) | Type::Text => false,
    }
}

/// The struct behind vectors and boxes.
fn struct_in(of: &mut Type) -> &mut Type {
    match of {
        Type::Vector(inner) | Type::Boxed(inner) => struct_in(inner),
        other => other,
    }
}

fn change(fields: &mut Vec<(String, Type)>, rng: &mut Seeded, names: &mut Names) {
    let at = rng.usize(..fields.len());
    match rng.u8(..7) {
        0 | 1 => fields.push((names.next("f"), random_type(rng, names, 1))),
        2 => {
            let inner = std::mem::replace(&mut fields[at].1, Type::Text);
            fields[at].1 = Type::Struct(names.next("S"), vec![(names.next("f"), inner)]);
        }
        3 => fields.rotate_left(1),
        4 if fields.len() > 1 => drop(fields.remove(at)),
        5 => fields[at].0 = names.next("f"),
        _ => {
            let (word, size) = NUMBERS[rng.usize(..NUMBERS.len())];
            fields[at].1 = Type::Number(word, size);
        }
    }
}

/// Puts a random value at an address, with blocks of its own, which it counts.
fn fill(heap: &Heap, of: &Type, at: u64, rng: &mut Seeded, blocks: &mut u64) {
    let write = |at: u64, words: &[u64]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        // SAFETY: the value's own bytes, in a block of the heap that nobody else uses.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
    };
    let block = |size: u64| heap.calloc(1, size.max(1) as usize).unwrap().as_ptr().addr() as u64;
    match of {
        // Zeros are a value.
        Type::Number(..) => {}
        Type::Text => {
            let room = rng.u64(0..40);
            if room > 0 {
                *blocks += 1;
                write(at, &[block(room), room, rng.u64(..=room)]);
            }
        }
        Type::Vector(inner) => {
            let room = rng.u64(0..4);
            if room > 0 {
                let (start, len) = (block(room * inner.size()), rng.u64(..=room));
                *blocks += 1;
                (0..len).for_each(|index| fill(heap, inner, start + index * inner.size(), rng, blocks));
                write(at, &[start, room, len]);
            }
        }
        Type::Boxed(inner) => {
            let start = block(inner.size());
            *blocks += 1;
            fill(heap, inner, start, rng, blocks);
            write(at, &[start]);
        }
        Type::Struct(..) => {
            of.offsets().into_iter().for_each(|(offset, of)| fill(heap, of, at + offset, rng, blocks));
        }
    }
}

/// Pairs of versions that are the same, only grew, differ.
type Counts = [u64; 3];

fn history(heap: &mut Heap, seed: u64, counts: &mut Counts) {
    let (mut rng, mut names) = (Seeded::new(seed), Names(0));
    let mut versions = vec![random_struct(&mut rng, &mut names, 3)];
    for _ in 0..rng.u8(1..5) {
        let last = &versions[versions.len() - 1];
        versions.push(changed(last, &mut rng, &mut names));
    }
    let texts: Vec<(String, String)> = versions
        .iter()
        .map(|of| (of.describe(), of.describe().split(':').next().unwrap_or_default().to_owned()))
        .collect();
    for (of, (text, name)) in versions.iter().zip(&texts) {
        let before = heap.blocks().count() as u64;
        let at = heap.calloc(1, of.size() as usize).unwrap().as_ptr();
        let mut blocks = 1;
        fill(heap, of, at.addr() as u64, &mut rng, &mut blocks);
        // SAFETY: no code uses it by type.
        unsafe { heap.create_root("it", at, of.size(), &TypeInfo::described(name, text)) }.unwrap();
        for (other, (other_text, other_name)) in versions.iter().zip(&texts) {
            let wanted = TypeInfo::described(other_name, other_text);
            let compared = heap.root_any("it").unwrap().compare(&wanted);
            let case = format!("seed {seed}: {text}to {other_text}");
            match (heap.root("it", &wanted), of.grows_to(other)) {
                (Ok(root), Some(false)) => {
                    assert_eq!((root.address, root.size), (at.addr(), other.size()), "{case}");
                    assert_eq!(compared, Comparison::Same, "{case}");
                    counts[0] += 1;
                }
                (Err(error), relation) => {
                    assert_eq!(error.kind(), ErrorKind::RootType, "{case}");
                    let error = error.to_string();
                    let first = format!("first (here the heap, there the program), {name}");
                    assert!(error.contains(&first), "{case}: {error}");
                    match (relation, compared) {
                        (Some(true), Comparison::Appended(_)) => counts[1] += 1,
                        (None, Comparison::Differs(first)) => {
                            assert!(first.starts_with(name.as_str()), "{case}: {first}");
                            counts[2] += 1;
                        }
                        (_, compared) => panic!("{case}: {relation:?}, {compared:?}"),
                    }
                }
                (Ok(_), relation) => panic!("{case}: opened, and {relation:?}"),
            }
        }
        let freed = Cell::new(0);
        heap.root_from::<u64>("it").or_reset(|reset| freed.set(reset.blocks)).or_default().unwrap();
        assert_eq!(freed.get(), blocks, "seed {seed}: {text}");
        heap.drop_root::<u64>("it").unwrap();
        assert_eq!(heap.blocks().count() as u64, before, "seed {seed}: {text}");
    }
}

fn histories(count: u64) {
    let (_dir, mut heap) = made();
    let mut counts = Counts::default();
    (0..count).for_each(|seed| history(&mut heap, seed, &mut counts));
    assert_eq!(heap.check(), []);
    let [same, appended, differ] = counts;
    assert!(same > count && appended > count / 2 && differ > count, "{counts:?}");
}

#[test]
pub fn generated_histories_open_as_their_own_type_or_fail_by_name() {
    histories(200);
}

#[test]
#[ignore = "long: run by hand, or with the campaigns of a release"]
fn ten_thousand_generated_histories() {
    histories(10_000);
}
