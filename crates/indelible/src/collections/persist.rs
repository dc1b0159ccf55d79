//! Types that may live in the heap of an object.
//!
//! Invariants that the implementations keep:
//!
//! 1. `check` is true only for bytes that are a value of the type, and whose pointers, as far as
//!    the type follows them, lie with all they point at within the bounds.
//! 2. `ANY` is true only if every bit pattern is a value and owns nothing.

#![allow(unsafe_code)]

use super::layout::Layout;
use super::search::Search;
use crate::error::Result;
use crate::far::Far;
pub use crate::heap::Bounds;
use crate::plain::Plain;
use crate::relative::Relative;
use crate::transaction::{TxCell, TxPtr};
use std::marker::PhantomData;
use std::num::{
    NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroI128, NonZeroIsize, NonZeroU8, NonZeroU16,
    NonZeroU32, NonZeroU64, NonZeroU128, NonZeroUsize, Wrapping,
};
use std::ptr::NonNull;
use std::sync::atomic;

/// Types whose values may live in the heap of an object.
///
/// These are integers, non-zero ones (`NonZeroU64` and so on), floats, `bool`, `char`, arrays,
/// tuples of up to six fields, raw pointers, atomics and the containers of
/// [`collections`](crate::collections). Derive it for `#[repr(C)]` structs, and for enums with an
/// integer as `repr`:
///
/// ```
/// use indelible::Persist;
/// use indelible::collections::{PBox, PString, PVec};
///
/// #[derive(Persist)]
/// #[repr(C)]
/// struct Account<'h> {
///     owner: PString<'h>,
///     kind: Kind<'h>,
///     transfers: PVec<'h, [u64; 2]>,
///     parent: Option<PBox<'h, Account<'h>>>,
/// }
///
/// #[derive(Persist)]
/// #[repr(u8)] // or #[repr(C, u8)]
/// enum Kind<'h> {
///     Private,
///     Business { register: PString<'h>, number: u64 },
///     Shared(PVec<'h, u32>),
/// }
/// ```
///
/// `'h` is the borrow of the heap. The derive computes the fingerprint that roots are checked with:
/// names, types, offsets and sizes of all fields, names and integers of all variants, through
/// nested types.
///
/// The compiler is free in how it lays out a tuple. Roots have the layout that they were made with:
/// if another compiler lays a tuple out differently, the root is a `RootType` error, and data are
/// never misread. Data that outlive compilers are better in a struct.
///
/// "Implementation of `Persist` is not general enough" is the compiler's error for a task that
/// keeps a root across an `.await`: see [`Heap::root_in_task`](crate::Heap::root_in_task).
///
/// A store through a reference (`map[&key] = value`) or a pointer may copy any bytes of the process
/// to those between a value's fields: where that matters, name such bytes as fields.
///
/// Unfit types do not compile:
///
/// ```compile_fail,E0277
/// #[derive(indelible::Persist)]
/// #[repr(C)]
/// struct Page { title: String } // its bytes are on the process's own heap: use PString
/// ```
///
/// ```compile_fail,E0277
/// #[derive(indelible::Persist)]
/// #[repr(C)]
/// struct Shared { data: std::rc::Rc<u64> } // counted in this process: use PRc
/// ```
///
/// ```compile_fail,E0277
/// #[derive(indelible::Persist)]
/// #[repr(C)]
/// struct Boxed { data: Box<u64> } // use PBox
/// ```
///
/// ```compile_fail,E0277
/// #[derive(indelible::Persist)]
/// #[repr(C)]
/// struct Open { file: std::fs::File } // a descriptor means nothing in another process
/// ```
///
/// ```compile_fail
/// #[derive(indelible::Persist)]
/// #[repr(C)]
/// struct Borrowed { text: &'static str } // gone with the process
/// ```
///
/// ```compile_fail
/// #[derive(indelible::Persist)]
/// #[repr(C)]
/// struct Callback { call: fn() } // code is elsewhere in the next run
/// ```
///
/// ```compile_fail,E0277
/// #[derive(indelible::Persist)]
/// #[repr(C)]
/// struct Named { both: (String, u64) } // use PString
/// ```
///
/// ```compile_fail,E0277
/// #[derive(indelible::Persist)]
/// #[repr(C)]
/// struct Maybe { value: Option<u64> } // the layout of most options is not fixed: use POption
/// ```
///
/// ```compile_fail
/// #[derive(indelible::Persist)]
/// struct Unfixed { a: u8, b: u64 } // no #[repr(C)]: the next build may lay it out differently
/// ```
///
/// ```compile_fail
/// #[derive(indelible::Persist)]
/// enum Shape { Circle(f64), Point } // no #[repr(u8)]: the next build may lay it out differently
/// ```
///
/// ```compile_fail
/// #[derive(indelible::Persist)]
/// #[repr(C)]
/// enum Shape { Circle(f64), Point } // how large C's enums are depends on the compiler: use #[repr(C, u8)]
/// ```
///
/// ```compile_fail,E0277
/// #[derive(indelible::Persist)]
/// #[repr(u8)]
/// enum Shape { Named(String), Point } // use PString
/// ```
///
/// # Safety
/// Implement it by deriving. By hand: `check` must be true only for bytes that are a value of the
/// type and whose pointers lie within the bounds, `ANY` only if every bit pattern is a value that
/// owns nothing, and the layout must be fixed. `SHARED` is true if any field's is. `describe` gives
/// the place and type of every field, by which the blocks that a value owns are found.
///
/// Safe code can store any value of the fields' types: a heap cannot tell another program's type of
/// the same name and layout. If unsafe code relies on more, `check` has to verify it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot live in an object",
    label = "not `Persist`",
    note = "use PString for String, PVec for Vec, PVecDeque for VecDeque, PBox for Box, PRc for Rc, PHashMap for HashMap, PBTreeMap for BTreeMap, POption for Option, PDuration for Duration, PIpAddr for IpAddr, PMutex for Mutex",
    note = "references, Rc, Arc, file handles and functions mean nothing in another process; derive Persist for your own #[repr(C)] structs"
)]
pub unsafe trait Persist<'h>: Sized + 'h {
    /// Whether every bit pattern is a value.
    #[doc(hidden)]
    const ANY: bool;

