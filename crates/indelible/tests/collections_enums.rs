use crate::support::{Ground, World, everywhere};
use indelible::collections::{HeapRef, PBTreeMap, PBox, PHashMap, POption, PString, PVec};
use indelible::{ErrorKind, Heap, Persist, Root, StableHash, Tracking};

const MIB: u64 = 1 << 20;

fn world() -> World {
    World::new(Ground::Memory, Tracking::Auto, false)
}

fn heap_of(world: &World) -> Heap {
    let pool = world.format();
    pool.create("heap", MIB).unwrap();
    Heap::open_or_format(pool.attach("heap").unwrap()).unwrap()
}

fn reopen(world: &World) -> Heap {
    Heap::open(world.open().attach("heap").unwrap()).unwrap()
}

#[derive(Persist)]
#[repr(u8)]
enum Term<'h> {
    Number(f64),
    Name { text: PString<'h>, known: bool } = 10,
    Sum(PVec<'h, Term<'h>>),
    Quotient { by: PBox<'h, Self>, of: PBox<'h, Self> } = 7,
    Nothing,
}

fn quotient<'h>(of: &str, by: f64, heap: HeapRef<'h>) -> Term<'h> {
    Term::Quotient {
        by: PBox::new_in(Term::Number(by), heap),
        of: PBox::new_in(Term::Name { text: PString::from_in(of, heap), known: true }, heap),
    }
}

fn show(term: &Term<'_>) -> String {
    match term {
        Term::Number(number) => number.to_string(),
        Term::Name { text, known } => format!("{text}{}", if *known { "" } else { "?" }),
        Term::Sum(terms) => format!("({})", terms.iter().map(show).collect::<Vec<_>>().join(" + ")),
        Term::Quotient { by, of } => format!("{} / {}", show(of), show(by)),
        Term::Nothing => "nothing".into(),
    }
}

fn blocks(heap: &mut Heap) -> u64 {
    assert_eq!(heap.check(), []);
    let stats = heap.stats().unwrap();
    stats.blocks - stats.roots
}

#[test]
fn variants_come_back_and_free_what_they_have() {
    everywhere(|world| {
        let mut heap = heap_of(world);
        let (terms, heap_ref) = heap.root_and_heap::<PVec<Term>>("terms").unwrap();
        terms.push(Term::Number(2.5));
        terms.push(Term::Nothing);
        terms.push(quotient("distance", 4.0, heap_ref));
        let inner = [Term::Number(1.0), quotient("time", 3.0, heap_ref)];
        terms.push(Term::Sum(PVec::from_in(inner, heap_ref)));
        heap.psync().unwrap();
        heap.root_mut::<PVec<Term>>("terms").unwrap()[2] = Term::Nothing;
        drop(heap);
        let mut heap = reopen(world);
        let terms = heap.root_mut::<PVec<Term>>("terms").unwrap();
        let texts: Vec<_> = terms.iter().map(show).collect();
        assert_eq!(texts, ["2.5", "nothing", "distance / 4", "(1 + time / 3)"]);
        let Term::Quotient { of, .. } = &mut terms[2] else { panic!("a quotient") };
        let Term::Name { text, known } = &mut **of else { panic!("a name") };
        text.push_str(" there");
        *known = false;
        terms[3] = Term::Name { text: PString::from_in("gone", terms.heap()), known: true };
        heap.psync().unwrap();
        assert_eq!(blocks(&mut heap), 5, "elements; two terms of the quotient and its text; another text");
        drop(heap);
        let mut heap = reopen(world);
        let terms = heap.root_ref::<PVec<Term>>("terms").unwrap();
        assert_eq!((show(&terms[2]), show(&terms[3])), ("distance there? / 4".into(), "gone".into()));
        heap.drop_root::<PVec<Term>>("terms").unwrap();
        assert_eq!(blocks(&mut heap), 0);
    });
}

#[derive(Persist, StableHash, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C, u16)]
enum Key<'h> {
    Id(u64),
    Path { root: bool, name: PString<'h> },
    Any,
}

fn keys(heap: HeapRef<'_>) -> [Key<'_>; 5] {
    let path = |root, name| Key::Path { root, name: PString::from_in(name, heap) };
    [Key::Any, Key::Id(7), path(false, "a"), path(true, "a"), path(true, "b")]
}

#[test]
fn variants_are_keys_of_maps() {
    let world = world();
    let mut heap = heap_of(&world);
    let (map, at) = heap.root_and_heap::<PHashMap<Key, u64>>("hashed").unwrap();
    map.extend(keys(at).into_iter().zip(0_u64..));
    for (key, number) in keys(at).iter().zip(0_u64..) {
        assert_eq!(map.get(key), Some(&number));
    }
    assert_eq!((map.len(), map.get(&Key::Id(8))), (5, None));
    let (map, at) = heap.root_and_heap::<PBTreeMap<Key, u64>>("ordered").unwrap();
    map.extend(keys(at).into_iter().zip(0_u64..));
    assert_eq!(map.values().copied().collect::<Vec<_>>(), [1, 2, 3, 4, 0]);
}

