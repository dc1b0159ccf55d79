//! Security contexts: the rights of programs to objects.

use crate::args::{self, text, texts};
use crate::guard::{Failure, Result, guarded, status};
use crate::handles::{pmo_pool, pool};
use indelible::{Rights, SecurityContext};
use std::ffi::{c_char, c_int, c_uint};

const NAME: &str = "name of the security context";
const OBJECT: &str = "name of the object";

const ALLOW: c_uint = 1;
const MASK: c_uint = 2;
const DELEGATE: c_uint = 3;

/// 0 is none.
fn asked(rights: c_uint) -> Result<Option<Rights>> {
    match rights {
        0 => Ok(None),
        _ => args::rights(rights).map(Some),
    }
}

fn change(
    handle: *mut pmo_pool,
    name: &str,
    change: impl FnOnce(&mut SecurityContext) -> Result<()>,
) -> Result<()> {
    let mut context = SecurityContext::open(&pool(handle)?, name)?;
    change(&mut context)?;
    Ok(context.psync()?)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_context_create(
    handle: *mut pmo_pool,
    name: *const c_char,
    entries: usize,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        SecurityContext::create(&pool(handle)?, unsafe { text(name, NAME) }?, entries)?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_context_default(
    handle: *mut pmo_pool,
    context: *const c_char,
    rights: c_uint,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { text(context, NAME) }?;
        change(handle, name, |context| Ok(context.set_default(asked(rights)?)?))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_context_set(
    handle: *mut pmo_pool,
    context: *const c_char,
    object: *const c_char,
    rule: c_uint,
    rights: c_uint,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, object) = unsafe { (text(context, NAME)?, text(object, OBJECT)?) };
        let rights = asked(rights)?;
        change(handle, name, |context| match rule {
            ALLOW => Ok(context.allow(object, rights)?),
            MASK => Ok(context.mask(object, rights)?),
            DELEGATE => Ok(context.delegate(object, rights)?),
            _ => Err(Failure::argument(format_args!("the rule is {rule}"))),
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_context_clear(
    handle: *mut pmo_pool,
    context: *const c_char,
    object: *const c_char,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let (name, object) = unsafe { (text(context, NAME)?, text(object, OBJECT)?) };
        change(handle, name, |context| {
            context.clear(object)?;
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_context_rights(
    handle: *mut pmo_pool,
    contexts: *const *const c_char,
    count: usize,
    object: *const c_char,
) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let (names, object) = unsafe { (texts(contexts, count, NAME)?, text(object, OBJECT)?) };
        let rights = SecurityContext::rights(&pool(handle)?, &names, object)?;
        Ok(rights.map_or(0, |rights| c_int::from(rights.bits())))
    })
}
