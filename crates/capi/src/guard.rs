//! The boundary: errors become codes, panics become errors.

use crate::codes::{ARGUMENT, INTERNAL, ROOT_TYPE, text};
use crate::remedies;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The code and the text of an error.
#[derive(Debug)]
pub struct Failure {
    code: i32,
    text: String,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn argument(text: impl Display) -> Failure {
        Failure { code: ARGUMENT, text: format!("argument: {text}") }
    }

    pub(crate) fn root_type(text: String) -> Failure {
        Failure { code: ROOT_TYPE, text }
    }

    fn panic(payload: &(dyn Any + Send)) -> Failure {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let text = format!("a defect of this library: {}", text.unwrap_or("it does not say which"));
        Failure { code: INTERNAL, text }
    }
}

impl From<indelible::Error> for Failure {
    fn from(error: indelible::Error) -> Self {
        Failure { code: error.kind() as i32, text: remedies::text(&error) }
    }
}

thread_local! {
    static LAST: RefCell<(i32, Option<CString>)> = const { RefCell::new((0, None)) };
}

#[cold]
fn keep(failure: Failure) {
    let text = failure.text.replace('\0', "\u{fffd}");
    let text = CString::new(text).ok();
    let _ = LAST.try_with(|last| *last.borrow_mut() = (failure.code, text));
}

pub(crate) fn forget_last() {
    let _ = LAST.try_with(|last| *last.borrow_mut() = (0, None));
}

pub(crate) fn last_text() -> Option<String> {
    let text = |last: &RefCell<(i32, Option<CString>)>| {
        last.borrow().1.as_ref().map(|text| text.to_string_lossy().into_owned())
    };
    LAST.try_with(text).ok().flatten()
}

/// Runs an exported function's body; an error or panic returns `failed`.
#[inline]
pub fn guarded<T>(failed: T, body: impl FnOnce() -> std::result::Result<T, Failure>) -> T {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return value,
        Ok(Err(failure)) => failure,
        Err(payload) => Failure::panic(&*payload),
    };
    keep(failure);
    failed
}

#[inline]
pub(crate) fn status(body: impl FnOnce() -> Result<()>) -> c_int {
    guarded(-1, || body().map(|()| 0))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn pmo_errno() -> c_int {
    guarded(INTERNAL, || Ok(LAST.try_with(|last| last.borrow().0).unwrap_or(INTERNAL)))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn pmo_error_message() -> *const c_char {
    let text = |last: &RefCell<(i32, Option<CString>)>| {
        last.borrow().1.as_ref().map_or(c"".as_ptr(), |text| text.as_ptr())
    };
    guarded(c"".as_ptr(), || Ok(LAST.try_with(text).unwrap_or(c"".as_ptr())))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn pmo_strerror(code: c_int) -> *const c_char {
    guarded(c"".as_ptr(), || Ok(text(code).as_ptr()))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn pmo_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    guarded(c"".as_ptr(), || Ok(CStr::from_bytes_with_nul(VERSION.as_bytes()).unwrap_or(c"").as_ptr()))
}