macro_rules! at {
    ($variant:literal $($field:ident)*) => {
        ($variant, vec![$(std::ptr::from_ref($field).addr()),*])
    };
}

macro_rules! shapes {
    ($($module:ident: #[repr($($repr:tt)*)];)*) => {
        $(
            mod $module {
                use indelible::collections::POption;

                #[derive(indelible::Persist)]
                #[repr($($repr)*)]
                pub enum Shape {
                    One(u8, u64, bool),
                    Two { a: u16, b: [u8; 3], c: u32 },
                    Wide(POption<u128>),
                    Small(u8) = 100,
                    Padded { first: (), second: u16 },
                    Empty {},
                    Unit,
                }

                impl Shape {
                    fn fields(&self) -> (&str, Vec<usize>) {
                        match self {
                            Shape::One(x, y, z) => at!("One" x y z),
                            Shape::Two { a, b, c } => at!("Two" a b c),
                            Shape::Wide(x) => at!("Wide" x),
                            Shape::Small(x) => at!("Small" x),
                            Shape::Padded { first, second } => at!("Padded" first second),
                            Shape::Empty {} => at!("Empty"),
                            Shape::Unit => at!("Unit"),
                        }
                    }
                }

                #[test]
                fn the_layout_is_what_the_compiler_makes() {
                    let mut heap = super::heap_of(&super::world());
                    let make = |_| [
                        Shape::One(1, 2, true),
                        Shape::Two { a: 1, b: [2; 3], c: 3 },
                        Shape::Wide(POption::some(1)),
                        Shape::Small(1),
                        Shape::Padded { first: (), second: 2 },
                        Shape::Empty {},
                        Shape::Unit,
                    ];
                    heap.root_or_insert_with::<[Shape; 7], _>("all", make).unwrap();
                    let layout = heap.root_any("all").unwrap().lines();
                    let head = format!("Shape: size {}, ", size_of::<Shape>());
                    assert!(layout.starts_with(&head), "{layout}");
                    for shape in heap.root_ref::<[Shape; 7]>("all").unwrap() {
                        let (name, fields) = shape.fields();
                        let base = std::ptr::from_ref(shape).addr();
                        let found: Vec<_> = fields.iter().map(|at| at - base).collect();
                        assert_eq!(super::written(&layout, name), found, "{name} in\n{layout}");
                    }
                }
            }
        )*
    };
}

shapes! {
    byte: #[repr(u8)];
    signed: #[repr(i16)];
    word: #[repr(u64)];
    c_byte: #[repr(C, u8)];
    c_wide: #[repr(C, i32)];
    c_word: #[repr(C, u64)];
    aligned: #[repr(u8, align(64))];
    c_aligned: #[repr(C, u8, align(64))];
}

fn written(layout: &str, variant: &str) -> Vec<usize> {
    let head = format!("  {variant} = ");
    let behind = layout.lines().skip_while(|line| !line.starts_with(&head)).skip(1);
    behind
        .take_while(|line| line.starts_with("    "))
        .map(|line| line.split(" at ").nth(1).unwrap().split(',').next().unwrap().parse().unwrap())
        .collect()
}

macro_rules! variations {
    ($($module:ident: #[repr($($repr:tt)*)] $body:tt $value:expr;)*) => {
        $(
            #[allow(dead_code)]
            mod $module {
                #[derive(indelible::Persist)]
                #[repr($($repr)*)]
                pub enum Shape $body

                pub fn root(heap: &mut indelible::Heap) -> indelible::Root {
                    heap.root_or_insert_with::<Shape, _>(stringify!($module), |_| $value).unwrap();
                    heap.root_any(stringify!($module)).unwrap()
                }
            }
        )*

        fn variations(heap: &mut Heap) -> Vec<Root> {
            vec![$($module::root(heap)),*]
        }
    };
}

variations! {
    plain: #[repr(u8)] { A(u64), B { x: u32 }, C } Shape::C;
    tag: #[repr(u16)] { A(u64), B { x: u32 }, C } Shape::C;
    union: #[repr(C, u8)] { A(u64), B { x: u32 }, C } Shape::C;
    variant: #[repr(u8)] { A(u64), D { x: u32 }, C } Shape::C;
    number: #[repr(u8)] { A(u64), B { x: u32 } = 5, C = 2 } Shape::C;
    order: #[repr(u8)] { B { x: u32 }, A(u64), C } Shape::C;
    field: #[repr(u8)] { A(u64), B { y: u32 }, C } Shape::C;
    kind: #[repr(u8)] { A(i64), B { x: u32 }, C } Shape::C;
    offset: #[repr(u8)] { A(u64), B { pad: [u32; 0], x: u32 }, C } Shape::C;
    moved: #[repr(u8)] { A(u64), B {}, C { x: u32 } } Shape::B {};
    nested: #[repr(u8)] { A(u64), B { x: super::Three }, C } Shape::C;
    nested_other: #[repr(u8)] { A(u64), B { x: super::other::Three }, C } Shape::C;
    fewer: #[repr(u8)] { A(u64), B { x: u32 } } Shape::A(0);
    none: #[repr(u64)] { A, B, C } Shape::C;
}

#[derive(Persist)]
#[repr(C, u8)]
#[allow(dead_code)]
enum Three {
    X(u16),
    Y(bool),
}

mod other {
    #[derive(indelible::Persist)]
    #[repr(C, u8)]
    #[allow(dead_code)]
    pub enum Three {
        X(u16),
        Z(bool),
    }
}

#[test]
fn s4_03_every_difference_of_enums_has_its_fingerprint() {
    let mut heap = heap_of(&world());
    let mut all = variations(&mut heap);
    let count = all.len();
    all.sort_by_key(|root| root.fingerprint);
    all.dedup_by_key(|root| root.fingerprint);
    let left: Vec<_> = all.iter().map(|root| &root.name).collect();
    assert_eq!(all.len(), count, "two types have one fingerprint; left are {left:?}");
    let error = heap.root_mut::<plain::Shape>("tag").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::RootType);
    let text = error.to_string();
    for line in [
        "  tag: u8 at 0",
        "  tag: u16 at 0",
        "  A = 0",
        "    0: u64 at 8, size 8",
        "  B = 1",
        "    x: u32 at 4, size 4",
    ] {
        assert!(text.contains(line), "{line:?} is missing in\n{text}");
    }
}

#[derive(Persist)]
#[repr(u8)]
#[allow(dead_code)]
enum Checked<'h> {
    Flag(bool) = 1,
    Sign { sign: char } = 2,
    Text(PString<'h>) = 200,
    Any(u64),
    Maybe { inner: POption<Option<PBox<'h, u64>>> } = 0x55,
    Nothing = 0,
}

fn accepted(world: &World, edits: &[(usize, &[u8])]) -> bool {
    let heap = reopen(world);
    let at = heap.root_any("it").unwrap().address - heap.base().addr();
    drop(heap);
    let mut object = world.open().attach("heap").unwrap();
    object.as_mut_slice()[at..][..size_of::<Checked>()].fill(0);
    for (offset, bytes) in edits {
        object.as_mut_slice()[at + offset..][..bytes.len()].copy_from_slice(bytes);
    }
    let mut heap = Heap::open(object).unwrap();
    // SAFETY: a value without blocks of its own, or damage that is found.
    unsafe { heap.trust() };
    match heap.root_ref::<Checked>("it") {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
            false
        }
    }
}

#[test]
fn damaged_tags_and_fields_are_found() {
    let world = world();
    let mut heap = heap_of(&world);
    let base = heap.base().addr() as u64;
    heap.root_or_insert_with::<Checked, _>("it", |_| Checked::Nothing).unwrap();
    heap.psync().unwrap();
    drop(heap);
    for tag in 0..=255_u8 {
        let known = [0, 1, 2, 200, 201, 0x55].contains(&tag);
        assert_eq!(accepted(&world, &[(0, &[tag])]), known, "tag {tag}");
    }
    let (inside, outside) = ((base + 4096).to_le_bytes(), 0x1000_u64.to_le_bytes());
    let long = (MIB * 2).to_le_bytes();
    type Case<'a> = (&'a [(usize, &'a [u8])], bool);
    let cases: [Case<'_>; 14] = [
        (&[(0, &[1]), (1, &[1])], true),
        (&[(0, &[1]), (1, &[2])], false),
        (&[(0, &[2]), (4, &[0, 0xd8, 0, 0])], false),
        (&[(0, &[2]), (4, &[0, 0xd7, 0, 0])], true),
        (&[(0, &[200]), (8, &outside), (16, &[1]), (24, &[1])], false),
        (&[(0, &[200]), (8, &inside), (16, &long), (24, &[1])], false),
        (&[(0, &[200]), (8, &inside), (16, &[1]), (24, &[2])], false),
        (&[(0, &[201]), (8, &outside)], true),
        (&[(0, &[0x55]), (8, &[2])], false),
        (&[(0, &[0x55]), (8, &[1]), (16, &inside)], true),
        (&[(0, &[0x55]), (8, &[1]), (16, &outside)], false),
        (&[(0, &[0x55]), (8, &[0]), (16, &outside)], true),
        (&[(0, &[0]), (1, &[2]), (8, &outside), (16, &long)], true),
        (&[(0, &[201]), (1, &[2]), (16, &long)], true),
    ];
    for (number, (edits, good)) in cases.iter().enumerate() {
        assert_eq!(accepted(&world, edits), *good, "case {number}");
    }
}
