use crate::args::{borrow, bytes, fill, flags, name, text};
use crate::attachment::attach;
use crate::blocks::take_back;
use crate::guard::{Failure, Result, guarded, status};
use crate::handles::{pmo_pool, pool};
use crate::pool_options::tracking_number;
use crate::transactions::{class, durability};
use indelible::AttachOptions;
use indelible::raw;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::time::UNIX_EPOCH;

pub(crate) const READ_ONLY: c_uint = 1;
pub(crate) const SPARSE: c_uint = 2;
const NEEDS_RECOVERY: c_uint = 4;
const READ_KEY: c_uint = 8;
const WRITE_KEY: c_uint = 16;
const SNAPSHOT: c_uint = 32;
const SHARES: c_uint = 64;
pub(crate) const VOLATILE: c_uint = 128;
const GONE: c_uint = 256;
const SEALED: c_uint = 512;
pub(crate) const POSITION_INDEPENDENT: c_uint = 1024;
const ECC: c_uint = 2048;
const BY_CONTENT: c_uint = 4096;
const READABLE_OUTSIDE: c_uint = 8192;
pub(crate) const OF_NEW: c_uint =
    READ_ONLY | SPARSE | VOLATILE | POSITION_INDEPENDENT | ECC | READABLE_OUTSIDE;

/// `struct pmo_stat`.
#[repr(C)]
#[allow(missing_docs)]
pub struct Stat {
    pub name: [u8; 512],
    pub id: [u8; 16],
    pub size: u64,
    pub address: u64,
    pub reach: u64,
    pub psyncs: u64,
    pub created: u64,
    pub state: u32,
    pub holder: u32,
    pub flags: u32,
    pub durability: u32,
    pub own: u64,
}

impl Stat {
    pub(crate) fn of(stat: &indelible::Stat) -> Stat {
        let set = [
            (READ_ONLY, stat.read_only),
            (SPARSE, stat.sparse),
            (NEEDS_RECOVERY, stat.needs_recovery),
            (READ_KEY, stat.read_key),
            (WRITE_KEY, stat.write_key),
            (SNAPSHOT, stat.snapshot),
            (SHARES, stat.shares),
            (VOLATILE, stat.volatile),
            (GONE, stat.gone),
            (SEALED, stat.sealed),
            (POSITION_INDEPENDENT, stat.position_independent),
            (ECC, stat.ecc),
            (BY_CONTENT, stat.by_content),
            (READABLE_OUTSIDE, stat.readable_outside),
        ];
        Stat {
            name: name(&stat.name),
            id: stat.id,
            size: stat.size,
            address: stat.address,
            reach: stat.reach,
            psyncs: stat.psyncs,
            created: stat.created.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            state: u32::from(stat.state.letter()),
            holder: stat.holder.unwrap_or(0),
            flags: set.iter().filter(|(_, is)| *is).fold(0, |all, (flag, _)| all | flag),
            durability: durability(stat.class),
            own: stat.own,
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_stat(handle: *mut pmo_pool, name: *const c_char, stat: *mut Stat) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let known = pool(handle)?.stat(unsafe { text(name, "name") }?)?;
        // SAFETY: the caller's promise.
        unsafe { fill(stat, Stat::of(&known)) }
    })
}

/// `struct pmo_create_options`.
#[repr(C)]
#[allow(missing_docs)]
pub struct CreateOptions {
    pub size: u64,
    pub reach: u64,
    pub read_key: *const c_void,
    pub read_key_len: usize,
    pub write_key: *const c_void,
    pub write_key_len: usize,
    pub flags: u32,
    pub durability: u32,
}

