//! Compares descriptions of types with the compiler.

use super::{
    Extensions, Layout, PBTreeMap, PBTreeSet, PBinaryHeap, PBox, PDuration, PHashMap, PHashSet, PIpAddr,
    PMutex, POption, PRc, PRwLock, PString, PVec, PVecDeque, Persist,
};
use crate::relative::Relative;
use crate::types::Description;
use std::sync::atomic::{AtomicPtr, AtomicU64};

fn described<'h, T: Persist<'h>>() -> Description {
    let mut layout = Layout::default();
    T::describe(&mut layout);
    Description::parse(layout.text()).unwrap()
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
#[allow(dead_code)]
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
#[allow(dead_code)]
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
    measured::<PBTreeSet<'static, PString<'static>>>();
    measured::<[Extensions<'static, ()>; 2]>();
    measured::<PBinaryHeap<'static, Kind<'static>>>();
    measured::<PVecDeque<'static, Kind<'static>>>();
    measured::<PRc<'static, Aligned>>();
    measured::<Option<PRc<'static, Account<'static>>>>();
    measured::<PDuration>();
    measured::<POption<PIpAddr>>();
    measured::<*const u64>();
    measured::<AtomicPtr<Aligned>>();
    measured::<Option<std::ptr::NonNull<[u8; 4]>>>();
}
