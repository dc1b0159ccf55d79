use crate::heaps::made;
use indelible::retention::Comparison;
use indelible::{ErrorKind, Heap, TypeInfo};
use indelible_testing::Seeded;
use std::cell::Cell;
use std::collections::BTreeSet;

#[derive(Clone, PartialEq)]
pub enum Type {
    Number(&'static str, u64),
    Text,
    Vector(Box<Type>),
    Boxed(Box<Type>),
    Array(u64, Box<Type>),
    Struct(Struct),
    Enum(String, Vec<Variant>),
}

#[derive(Clone, PartialEq)]
pub struct Struct {
    pub name: String,
    pub generic: bool,
    pub fields: Vec<Field>,
    pub align: u64,
}

pub type Field = (String, Type);
pub type Variant = (String, Vec<Field>);

const NUMBERS: [(&str, u64); 6] = [("u8", 1), ("u16", 2), ("u32", 4), ("u64", 8), ("f32", 4), ("i64", 8)];
const TAG: u64 = 1;

pub fn placed(fields: &[Field], first: u64) -> (Vec<(u64, &Field)>, u64) {
    let mut end = first;
    let place = |field: &Field| {
        let at = end.next_multiple_of(field.1.align());
        end = at + field.1.size();
        at
    };
    let places: Vec<u64> = fields.iter().map(place).collect();
    (places.into_iter().zip(fields).collect(), end)
}

fn described(fields: &[Field], first: u64) -> String {
    let text = |(at, (name, of)): (u64, &Field)| format!("{name}@{at}:{} {}", of.size(), of.describe());
    placed(fields, first).0.into_iter().map(text).collect()
}

fn fields_grow(one: &[Field], two: &[Field], first: u64) -> Option<bool> {
    if one.len() > two.len() {
        return None;
    }
    let mut grown = one.len() < two.len();
    for ((at, field), (elsewhere, other)) in placed(one, first).0.into_iter().zip(placed(two, first).0) {
        if field.0 != other.0 || at != elsewhere {
            return None;
        }
        grown |= field.1.grows_to(&other.1)?;
    }
    Some(grown)
}

impl Struct {
    fn name(&self) -> String {
        match self.fields.first() {
            Some((_, Type::Number(word, _))) if self.generic => format!("{}<{word}>", self.name),
            _ => self.name.clone(),
        }
    }
}

impl Type {
    pub fn align(&self) -> u64 {
        let widest = |fields: &[Field]| fields.iter().map(|(_, of)| of.align()).max().unwrap_or(1);
        match self {
            Type::Number(_, size) => *size,
            Type::Text | Type::Vector(_) | Type::Boxed(_) => 8,
            Type::Array(_, of) => of.align(),
            Type::Struct(Struct { fields, align, .. }) => widest(fields).max(*align),
            Type::Enum(_, variants) => {
                variants.iter().map(|(_, fields)| widest(fields)).max().unwrap_or(1).max(TAG)
            }
        }
    }

    pub fn size(&self) -> u64 {
        match self {
            Type::Number(_, size) => *size,
            Type::Text | Type::Vector(_) => 24,
            Type::Boxed(_) => 8,
            Type::Array(count, of) => count * of.size(),
            Type::Struct(Struct { fields, .. }) => placed(fields, 0).1.next_multiple_of(self.align()),
            Type::Enum(_, variants) => {
                let ends = variants.iter().map(|(_, fields)| placed(fields, TAG).1);
                ends.max().unwrap_or(TAG).next_multiple_of(self.align())
            }
        }
    }

    pub fn name(&self) -> String {
        let text = self.describe();
        text.split([':', ' ']).next().unwrap_or_default().to_owned()
    }

    pub fn describe(&self) -> String {
        match self {
            Type::Number(word, _) => format!("{word} "),
            Type::Text => "PString ".to_owned(),
            Type::Vector(of) => format!("PVec {}", of.describe()),
            Type::Boxed(of) => format!("PBox {}", of.describe()),
            Type::Array(count, of) => format!("[{count}] {}", of.describe()),
            Type::Struct(of) => {
                format!("{}:{}:{} {{ {}}} ", of.name(), self.size(), self.align(), described(&of.fields, 0))
            }
            Type::Enum(name, variants) => {
                let text = |(number, (name, fields)): (usize, &Variant)| match &fields[..] {
                    [] => format!("{name}={number} "),
                    fields => format!("{name}={number} ( {}) ", described(fields, TAG)),
                };
                let all: String = variants.iter().enumerate().map(text).collect();
                format!("{name}:{}:{} {{ tag:u8 {all}}} ", self.size(), self.align())
            }
        }
    }

