//! Descriptions of real types, and of forged ones.

use super::*;
use crate::collections::{
    Layout, PBTreeMap, PBox, PHashMap, PHashSet, PMutex, POption, PRwLock, PString, PVec, Persist,
};
use crate::relative::Relative;
use std::sync::atomic::AtomicU64;

/// The description of a type of the program, read back.
fn described<'h, T: Persist<'h>>() -> Description {
    let mut layout = Layout::default();
    T::describe(&mut layout);
    Description::parse(layout.stream()).unwrap()
}

fn measured<'h, T: Persist<'h>>() {
    let of = described::<T>();
    let ty = of.get(of.root());
    let mut name = String::new();
    T::type_name(&mut name);
    assert_eq!((ty.size, ty.align), (size_of::<T>() as u64, align_of::<T>() as u64), "{name}");
    assert_eq!(of.name(of.root()), name);
    assert!(!ty.plain || T::ANY, "{name}");
}

#[derive(indelible_derive::Persist)]
#[repr(C)]
struct Account<'h> {
    id: u32,
    owner: PString<'h>,
    kind: Kind<'h>,
    level: Level,
    transfers: PVec<'h, [u64; 2]>,
    parent: Option<PBox<'h, Account<'h>>>,
    peers: PHashMap<'h, PString<'h>, PBox<'h, Account<'h>>>,
    raw: *mut u8,
    near: Relative<u64>,
    last: POption<char>,
}

#[derive(indelible_derive::Persist)]
#[repr(u8)]
enum Kind<'h> {
    Private,
    Business { register: PString<'h>, number: u64 },
    Shared(PVec<'h, u32>, bool) = 200,
}

#[derive(indelible_derive::Persist, Clone, Copy)]
#[repr(i16)]
enum Level {
    Low = -3,
    High = 7,
}

#[derive(indelible_derive::Persist)]
#[repr(C, u16)]
enum Wide<'h> {
    None,
    One(u128),
    Two(u8, PMutex<'h, u64>),
}

#[derive(indelible_derive::Persist)]
#[repr(C, align(64))]
struct Aligned {
    byte: u8,
    counter: AtomicU64,
}

#[test]
fn types_are_measured_as_the_compiler_lays_them_out() {
    measured::<u8>();
    measured::<i128>();
    measured::<()>();
    measured::<[[char; 3]; 5]>();
    measured::<Account<'static>>();
    measured::<Kind<'static>>();
    measured::<Level>();
    measured::<Wide<'static>>();
    measured::<Aligned>();
    measured::<POption<Wide<'static>>>();
    measured::<POption<bool>>();
    measured::<PVec<'static, Aligned>>();
    measured::<PHashSet<'static, PString<'static>>>();
    measured::<PHashMap<'static, u64, Account<'static>>>();
    measured::<PBTreeMap<'static, PString<'static>, Kind<'static>>>();
    measured::<PRwLock<'static, Account<'static>>>();
    measured::<*const u64>();
    measured::<std::sync::atomic::AtomicPtr<Aligned>>();
    measured::<Option<std::ptr::NonNull<[u8; 4]>>>();
}

#[test]
fn forged_descriptions_are_refused() {
    let wrong = [
        ("", "the text ends"),
        ("u8 u8", "behind the end"),
        ("PVec", "the text ends"),
        ("nothing", "no type of that name"),
        ("=0", "no such type"),
        ("S:8:8 { a@0:8 =0 }", "a part of itself"),
        ("S:8:8 { a@0:8 [1] =0 }", "a part of itself"),
        ("S:8:8 { a@0:4 u32 b@2:4 u32 }", "field b of S"),
        ("S:8:8 { a@4:8 u64 }", "field a of S"),
        ("S:8:8 { a@0:4 u64 }", "8 bytes"),
        ("S:8:4 { a@0:8 u64 }", "field a of S"),
        ("S:9:8 { }", "no size and alignment"),
        ("S:8:3 { }", "no size and alignment"),
        ("S:8:8 { a@18446744073709551615:8 u64 }", "field a of S"),
        ("[18446744073709551615] u64", "larger than any object"),
        ("[18446744073709551615] [18446744073709551615] u64", "larger than any object"),
        ("E:1:1 { tag:u64 A=0 ( ) }", "its tag"),
        ("E:3:1 { A=0 }", "no variant"),
        ("E:8:8 { A=0 a@0:1 u8 }", "fields and variants"),
        ("E:8:8 { tag:u8 }", "without variants"),
        ("E:8:8 { tag:u8 A=0 ( x@0:1 u8 ) }", "field x of E"),
        ("E:8:8 { tag:u8 ( x@0:1 u8 ) }", "no variant"),
        ("S:8:8 { A=x }", "no variant"),
        ("atomic u8", "where \"*mut\" should be"),
    ];
    for (text, expected) in wrong {
        let error = Description::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let deep = "PVec ".repeat(200) + "u8";
    assert!(Description::parse(&deep).unwrap_err().to_string().contains("within each other"));
    assert!(Description::parse(&"PVec ".repeat(300_000)).is_err());
    // Types without bytes that have each other twice: as many ways through them as two to their number.
    let twice = (1..90)
        .rev()
        .fold("N:0:1 { }".to_owned(), |inner, number| format!("N:0:1 {{ a@0:0 {inner} b@0:0 ={number} }}"));
    let twice = Description::parse(&twice).unwrap();
    assert!(twice.get(twice.root()).plain);
    assert_eq!(twice.difference(&twice.clone()), None);
}

#[test]
fn the_first_difference_is_named() {
    let difference = |one: &str, two: &str| {
        let parse = |text| Description::parse(text).unwrap();
        parse(one).difference(&parse(two))
    };
    let same = "S:16:8 { a@0:8 u64 b@8:8 *mut S }";
    assert_eq!(difference(same, same), None);
    assert_eq!(difference(same, "S:16:8 { a@0:8 u64 c@8:8 *mut S }").unwrap(), "S: field b here, c there");
    assert_eq!(difference(same, "S:16:8 { a@0:8 i64 b@8:8 *mut S }").unwrap(), "S.a: u64 here, i64 there");
    assert_eq!(
        difference("PVec S:8:8 { a@0:8 u64 }", "PVec S:16:8 { a@0:8 u64 b@8:8 u64 }").unwrap(),
        "PVec<S>[0]: field b is there only"
    );
    assert_eq!(
        difference("S:16:8 { a@0:4 u32 b@4:4 u32 }", "S:16:8 { a@0:4 u32 b@8:4 u32 }").unwrap(),
        "S.b: at 4 here, at 8 there"
    );
    assert_eq!(difference("E:1:1 { A=0 B=1 }", "E:1:1 { A=0 B=2 }").unwrap(), "E: B = 1 here, B = 2 there");
    assert_eq!(
        difference("A:8:8 { b@0:8 B:8:8 { c@0:8 u64 } }", "A:8:8 { b@0:8 B:8:8 { c@0:8 f64 } }").unwrap(),
        "A.b.c: u64 here, f64 there"
    );
}
