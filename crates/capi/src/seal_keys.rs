//! Sealed objects: keys that open them, as handles, and the key slots of an object.

use crate::args::{borrow, bytes, text};
use crate::attachment::attach;
use crate::guard::{Failure, Result, guarded, status};
use crate::handles::{pmo_pool, pool};
use crate::objects::{CreateOptions, OF_NEW};
use indelible::{AttachOptions, CommandAnchor, Cost, FileAnchor, SealKey, TpmAnchor};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

/// Empty: a handle is a number, so that freed ones are noticed.
#[allow(non_camel_case_types)]
pub struct pmo_seal_key(());

static KEYS: Mutex<(BTreeMap<usize, SealKey>, usize)> = Mutex::new((BTreeMap::new(), 0));

fn keys<R>(f: impl FnOnce(&mut (BTreeMap<usize, SealKey>, usize)) -> R) -> R {
    f(&mut KEYS.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(crate) fn find(handle: *const pmo_seal_key) -> Result<SealKey> {
    let found = keys(|(all, _)| all.get(&handle.addr()).cloned());
    found.ok_or_else(|| match handle.is_null() {
        true => Failure::argument("the seal key is NULL"),
        false => Failure::argument("the seal key was freed, or never was one"),
    })
}

pub(crate) fn made(make: impl FnOnce() -> Result<SealKey>) -> *mut pmo_seal_key {
    guarded(null_mut(), || {
        let key = make()?;
        Ok(keys(|(all, last)| {
            *last += 16;
            all.insert(*last, key);
            without_provenance_mut(*last)
        }))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_seal_key_bytes(start: *const c_void, len: usize) -> *mut pmo_seal_key {
    // SAFETY: the caller's promise.
    made(|| Ok(SealKey::file(unsafe { bytes(start, len, "seal key") }?.to_vec())?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_seal_key_file(path: *const c_char) -> *mut pmo_seal_key {
    // SAFETY: the caller's promise.
    made(|| Ok(SealKey::from_file(unsafe { text(path, "path") }?)?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_seal_key_passphrase(passphrase: *const c_char) -> *mut pmo_seal_key {
    // SAFETY: the caller's promise.
    made(|| Ok(SealKey::passphrase(unsafe { text(passphrase, "passphrase") }?.to_owned())?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_seal_key_command(
    command: *const c_char,
    milliseconds: u64,
) -> *mut pmo_seal_key {
    // SAFETY: the caller's promise.
    let command = || unsafe { text(command, "command") };
    made(|| Ok(SealKey::command(command()?, Duration::from_millis(milliseconds))?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_seal_key_credential(name: *const c_char) -> *mut pmo_seal_key {
    // SAFETY: the caller's promise.
    made(|| Ok(SealKey::credential(unsafe { text(name, "name of the credential") }?)?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_seal_key_tpm(path: *const c_char) -> *mut pmo_seal_key {
    made(|| {
        // SAFETY: the caller's promise.
        let path = if path.is_null() { None } else { Some(unsafe { text(path, "path") }?) };
        Ok(SealKey::tpm(path.map(Path::new))?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_seal_key_until(seal: *const pmo_seal_key, seconds: u64) -> *mut pmo_seal_key {
    made(|| {
        let expires = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        let expires = expires.ok_or_else(|| Failure::argument("the time is too late for a clock"))?;
        Ok(find(seal)?.until(expires))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_seal_key_costing(
    seal: *const pmo_seal_key,
    memory: u64,
    passes: u32,
) -> *mut pmo_seal_key {
    made(|| {
        let memory =
            u32::try_from(memory >> 10).map_err(|_| Failure::argument("memory is more than 1 GiB"))?;
        Ok(find(seal)?.costing(Cost { memory, passes, lanes: 1 })?)
    })
}

/// `struct pmo_anchor`.
#[repr(C)]
#[allow(missing_docs)]
pub struct AnchorOptions {
    pub file: *const c_char,
    pub command: *const c_char,
    pub tpm: *const c_char,
    pub tpm_index: u32,
    pub reserved: u32,
    pub timeout: u64,
    pub interval: u64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_seal_key_anchored(
    seal: *const pmo_seal_key,
    anchor: *const AnchorOptions,
) -> *mut pmo_seal_key {
    made(|| {
        // SAFETY: the caller's promise.
        let with = unsafe { borrow(anchor, "struct of an anchor") }?;
        let given = |string: *const c_char, what| {
            // SAFETY: the caller's promise.
            if string.is_null() { Ok(None) } else { unsafe { text(string, what) }.map(Some) }
        };
        let (file, command) = (given(with.file, "file")?, given(with.command, "command")?);
        let device = given(with.tpm, "path of the TPM")?;
        let (key, every) = (find(seal)?, Some(with.interval).filter(|interval| *interval != 0));
        let every = every.map(Duration::from_millis);
        match (file, command, with.tpm_index, device) {
            (Some(file), None, 0, None) => {
                let anchor = FileAnchor::new(file);
                Ok(key.anchored(match every {
                    Some(every) => anchor.every(every),
                    None => anchor,
                }))
            }
            (None, Some(command), 0, None) => {
                let milliseconds = if with.timeout == 0 { 60_000 } else { with.timeout };
                let anchor = CommandAnchor::new(command, Duration::from_millis(milliseconds));
                Ok(key.anchored(match every {
                    Some(every) => anchor.every(every),
                    None => anchor,
                }))
            }
            (Some(file), None, index, device) if index != 0 => {
                let anchor = TpmAnchor::new(file, index, device.map(Path::new));
                Ok(key.anchored(match every {
                    Some(every) => anchor.every(every),
                    None => anchor,
                }))
            }
            _ => Err(Failure::argument(
                "an anchor is a file, a command, or a file with the index of a counter of a TPM",
            )),
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_seal_key_free(seal: *mut pmo_seal_key) -> c_int {
    status(|| {
        find(seal)?;
        drop(keys(|(all, _)| all.remove(&seal.addr())));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_create_sealed(
    handle: *mut pmo_pool,
    name: *const c_char,
    options: *const CreateOptions,
    seal: *const pmo_seal_key,
    label: *const c_char,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let with = unsafe { borrow(options, "struct of options")?.read(OF_NEW) }?;
        let seal = find(seal)?;
        // SAFETY: the caller's promise.
        let (name, label) = unsafe { (text(name, "name")?, text(label, "label")?) };
        Ok(pool(handle)?.create_with(name, &with.sealed(&seal, label))?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_attach_sealed(
    handle: *mut pmo_pool,
    name: *const c_char,
    wanted: c_int,
    key: *const c_void,
    key_len: usize,
    seal: *const pmo_seal_key,
) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        let seal = find(seal)?;
        attach(&pool(handle)?, name, wanted, &AttachOptions::new().key(key).seal(&seal))
    })
}

/// `struct pmo_key_slot`.
#[repr(C)]
#[allow(missing_docs)]
pub struct KeySlot {
    pub slot: u32,
    pub kind: u32,
    pub created: u64,
    pub expires: u64,
    pub damaged: u32,
    pub reserved: u32,
    pub label: *const c_char,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_key_slots(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    each: Option<extern "C" fn(*const KeySlot, *mut c_void) -> c_int>,
    context: *mut c_void,
) -> c_int {
    guarded(-1, || {
        let each = each.ok_or_else(|| Failure::argument("the function to be called is NULL"))?;
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        for found in pool(handle)?.key_slots(name, key)? {
            let label = CString::new(found.label).unwrap_or_default();
            let slot = KeySlot {
                slot: found.slot as u32,
                kind: found.kind.into(),
                created: found.created,
                expires: found.expires.unwrap_or(0),
                damaged: found.damaged.into(),
                reserved: 0,
                label: label.as_ptr(),
            };
            let result = each(&slot, context);
            if result != 0 {
                return Ok(result);
            }
        }
        Ok(0)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_add_key(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    seal: *const pmo_seal_key,
    added: *const pmo_seal_key,
    label: *const c_char,
) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        // SAFETY: the caller's promise.
        let label = unsafe { text(label, "label") }?;
        let (seal, added) = (find(seal)?, find(added)?);
        Ok(pool(handle)?.add_key(name, key, &seal, &added, label)? as c_int)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_change_key(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    seal: *const pmo_seal_key,
    changed: *const pmo_seal_key,
    label: *const c_char,
) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        // SAFETY: the caller's promise.
        let label = if label.is_null() { None } else { Some(unsafe { text(label, "label") }?) };
        let (seal, changed) = (find(seal)?, find(changed)?);
        Ok(pool(handle)?.change_key(name, key, &seal, &changed, label)? as c_int)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_remove_key(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    seal: *const pmo_seal_key,
    slot: c_uint,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        Ok(pool(handle)?.remove_key(name, key, &find(seal)?, slot as usize)?)
    })
}