    fn grows_to(&self, other: &Type) -> Option<bool> {
        let grown = match (self, other) {
            (Type::Vector(one), Type::Vector(two)) | (Type::Boxed(one), Type::Boxed(two)) => {
                one.grows_to(two)?
            }
            (Type::Array(count, one), Type::Array(others, two)) if count == others => one.grows_to(two)?,
            (Type::Struct(one), Type::Struct(two)) if one.name() == two.name() => {
                fields_grow(&one.fields, &two.fields, 0)?
            }
            (Type::Enum(name, variants), Type::Enum(other_name, others))
                if name == other_name && variants.len() <= others.len() =>
            {
                let mut grown = variants.len() < others.len();
                for ((name, fields), (other_name, others)) in variants.iter().zip(others) {
                    if name != other_name {
                        return None;
                    }
                    grown |= fields_grow(fields, others, TAG)?;
                }
                grown
            }
            _ => return (self == other).then_some(false),
        };
        (grown || (self.size(), self.align()) == (other.size(), other.align())).then_some(grown)
    }
}

pub struct Names(u32);

impl Names {
    pub fn new() -> Names {
        Names(0)
    }

    pub fn next(&mut self, kind: &str) -> String {
        self.0 += 1;
        format!("{kind}{}", self.0)
    }
}

pub fn random_number(rng: &mut Seeded) -> Type {
    let (word, size) = NUMBERS[rng.usize(..NUMBERS.len())];
    Type::Number(word, size)
}

fn random_type(rng: &mut Seeded, names: &mut Names, depth: u32) -> Type {
    match rng.u8(..if depth == 0 { 4 } else { 11 }) {
        0..3 => random_number(rng),
        3 => Type::Text,
        4 => Type::Vector(Box::new(random_type(rng, names, depth - 1))),
        5 => Type::Boxed(Box::new(random_type(rng, names, depth - 1))),
        6 => Type::Array(rng.u64(1..4), Box::new(random_type(rng, names, depth - 1))),
        7 | 8 => random_enum(rng, names, depth - 1),
        _ => random_struct(rng, names, depth - 1),
    }
}

fn random_fields(rng: &mut Seeded, names: &mut Names, count: u8, depth: u32) -> Vec<Field> {
    (0..count).map(|_| (names.next("f"), random_type(rng, names, depth))).collect()
}

fn random_struct(rng: &mut Seeded, names: &mut Names, depth: u32) -> Type {
    let (name, generic, count) = (names.next("S"), rng.u8(..4) == 0, rng.u8(1..5));
    let mut fields = random_fields(rng, names, count, depth);
    if generic {
        fields[0].1 = random_number(rng);
    }
    let align = if rng.u8(..6) == 0 { 16 } else { 1 };
    Type::Struct(Struct { name, generic, fields, align })
}

fn random_variant(rng: &mut Seeded, names: &mut Names, depth: u32) -> Variant {
    let count = rng.u8(..3);
    (names.next("V"), random_fields(rng, names, count, depth))
}

fn random_enum(rng: &mut Seeded, names: &mut Names, depth: u32) -> Type {
    let count = rng.u8(1..4);
    Type::Enum(names.next("E"), (0..count).map(|_| random_variant(rng, names, depth)).collect())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Appended,
    Nested,
    Reordered,
    Shrunk,
    Renamed,
    Retyped,
    Aligned,
    OtherArgument,
    OtherLength,
    VariantAppended,
    VariantsReordered,
    VariantRemoved,
    VariantRenamed,
    VariantWidened,
}

const CHANGES: usize = 14;

fn changed(of: &Type, rng: &mut Seeded, names: &mut Names) -> (Type, Change) {
    let mut next = of.clone();
    let mut inside = &mut next;
    loop {
        match inside {
            Type::Struct(of) => {
                let deeper = of.fields.iter().position(|(_, of)| is_composed(of));
                match deeper {
                    Some(index) if rng.u8(..3) > 0 => inside = composed_in(&mut of.fields[index].1),
                    _ => {
                        let change = change_struct(of, rng, names);
                        return (next, change);
                    }
                }
            }
            Type::Enum(_, variants) => {
                let change = change_enum(variants, rng, names);
                return (next, change);
            }
            other => unreachable!("{} has no fields", other.describe()),
        }
    }
}

fn is_composed(of: &Type) -> bool {
    match of {
        Type::Vector(inner) | Type::Boxed(inner) | Type::Array(_, inner) => is_composed(inner),
        Type::Struct(_) | Type::Enum(..) => true,
        Type::Number(..) | Type::Text => false,
    }
}

fn composed_in(of: &mut Type) -> &mut Type {
    match of {
        Type::Vector(inner) | Type::Boxed(inner) | Type::Array(_, inner) => composed_in(inner),
        other => other,
    }
}

fn change_struct(of: &mut Struct, rng: &mut Seeded, names: &mut Names) -> Change {
    let at = rng.usize(..of.fields.len());
    let argument = of.name();
    match rng.u8(..11) {
        0 | 1 => {
            of.fields.push((names.next("f"), random_type(rng, names, 1)));
            Change::Appended
        }
        2 => {
            let inner = std::mem::replace(&mut of.fields[at].1, Type::Text);
            let fields = vec![(names.next("f"), inner)];
            let name = names.next("S");
            of.fields[at].1 = Type::Struct(Struct { name, generic: false, fields, align: 1 });
            Change::Nested
        }
        3 => {
            of.fields.rotate_left(1);
            Change::Reordered
        }
        4 if of.fields.len() > 1 => {
            of.fields.remove(at);
            Change::Shrunk
        }
        5 => {
            of.fields[at].0 = names.next("f");
            Change::Renamed
        }
        6 | 7 => {
            of.align = if of.align == 1 { 16 } else { 1 };
            Change::Aligned
        }
        8 if of.generic => {
            of.fields[0].1 = random_number(rng);
            if of.name() == argument { Change::Retyped } else { Change::OtherArgument }
        }
        9 => {
            let (count, inner) = match &of.fields[at].1 {
                Type::Array(count, inner) => (*count, (**inner).clone()),
                other => (1, other.clone()),
            };
            of.fields[at].1 = Type::Array(count + 1, Box::new(inner));
            Change::OtherLength
        }
        _ => {
            of.fields[at].1 = random_number(rng);
            Change::Retyped
        }
    }
}

fn change_enum(variants: &mut Vec<Variant>, rng: &mut Seeded, names: &mut Names) -> Change {
    let at = rng.usize(..variants.len());
    match rng.u8(..5) {
        0 => {
            variants.push(random_variant(rng, names, 0));
            Change::VariantAppended
        }
        1 => {
            variants.rotate_left(1);
            Change::VariantsReordered
        }
        2 if variants.len() > 1 => {
            variants.remove(at);
            Change::VariantRemoved
        }
        3 => {
            variants[at].0 = names.next("V");
            Change::VariantRenamed
        }
        _ => {
            variants[at].1.push((names.next("f"), random_type(rng, names, 0)));
            Change::VariantWidened
        }
    }
}

fn fill(heap: &Heap, of: &Type, at: u64, rng: &mut Seeded, blocks: &mut u64) {
    let write = |at: u64, words: &[u64]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        // SAFETY: the value's own bytes, in a block of the heap that no other code uses.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
    };
    let block = |size: u64| heap.calloc(1, size.max(1) as usize).unwrap().as_ptr().addr() as u64;
    match of {
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
        Type::Array(count, inner) => {
            (0..*count).for_each(|index| fill(heap, inner, at + index * inner.size(), rng, blocks));
        }
        Type::Struct(of) => {
            for (offset, (_, of)) in placed(&of.fields, 0).0 {
                fill(heap, of, at + offset, rng, blocks);
            }
        }
        Type::Enum(_, variants) => {
            let number = rng.usize(..variants.len());
            // SAFETY: the value's own byte.
            unsafe { (at as *mut u8).write(number as u8) };
            for (offset, (_, of)) in placed(&variants[number].1, TAG).0 {
                fill(heap, of, at + offset, rng, blocks);
            }
        }
    }
}

type Counts = [u64; 3];

fn history(heap: &mut Heap, seed: u64, counts: &mut Counts, met: &mut BTreeSet<Change>) {
    let (mut rng, mut names) = (Seeded::new(seed), Names::new());
    let mut versions = vec![random_struct(&mut rng, &mut names, 3)];
    for _ in 0..rng.u8(1..5) {
        let last = &versions[versions.len() - 1];
        let (next, change) = changed(last, &mut rng, &mut names);
        versions.push(next);
        met.insert(change);
    }
    let texts: Vec<(String, String)> = versions.iter().map(|of| (of.describe(), of.name())).collect();
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
    let (mut counts, mut met) = (Counts::default(), BTreeSet::new());
    (0..count).for_each(|seed| history(&mut heap, seed, &mut counts, &mut met));
    assert_eq!(heap.check(), []);
    let [same, appended, differ] = counts;
    assert!(same > count && appended > count / 4 && differ > count, "{counts:?}");
    assert_eq!(met.len(), CHANGES, "{met:?}");
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