    /// Whether shared references can store to it by atomics, other than through its pointers.
    #[doc(hidden)]
    const SHARED: bool = false;

    /// Whether a value has bytes outside of its fields, which a move fills arbitrarily.
    #[doc(hidden)]
    const PADDED: bool = false;

    /// Zeros those bytes of a value in an object.
    ///
    /// # Safety
    /// `at` is a value that is the caller's alone.
    #[doc(hidden)]
    #[inline]
    unsafe fn clear_padding(_at: *mut Self) {}

    /// Whether the bytes are a value.
    ///
    /// # Safety
    /// `at` is aligned and readable, and no thread writes to it.
    #[doc(hidden)]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool;

    /// Fails if a value in this one has an extension of another type than the program's, as far as
    /// `search` goes. Skips values under locks.
    ///
    /// # Safety
    /// `check` accepted the value. Only atomics in it change during the call.
    #[doc(hidden)]
    unsafe fn expect_extensions(_at: *const Self, _bounds: &Bounds, _search: &mut Search) -> Result<()> {
        Ok(())
    }

    /// [`expect_extensions`](Persist::expect_extensions) for unchecked bytes; skips invalid ones.
    ///
    /// # Safety
    /// `at` is aligned and readable. Only atomics in it change during the call.
    #[doc(hidden)]
    unsafe fn search(at: *const Self, bounds: &Bounds, search: &mut Search) -> Result<()> {
        // SAFETY: the caller's promise.
        if Self::ANY || !search.goes_on() || !unsafe { Self::check(at, bounds) } {
            return Ok(());
        }
        // SAFETY: the caller's promise; checked just now.
        search.within(|search| unsafe { Self::expect_extensions(at, bounds, search) })
    }

    /// Adds all parts of the layout.
    #[doc(hidden)]
    fn describe(layout: &mut Layout);

    /// The name in errors.
    #[doc(hidden)]
    fn type_name(out: &mut String);
}

