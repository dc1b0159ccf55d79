use crate::heaps::made;
use crate::histories::{Names, Struct, Type, placed, random_number};
use indelible::{ErrorKind, Heap, TypeInfo};
use indelible_testing::Seeded;
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(u64),
    All(Vec<Value>),
}

pub fn random_plain(rng: &mut Seeded, names: &mut Names, depth: u32) -> Type {
    match rng.u8(..if depth == 0 { 3 } else { 6 }) {
        0..3 => random_number(rng),
        3 => Type::Array(rng.u64(1..4), Box::new(random_plain(rng, names, depth - 1))),
        _ => random_record(rng, names, depth - 1),
    }
}

pub fn random_record(rng: &mut Seeded, names: &mut Names, depth: u32) -> Type {
    let (name, count) = (names.next("R"), rng.u8(1..5));
    let fields = (0..count).map(|_| (names.next("f"), random_plain(rng, names, depth))).collect();
    let align = if rng.u8(..6) == 0 { 16 } else { 1 };
    Type::Struct(Struct { name, generic: false, fields, align })
}

pub fn random_value(of: &Type, rng: &mut Seeded) -> Value {
    match of {
        Type::Number(_, size) => Value::Number(rng.u64(..) >> (64 - 8 * size)),
        Type::Array(count, inner) => Value::All((0..*count).map(|_| random_value(inner, rng)).collect()),
        Type::Struct(of) => Value::All(of.fields.iter().map(|(_, of)| random_value(of, rng)).collect()),
        other => unreachable!("{} is no record", other.describe()),
    }
}

pub fn encoded(of: &Type, value: &Value) -> Vec<u8> {
    let mut bytes = vec![0; of.size() as usize];
    match (of, value) {
        (Type::Number(_, size), Value::Number(number)) => {
            bytes.copy_from_slice(&number.to_le_bytes()[..*size as usize]);
        }
        (Type::Array(_, inner), Value::All(all)) => {
            bytes = all.iter().flat_map(|value| encoded(inner, value)).collect();
        }
        (Type::Struct(of), Value::All(all)) => {
            for ((at, (_, of)), value) in placed(&of.fields, 0).0.into_iter().zip(all) {
                bytes[at as usize..][..of.size() as usize].copy_from_slice(&encoded(of, value));
            }
        }
        (of, value) => unreachable!("{value:?} is no {}", of.describe()),
    }
    bytes
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    Added(u8),
    Nested(usize),
    Reordered,
    Shrunk(usize),
    Renamed(usize),
    Widened(usize),
}

impl Change {
    pub fn word(self) -> &'static str {
        match self {
            Change::Added(_) => "added",
            Change::Nested(_) => "nested",
            Change::Reordered => "reordered",
            Change::Shrunk(_) => "shrunk",
            Change::Renamed(_) => "renamed",
            Change::Widened(_) => "widened",
        }
    }

    fn random(of: &Struct, rng: &mut Seeded) -> Change {
        let at = rng.usize(..of.fields.len());
        let narrow = |ty: &Type| matches!(ty, Type::Number("u8" | "u16" | "u32", _));
        match rng.u8(..6) {
            0 => Change::Nested(at),
            1 if of.fields.len() > 1 => Change::Reordered,
            2 if of.fields.len() > 1 => Change::Shrunk(at),
            3 => Change::Renamed(at),
            4 if narrow(&of.fields[at].1) => Change::Widened(at),
            _ => Change::Added(rng.u8(..)),
        }
    }

    fn make(self, of: &mut Struct, names: &mut Names) {
        match self {
            Change::Added(_) => of.fields.push((names.next("f"), Type::Number("u16", 2))),
            Change::Nested(at) => {
                let inner = std::mem::replace(&mut of.fields[at].1, Type::Text);
                let (name, fields) = (names.next("R"), vec![(names.next("f"), inner)]);
                of.fields[at].1 = Type::Struct(Struct { name, generic: false, fields, align: 1 });
            }
            Change::Reordered => of.fields.rotate_left(1),
            Change::Shrunk(at) => drop(of.fields.remove(at)),
            Change::Renamed(at) => of.fields[at].0 = names.next("f"),
            Change::Widened(at) => {
                of.fields[at].1 = match of.fields[at].1 {
                    Type::Number("u8", _) => Type::Number("u16", 2),
                    Type::Number("u16", _) => Type::Number("u32", 4),
                    _ => Type::Number("u64", 8),
                }
            }
        }
    }

    fn convert(self, fields: &mut Vec<Value>) {
        match self {
            Change::Added(initial) => fields.push(Value::Number(initial.into())),
            Change::Nested(at) => fields[at] = Value::All(vec![fields[at].clone()]),
            Change::Reordered => fields.rotate_left(1),
            Change::Shrunk(at) => drop(fields.remove(at)),
            Change::Renamed(_) | Change::Widened(_) => {}
        }
    }
}

pub struct Step {
    way: Vec<usize>,
    pub change: Change,
}

impl Step {
    pub fn random(of: &Type, rng: &mut Seeded, names: &mut Names) -> (Type, Step) {
        let mut next = of.clone();
        let (mut inside, mut way) = (&mut next, Vec::new());
        loop {
            match inside {
                Type::Array(_, inner) => inside = inner,
                Type::Struct(of) => match of.fields.iter().position(|(_, of)| has_fields(of)) {
                    Some(at) if rng.bool() => {
                        way.push(at);
                        inside = &mut of.fields[at].1;
                    }
                    _ => {
                        let change = Change::random(of, rng);
                        change.make(of, names);
                        return (next, Step { way, change });
                    }
                },
                other => unreachable!("{} has no fields", other.describe()),
            }
        }
    }

