//! Named roots.

use crate::args::text;
use crate::described::Described;
use crate::guard::{Failure, guarded, status};
use crate::types::Type;
use indelible::raw;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::{null_mut, with_exposed_provenance_mut};

/// `struct pmo_root`.
#[repr(C)]
#[allow(missing_docs)]
pub struct Root {
    pub name: *const c_char,
    pub address: *mut c_void,
    pub size: u64,
    pub ty: *const c_char,
    pub layout: *const c_char,
    pub fingerprint: [u64; 2],
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_root_create(
    object: *mut c_void,
    name: *const c_char,
    address: *const c_void,
    size: usize,
    ty: *const Type,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, described) = unsafe { (text(name, "name")?, Described::of(ty)?) };
        if described.size > size {
            return Err(Failure::argument(format!(
                "a {} has {} bytes, the root {size}",
                described.name, described.size
            )));
        }
        // SAFETY: the caller's promise.
        Ok(unsafe { raw::create_root(object.cast(), name, address.cast(), size as u64, &described.info()) }?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_root(object: *mut c_void, name: *const c_char, ty: *const Type) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "name") }?;
        let root = if ty.is_null() {
            // SAFETY: the caller's promise.
            unsafe { raw::root_any(object.cast(), name) }?
        } else {
            // SAFETY: the caller's promise.
            let ty = unsafe { Described::of(ty) }?;
            // SAFETY: the caller's promise.
            unsafe { raw::root(object.cast(), name, &ty.info()) }?
        };
        Ok(with_exposed_provenance_mut(root.address))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_root_remove(object: *mut c_void, name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    status(|| Ok(unsafe { raw::remove_root(object.cast(), text(name, "name")?) }.map(drop)?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_roots(
    object: *mut c_void,
    each: Option<extern "C" fn(*const Root, *mut c_void) -> c_int>,
    context: *mut c_void,
) -> c_int {
    guarded(-1, || {
        let each = each.ok_or_else(|| Failure::argument("the function to be called is NULL"))?;
        // SAFETY: the caller's promise.
        for root in unsafe { raw::roots(object.cast()) }? {
            let string = |text: &str| CString::new(text).unwrap_or_default();
            let (name, ty, layout) = (string(&root.name), string(&root.type_name), string(&root.lines()));
            let given = Root {
                name: name.as_ptr(),
                address: with_exposed_provenance_mut(root.address),
                size: root.size,
                ty: ty.as_ptr(),
                layout: layout.as_ptr(),
                fingerprint: [root.fingerprint as u64, (root.fingerprint >> 64) as u64],
            };
            let result = each(&given, context);
            if result != 0 {
                return Ok(result);
            }
        }
        Ok(0)
    })
}