/// # Safety
/// `at` is aligned, and room for a value that is the caller's alone.
#[inline]
pub(super) unsafe fn put<'h, T: Persist<'h>>(at: *mut T, value: T) {
    // SAFETY: the caller's promise.
    unsafe {
        at.write(value);
        clear_padding(at, 1);
    }
}

/// # Safety
/// They are values, and the caller's alone.
#[inline]
pub(super) unsafe fn clear_padding<'h, T: Persist<'h>>(at: *mut T, count: usize) {
    if T::PADDED {
        // SAFETY: the caller's promise.
        (0..count).for_each(|index| unsafe { T::clear_padding(at.add(index)) });
    }
}

/// Zeros the bytes outside of the fields, (offset, length) by offset, of a value of `len` bytes.
///
/// # Safety
/// `at` is a value that is the caller's alone, and the fields lie in it.
#[inline(always)]
pub unsafe fn clear_gaps<const N: usize>(at: *mut u8, len: usize, fields: [(usize, usize); N]) {
    let mut end = 0;
    for (offset, size) in fields {
        if size > 0 {
            if offset > end {
                // SAFETY: in the value.
                unsafe { at.add(end).write_bytes(0, offset - end) };
            }
            end = offset + size;
        }
    }
    if len > end {
        // SAFETY: in the value.
        unsafe { at.add(end).write_bytes(0, len - end) };
    }
}

macro_rules! primitive {
    ($shared:literal: $($ty:ty),* $(,)?) => {
        $(
            // SAFETY: every bit pattern is a value (2), of fixed layout.
            unsafe impl<'h> Persist<'h> for $ty {
                const ANY: bool = true;
                const SHARED: bool = $shared;
                #[inline]
                unsafe fn check(_: *const Self, _: &Bounds) -> bool { true }
                fn describe(layout: &mut Layout) {
                    layout.word(stringify!($ty));
                    layout.atomics |= $shared;
                }
                fn type_name(out: &mut String) {
                    out.push_str(stringify!($ty).rsplit(' ').next().unwrap_or_default());
                }
            }
        )*
    };
}

primitive!(false: u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64, ());
primitive!(false: usize, isize);
primitive!(true: atomic::AtomicU8, atomic::AtomicU16, atomic::AtomicU32, atomic::AtomicU64, atomic::AtomicUsize);
primitive!(true: atomic::AtomicI8, atomic::AtomicI16, atomic::AtomicI32, atomic::AtomicI64, atomic::AtomicIsize);

const _: () = assert!(size_of::<usize>() == 8, "addresses in objects have 64 bits");

macro_rules! transparent {
    ($($ty:ident $(<$par:ident>)? as $inner:ident, $ok:expr);* $(;)?) => {
        $(
            // SAFETY: `check` knows the bit patterns that are values (1).
            unsafe impl<'h> Persist<'h> for $ty {
                const ANY: bool = false;
                #[inline]
                unsafe fn check(at: *const Self, _: &Bounds) -> bool {
                    let ok: fn($inner) -> bool = $ok;
                    // SAFETY: readable; any bits are an integer.
                    ok(unsafe { at.cast::<$inner>().read() })
                }
                fn describe(layout: &mut Layout) { layout.word(stringify!($ty)); }
                fn type_name(out: &mut String) { out.push_str(stringify!($ty)); }
            }
        )*
    };
}

transparent!(bool as u8, |byte| byte < 2; char as u32, |number| char::from_u32(number).is_some());
transparent!(
    NonZeroU8 as u8, |number| number != 0; NonZeroU16 as u16, |number| number != 0;
    NonZeroU32 as u32, |number| number != 0; NonZeroU64 as u64, |number| number != 0;
    NonZeroU128 as u128, |number| number != 0; NonZeroUsize as usize, |number| number != 0;
    NonZeroI8 as i8, |number| number != 0; NonZeroI16 as i16, |number| number != 0;
    NonZeroI32 as i32, |number| number != 0; NonZeroI64 as i64, |number| number != 0;
    NonZeroI128 as i128, |number| number != 0; NonZeroIsize as isize, |number| number != 0;
);

