use indelible::Persist;
use indelible::collections::{HeapRef, PBTreeMap, PHashMap, PString, PVec};
use indelible::retention::{Converted, extendible};

pub(super) mod v1 {
    use super::*;

    #[derive(Persist)]
    #[repr(C)]
    pub(crate) struct Config<'h> {
        pub(crate) title: PString<'h>,
        pub(crate) servers: PVec<'h, Server<'h>>,
    }

    #[derive(Persist)]
    #[repr(C)]
    pub(crate) struct Server<'h> {
        pub(crate) name: PString<'h>,
        pub(crate) port: u32,
        pub(crate) weight: u32,
    }

    pub(crate) type Cache<'h> = PVec<'h, PString<'h>>;

    #[extendible]
    #[derive(Persist, Clone)]
    #[repr(C)]
    pub(crate) struct Item<'h> {
        pub(crate) name: PString<'h>,
        pub(crate) count: u32,
    }

    pub(crate) type Items<'h> = PVec<'h, Item<'h>>;
}

pub(super) mod v2 {
    use super::*;

    #[derive(Persist)]
    #[repr(C)]
    pub(crate) struct Config<'h> {
        pub(crate) title: PString<'h>,
        pub(crate) servers: PVec<'h, Server<'h>>,
    }

    #[derive(Persist)]
    #[repr(C)]
    pub(crate) struct Server<'h> {
        pub(crate) name: PString<'h>,
        pub(crate) weight: u32,
        pub(crate) port: u32,
    }

    pub(crate) type Cache<'h> = PHashMap<'h, u64, PString<'h>>;

    #[extendible]
    #[derive(Persist, Clone)]
    #[repr(C)]
    pub(crate) struct Item<'h> {
        pub(crate) name: PString<'h>,
        pub(crate) count: u32,
        #[extension(1, init = |item| i64::from(item.count) * 2)]
        pub(crate) price: i64,
        #[extension(1)]
        pub(crate) sold: bool,
    }

    pub(crate) type Items<'h> = PVec<'h, Item<'h>>;
}

pub(super) mod v3 {
    use super::*;

    #[derive(Persist)]
    #[repr(C)]
    pub(crate) struct Config<'h> {
        pub(crate) servers: PBTreeMap<'h, u64, Server<'h>>,
        pub(crate) title: PString<'h>,
        pub(crate) seconds: u32,
    }

    #[derive(Persist)]
    #[repr(C)]
    pub(crate) struct Server<'h> {
        pub(crate) name: PString<'h>,
        pub(crate) weight: u64,
        pub(crate) port: u32,
    }

    pub(crate) type Cache<'h> = PBTreeMap<'h, u64, PString<'h>>;

    #[extendible]
    #[derive(Persist, Clone)]
    #[repr(C)]
    pub(crate) struct Item<'h> {
        pub(crate) name: PString<'h>,
        pub(crate) count: u32,
        #[extension(1, init = |item| i64::from(item.count) * 2)]
        pub(crate) price: i64,
        #[extension(1)]
        pub(crate) sold: bool,
        #[extension(2, init = |item| u128::from(item.count))]
        pub(crate) wide: u128,
        #[extension(2, init = |item| item.price() + 1)]
        pub(crate) gross: i64,
        #[extension(2)]
        pub(crate) code: [u8; 5],
    }

    pub(crate) type Items<'h> = PVec<'h, Item<'h>>;
}

#[extendible]
#[derive(Persist)]
#[repr(C)]
pub(super) struct Runner<'h> {
    pub(super) number: u64,
    #[extension(1, init = |runner| [runner.number; 512])]
    pub(super) many: [u64; 512],
}

pub(super) type Crowd<'h> = PVec<'h, Runner<'h>>;

#[derive(Persist)]
#[repr(C)]
pub(super) struct Measured<'h> {
    pub(super) text: PString<'h>,
    pub(super) len: u64,
}

pub(super) type OldList<'h> = PVec<'h, PString<'h>>;
pub(super) type NewList<'h> = PVec<'h, Measured<'h>>;
pub(super) type OldMap<'h> = PHashMap<'h, u64, PString<'h>>;
pub(super) type NewMap<'h> = PBTreeMap<'h, PString<'h>, u64>;

pub(super) const SECONDS: u32 = 30;

pub(super) fn first_to_second<'h>(old: &v1::Config<'h>, heap: HeapRef<'h>) -> Converted<v2::Config<'h>> {
    let mut servers = PVec::new_in(heap);
    for server in &old.servers {
        let v1::Server { name, port, weight } = server;
        servers.try_push(v2::Server { name: PString::from_in(name, heap), weight: *weight, port: *port })?;
    }
    Ok(v2::Config { title: PString::from_in(&old.title, heap), servers })
}

pub(super) fn second_to_third<'h>(old: &v2::Config<'h>, heap: HeapRef<'h>) -> Converted<v3::Config<'h>> {
    let mut servers = PBTreeMap::new_in(heap);
    for (number, v2::Server { name, weight, port }) in (0..).zip(&old.servers) {
        let name = PString::from_in(name, heap);
        servers.try_insert(number, v3::Server { name, weight: u64::from(*weight), port: *port })?;
    }
    Ok(v3::Config { servers, title: PString::from_in(&old.title, heap), seconds: SECONDS })
}

pub(super) fn third_to_first<'h>(old: &v3::Config<'h>, heap: HeapRef<'h>) -> Converted<v1::Config<'h>> {
    let mut servers = PVec::new_in(heap);
    for v3::Server { name, weight, port } in old.servers.values() {
        let name = PString::from_in(name, heap);
        servers.try_push(v1::Server { name, port: *port, weight: u32::try_from(*weight)? })?;
    }
    Ok(v1::Config { title: PString::from_in(&old.title, heap), servers })
}