    pub fn convert(&self, of: &Type, value: &Value) -> Value {
        self.convert_behind(&self.way, of, value)
    }

    fn convert_behind(&self, way: &[usize], of: &Type, value: &Value) -> Value {
        match (of, value) {
            (Type::Array(_, inner), Value::All(all)) => {
                Value::All(all.iter().map(|value| self.convert_behind(way, inner, value)).collect())
            }
            (Type::Struct(of), Value::All(fields)) => {
                let mut fields = fields.clone();
                match way {
                    [] => self.change.convert(&mut fields),
                    [at, way @ ..] => {
                        fields[*at] = self.convert_behind(way, &of.fields[*at].1, &fields[*at]);
                    }
                }
                Value::All(fields)
            }
            (of, value) => unreachable!("{value:?} is no {}", of.describe()),
        }
    }
}

fn has_fields(of: &Type) -> bool {
    match of {
        Type::Array(_, inner) => has_fields(inner),
        other => matches!(other, Type::Struct(_)),
    }
}

type Counts = [u64; 3];

fn found(heap: &mut Heap, ty: &TypeInfo<'_>) -> indelible::Result<Vec<u8>> {
    let root = heap.find_record("it", ty)?;
    let start = root.address - heap.base().addr();
    Ok(heap.object().as_slice()[start..start + root.size as usize].to_vec())
}

fn refused(heap: &mut Heap, ty: &TypeInfo<'_>, stored: &str, case: &str) {
    let error = found(heap, ty).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RootType, "{case}");
    let first = format!("first (here the heap, there the program), {stored}");
    assert!(error.to_string().contains(&first), "{case}: {error}");
}

fn history(heap: &mut Heap, seed: u64, counts: &mut Counts, met: &mut BTreeSet<&'static str>) {
    let (mut rng, mut names) = (Seeded::new(seed), Names::new());
    let (mut versions, mut steps) = (vec![random_record(&mut rng, &mut names, 2)], Vec::new());
    for _ in 0..rng.u8(1..5) {
        let (next, step) = Step::random(&versions[versions.len() - 1], &mut rng, &mut names);
        met.insert(step.change.word());
        versions.push(next);
        steps.push(step);
    }
    let texts: Vec<(String, String)> = versions.iter().map(|of| (of.name(), of.describe())).collect();
    let infos: Vec<TypeInfo<'_>> = texts.iter().map(|(name, text)| TypeInfo::described(name, text)).collect();
    let before = heap.blocks().count();
    for from in 0..versions.len() {
        for to in 0..versions.len() {
            let case = format!("seed {seed}: {}to {}", texts[from].1, texts[to].1);
            let mut value = random_value(&versions[from], &mut rng);
            let mut bytes = encoded(&versions[from], &value);
            heap.record("it", &infos[from], &bytes).unwrap();
            let own = texts[from] == texts[to];
            match own {
                true => assert_eq!(found(heap, &infos[to]).unwrap(), bytes, "{case}"),
                false => refused(heap, &infos[to], &texts[from].0, &case),
            }
            for at in from..to {
                value = steps[at].convert(&versions[at], &value);
                let new = encoded(&versions[at + 1], &value);
                let convert = |heap: &mut Heap, old: &[u8]| {
                    heap.convert_record("it", (&infos[at], old), (&infos[at + 1], &new)).unwrap()
                };
                let mut other = bytes.clone();
                other[0] ^= 1;
                assert!(!convert(heap, &other) && found(heap, &infos[at]).unwrap() == bytes, "{case}");
                assert!(convert(heap, &bytes), "{case}");
                bytes = new;
            }
            let last = from.max(to);
            counts[usize::from(!own) + usize::from(!own && from > to)] += 1;
            assert_eq!(found(heap, &infos[last]).unwrap(), bytes, "{case}");
            assert_eq!(heap.blocks().count(), before + 1, "{case}");
            let zeros = vec![0; versions[to].size() as usize];
            assert_eq!(heap.reset_to_record("it", &infos[to], &zeros).unwrap().0, 1, "{case}");
            assert_eq!(found(heap, &infos[to]).unwrap(), zeros, "{case}");
            heap.root_from::<u64>("it").or_reset(|_| ()).or_default().unwrap();
            heap.drop_root::<u64>("it").unwrap();
            assert_eq!(heap.blocks().count(), before, "{case}");
        }
    }
}

fn histories(count: u64) {
    let (_dir, mut heap) = made();
    let (mut counts, mut met) = (Counts::default(), BTreeSet::new());
    (0..count).for_each(|seed| history(&mut heap, seed, &mut counts, &mut met));
    assert_eq!(heap.check(), []);
    let [own, converted, refused] = counts;
    assert!(own > 2 * count && converted > count && refused == converted, "{counts:?}");
    assert_eq!(met.len(), 6, "{met:?}");
}

#[test]
pub fn records_of_generated_histories_have_their_values_in_each_version() {
    histories(200);
}

#[test]
#[ignore = "long: run by hand, or with the campaigns of a release"]
fn records_of_ten_thousand_generated_histories() {
    histories(10_000);
}