macro_rules! pointer {
    ($($ty:ty, $name:literal, $shared:literal);* $(;)?) => {
        $(
            // SAFETY: any address is a value (2); following it is the user's `unsafe`.
            unsafe impl<'h, T: 'h> Persist<'h> for $ty {
                const ANY: bool = true;
                const SHARED: bool = $shared;
                #[inline]
                unsafe fn check(_: *const Self, _: &Bounds) -> bool { true }
                fn describe(layout: &mut Layout) {
                    layout.pointer($name);
                    layout.word(&target::<T>());
                    layout.atomics |= $shared;
                }
                fn type_name(out: &mut String) { out.push_str($name); out.push_str(&target::<T>()); }
            }
        )*
    };
}

pointer!(*mut T, "*mut ", false; *const T, "*const ", false; Option<NonNull<T>>, "*mut ", false);
pointer!(atomic::AtomicPtr<T>, "atomic *mut ", true; Relative<T>, "relative *mut ", false; TxPtr<T>, "*mut ", false);
pointer!(Far<T>, "far ", false);

/// Last part of a type's name: raw pointers' targets need not be `Persist`.
fn target<T>() -> String {
    let name = std::any::type_name::<T>();
    let head = name.find('<').unwrap_or(name.len());
    name[..head].rsplit("::").next().unwrap_or(name).replace(' ', "")
}

// SAFETY: elements lie back to back.
unsafe impl<'h, T: Persist<'h>, const N: usize> Persist<'h> for [T; N] {
    const ANY: bool = T::ANY;
    const SHARED: bool = T::SHARED;
    const PADDED: bool = N > 0 && T::PADDED;

    #[inline]
    unsafe fn clear_padding(at: *mut Self) {
        // SAFETY: N elements of the caller's.
        unsafe { clear_padding(at.cast::<T>(), N) };
    }

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: N readable elements.
        T::ANY || (0..N).all(|index| unsafe { T::check(at.cast::<T>().add(index), bounds) })
    }

    unsafe fn expect_extensions(at: *const Self, bounds: &Bounds, search: &mut Search) -> Result<()> {
        // SAFETY: elements of the caller's array.
        (0..N).try_for_each(|index| unsafe { T::search(at.cast::<T>().add(index), bounds, search) })
    }

    fn describe(layout: &mut Layout) {
        layout.word(&format!("[{N}]"));
        T::describe(layout);
    }

    fn type_name(out: &mut String) {
        out.push('[');
        T::type_name(out);
        out.push_str(&format!("; {N}]"));
    }
}

// SAFETY: transparent.
unsafe impl<'h, T: Persist<'h>> Persist<'h> for Wrapping<T> {
    const ANY: bool = T::ANY;
    const SHARED: bool = T::SHARED;
    const PADDED: bool = T::PADDED;

    #[inline]
    unsafe fn clear_padding(at: *mut Self) {
        // SAFETY: the same bytes.
        unsafe { T::clear_padding(at.cast()) };
    }

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: the same bytes.
        unsafe { T::check(at.cast(), bounds) }
    }

    fn describe(layout: &mut Layout) {
        T::describe(layout);
    }

    fn type_name(out: &mut String) {
        T::type_name(out);
    }
}

// SAFETY: the same bytes; transactions take the value to be any bits.
unsafe impl<'h, T: Plain + Copy + Persist<'h>> Persist<'h> for TxCell<T> {
    const ANY: bool = T::ANY;
    const SHARED: bool = true;

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: the same bytes.
        unsafe { T::check(at.cast(), bounds) }
    }

    fn describe(layout: &mut Layout) {
        T::describe(layout);
        layout.atomics = true;
    }

    fn type_name(out: &mut String) {
        T::type_name(out);
    }
}

// SAFETY: no bytes.
unsafe impl<'h, T: 'h> Persist<'h> for PhantomData<T> {
    const ANY: bool = true;

    #[inline]
    unsafe fn check(_: *const Self, _: &Bounds) -> bool {
        true
    }

    fn describe(_: &mut Layout) {}

    fn type_name(out: &mut String) {
        out.push_str("nothing");
    }
}