impl CreateOptions {
    pub(crate) unsafe fn read(&self, known: c_uint) -> Result<indelible::CreateOptions> {
        let durability = class(self.durability)?;
        flags(self.flags & !known, [])?;
        let has = |flag: c_uint| self.flags & flag != 0;
        // SAFETY: the caller's promise.
        let read_key = unsafe { bytes(self.read_key, self.read_key_len, "read key") }?;
        // SAFETY: the caller's promise.
        let write_key = unsafe { bytes(self.write_key, self.write_key_len, "write key") }?;
        let with = indelible::CreateOptions::new(self.size).reach(self.reach);
        let with = with.read_key(read_key).write_key(write_key);
        let with = with.position_independent(has(POSITION_INDEPENDENT)).class(durability).ecc(has(ECC));
        let with = with.readable_outside(has(READABLE_OUTSIDE));
        Ok(with.read_only(has(READ_ONLY)).sparse(has(SPARSE)).volatile(has(VOLATILE)))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_create(handle: *mut pmo_pool, name: *const c_char, size: u64) -> c_int {
    // SAFETY: the caller's promise.
    status(|| Ok(pool(handle)?.create(unsafe { text(name, "name") }?, size)?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_create_with(
    handle: *mut pmo_pool,
    name: *const c_char,
    options: *const CreateOptions,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let with = unsafe { borrow(options, "struct of options")?.read(OF_NEW) }?;
        // SAFETY: the caller's promise.
        Ok(pool(handle)?.create_with(unsafe { text(name, "name") }?, &with)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_destroy(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        Ok(pool(handle)?.destroy_with_key(name, key)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_resize(
    handle: *mut pmo_pool,
    name: *const c_char,
    size: u64,
    key: *const c_void,
    key_len: usize,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        Ok(pool(handle)?.resize(name, size, key)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_rename(
    handle: *mut pmo_pool,
    name: *const c_char,
    new_name: *const c_char,
    key: *const c_void,
    key_len: usize,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        // SAFETY: the caller's promise.
        Ok(pool(handle)?.rename(name, unsafe { text(new_name, "new name") }?, key)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_create_by_content(
    handle: *mut pmo_pool,
    name: *const c_char,
    content: *const c_void,
    size: usize,
    id: *mut u8,
) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let (name, content) = unsafe { (text(name, "name")?, bytes(content, size, "content")?) };
        let found = pool(handle)?.create_by_content(name, content)?;
        if !id.is_null() {
            // SAFETY: room for 16 bytes, by the caller's promise.
            unsafe { id.copy_from_nonoverlapping(found.id.as_ptr(), found.id.len()) };
        }
        Ok(c_int::from(found.made))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_set_reach(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    reach: u64,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        Ok(pool(handle)?.set_reach(name, key, reach)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_set_position_independent(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    is: c_int,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        match is {
            0 | 1 => Ok(pool(handle)?.set_position_independent(name, key, is == 1)?),
            _ => Err(Failure::argument("an object is position-independent (1), or it is not (0)")),
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_attach(
    handle: *mut pmo_pool,
    name: *const c_char,
    wanted: c_int,
    key: *const c_void,
    key_len: usize,
) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        attach(&pool(handle)?, name, wanted, &AttachOptions::new().key(key))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_attach_at(
    handle: *mut pmo_pool,
    address: *const c_void,
    wanted: c_int,
    key: *const c_void,
    key_len: usize,
) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let key = unsafe { bytes(key, key_len, "key") }?;
        let pool = pool(handle)?;
        let name = name_at(&pool, address.addr() as u64)?;
        attach(&pool, &name, wanted, &AttachOptions::new().key(key))
    })
}

fn name_at(pool: &indelible::Pool, address: u64) -> Result<String> {
    for stat in pool.list() {
        let stat = stat?;
        if stat.address == address {
            return Ok(stat.name);
        }
    }
    Err(Failure::argument(format_args!("no object of the pool has the address {address:#x}")))
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_detach(object: *mut c_void) -> c_int {
    status(|| {
        take_back(object.addr())?;
        Ok(raw::detach(object.cast())?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_grow(object: *mut c_void, size: u64) -> c_int {
    // SAFETY: the caller's promise.
    status(|| Ok(unsafe { raw::grow(object.cast(), size) }?))
}

/// `struct pmo_object`.
#[repr(C)]
#[allow(missing_docs)]
pub struct ObjectInfo {
    pub base: *mut c_void,
    pub size: u64,
    pub psyncs: u64,
    pub recovered_bytes: u64,
    pub writable: u32,
    pub tracking: u32,
    pub name: [u8; 512],
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_object(address: *const c_void, object: *mut ObjectInfo) -> c_int {
    status(|| {
        let known = raw::attached(address.cast())?;
        let filled = ObjectInfo {
            base: known.base.as_ptr().cast(),
            size: known.len as u64,
            psyncs: known.psyncs,
            recovered_bytes: known.recovered_bytes,
            writable: u32::from(known.writable),
            tracking: tracking_number(known.tracking),
            name: name(&known.name),
        };
        // SAFETY: the caller's promise.
        unsafe { fill(object, filled) }
    })
}
