//! Extensions of structs of C and C++, by the address of their link
//! (docs/decisions/0037-extensions.md).

use crate::args::{array, borrow, lossy, text, zero};
use crate::described::Described;
use crate::guard::{Failure, Result, guarded, pmo_error_message, status};
use crate::types::{Kind, Type};
use indelible::raw::{self, ExtensionOf};
use std::ffi::{c_char, c_int, c_void};
use std::io::Write;
use std::ptr::null_mut;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

const LINK: usize = 8;
/// The most links of a value: each copy and free lists them.
const MOST: usize = 1 << 20;

/// `struct pmo_extension`.
#[repr(C)]
#[allow(missing_docs)]
pub struct Extension {
    pub of: *const c_char,
    pub ty: Option<extern "C" fn() -> *const Type>,
    pub init: Option<extern "C" fn(*const c_void, *mut c_void)>,
    /// Half of the type's fingerprint; 0 until it is computed.
    pub identity: AtomicU64,
}

/// `struct pmo_extensions`.
#[repr(C)]
#[allow(missing_docs)]
pub struct Extensions {
    pub link: u64,
}

impl Extension {
    fn ty(&self) -> Result<*const Type> {
        let ty = self.ty.ok_or_else(|| Failure::argument("an extension has no type"))?;
        Ok(ty())
    }

    unsafe fn with(&self, number: usize) -> Result<ExtensionOf<'_>> {
        let ty = self.ty()?;
        // SAFETY: the caller's promise.
        let (of, described) = unsafe { (text(self.of, "name of the struct")?, borrow(ty, "type")?) };
        let align = if described.align > 0 { described.align } else { 16 };
        if !align.is_power_of_two() || align > 16 {
            return Err(Failure::argument(format!(
                "extension {number} of {of} is aligned to {align} bytes, and not to 16 at most"
            )));
        }
        let mut identity = self.identity.load(Relaxed);
        if identity == 0 {
            // SAFETY: the caller's promise.
            identity = unsafe { Described::of(ty) }?.fingerprint as u64;
            self.identity.store(identity, Relaxed);
        }
        Ok(ExtensionOf { of, number, size: described.size, align, identity })
    }

    fn lines(&self) -> String {
        // SAFETY: `with` has described it.
        let described = self.ty().and_then(|ty| unsafe { Described::of(ty) });
        described.map(|described| described.info().lines()).unwrap_or_default()
    }

    fn write_initial(&self, base: *const c_void, fields: *mut u8) -> Result<()> {
        let Some(init) = self.init else { return Ok(()) };
        raw::initial_values(|| init(base, fields.cast())).ok_or_else(|| {
            Failure::argument("initial values of extensions are computed from each other, without an end")
        })
    }
}

unsafe fn up_to<'a>(all: *const Extension, number: usize) -> Result<&'a [Extension]> {
    if number == 0 {
        return Err(Failure::argument("extensions are numbered from 1"));
    }
    // SAFETY: the caller's promise.
    unsafe { array(all, number, "list of extensions") }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_extend(
    base: *const c_void,
    extensions: *const Extensions,
    all: *const Extension,
    number: usize,
) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let link = unsafe { borrow(extensions, "link") }?;
        let mut fields = null_mut();
        // SAFETY: the caller's promise.
        for (extension, number) in unsafe { up_to(all, number) }?.iter().zip(1..) {
            let initial = |fields: *mut u8| extension.write_initial(base, fields);
            // SAFETY: the caller's promise.
            let made = unsafe {
                let of = extension.with(number)?;
                raw::extend(&raw const link.link, &of, || extension.lines(), initial)
            };
            fields = made?.as_ptr();
        }
        Ok(fields.cast())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_extended(
    base: *const c_void,
    extensions: *const Extensions,
    all: *const Extension,
    number: usize,
    initial: *mut c_void,
) -> *const c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let (link, all) = unsafe { (borrow(extensions, "link")?, up_to(all, number)?) };
        let extension = &all[number - 1];
        // SAFETY: the caller's promise.
        let (of, found) = unsafe {
            let of = extension.with(number)?;
            (of, raw::extension(&raw const link.link, &of, || extension.lines())?)
        };
        if let Some(fields) = found {
            return Ok(fields.as_ptr().cast());
        }
        // SAFETY: the caller's promise.
        unsafe { zero(initial, of.size) }?;
        extension.write_initial(base, initial.cast())?;
        Ok(initial)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_extended_copy(to: *mut c_void, from: *const c_void, ty: *const Type) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (links, size) = unsafe { (links(ty)?, borrow(ty, "type")?.size) };
        if to.is_null() || from.is_null() {
            return Err(Failure::argument("a value to be copied, or its place, is NULL"));
        }
        // SAFETY: the caller's promise.
        Ok(unsafe { raw::copy_extended(to.cast(), from.cast(), size, &links) }?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_extended_free(block: *mut c_void, count: usize, ty: *const Type) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (links, size) = unsafe { (links(ty)?, borrow(ty, "type")?.size) };
        if block.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        Ok(unsafe { raw::free_extended(block.cast(), count, size, &links) }?)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn pmo_extension_failed(of: *const c_char) -> c_int {
    guarded(-1, || {
        // SAFETY: zero-terminated strings, as the header says.
        let (of, message) = unsafe { (text(of, "name").unwrap_or("a struct"), lossy(pmo_error_message())) };
        let _ = writeln!(std::io::stderr(), "cannot use an extension of {of}: {message}");
        std::process::abort()
    })
}

/// Offsets of the links in a value.
///
/// # Safety
/// NULL, or a valid, lasting type of C.
unsafe fn links(ty: *const Type) -> Result<Vec<usize>> {
    let mut all = Vec::new();
    // SAFETY: the caller's promise.
    unsafe { add_links(ty, 0, 0, &mut all) }?;
    Ok(all)
}

/// # Safety
/// As for [`links`].
unsafe fn add_links(ty: *const Type, at: usize, depth: usize, all: &mut Vec<usize>) -> Result<()> {
    // SAFETY: the caller's promise.
    let this = unsafe { borrow(ty, "type") }?;
    if depth > 90 || all.len() > MOST {
        return Err(Failure::argument("a type has too many types, or extensions, within each other"));
    }
    match this.kind()? {
        Kind::Extensions => all.push(at),
        Kind::Struct | Kind::Array => {
            // SAFETY: the caller's promise.
            for field in unsafe { array(this.fields, this.count, "list of fields") }? {
                let Some(nested) = field.nested else { continue };
                let nested = nested();
                // SAFETY: the caller's promise.
                let size = unsafe { borrow(nested, "type of a field") }?.size.max(1);
                let end = if this.kind()? == Kind::Array { this.size } else { field.offset + field.size };
                let mut offset = field.offset;
                let before = all.len();
                while offset + size.max(LINK) <= end {
                    // SAFETY: the caller's promise.
                    unsafe { add_links(nested, at + offset, depth + 1, all) }?;
                    if all.len() == before {
                        break;
                    }
                    offset += size;
                }
            }
        }
        Kind::Scalar | Kind::Pointer | Kind::Far | Kind::Opaque => {}
    }
    Ok(())
}
