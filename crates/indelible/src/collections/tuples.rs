//! Tuples. The language leaves their layout open: a description has the offsets of this build's
//! compiler, so that a root of another layout is an error of type.

#![allow(unsafe_code)]

use super::layout::Layout;
use super::persist::{Bounds, Persist, clear_gaps};
use super::search::Search;
use crate::error::Result;
use std::mem::offset_of;

/// Sorted by offset, those without bytes first, as [`clear_gaps`] wants them.
const fn sorted<const N: usize>(mut fields: [(usize, usize); N]) -> [(usize, usize); N] {
    let mut end = 1;
    while end < N {
        let mut at = end;
        while at > 0 && fields[at - 1].0 > fields[at].0 {
            fields.swap(at - 1, at);
            at -= 1;
        }
        end += 1;
    }
    fields
}

macro_rules! tuples {
    ($(($($ty:ident $index:tt),*))*) => {
        $(
            // SAFETY: `check` looks at every field, at the place that this build's compiler gives
            // it, and the description has these places.
            unsafe impl<'h, $($ty: Persist<'h>),*> Persist<'h> for ($($ty,)*) {
                const ANY: bool = !std::mem::needs_drop::<Self>() $(&& $ty::ANY)*;
                const SHARED: bool = false $(|| $ty::SHARED)*;
                const PADDED: bool = size_of::<Self>() != 0 $(+ size_of::<$ty>())* $(|| $ty::PADDED)*;

                #[inline]
                unsafe fn clear_padding(at: *mut Self) {
                    let fields = const { sorted([$((offset_of!(Self, $index), size_of::<$ty>())),*]) };
                    // SAFETY: a value with its fields, by the caller's promise.
                    unsafe {
                        clear_gaps(at.cast::<u8>(), size_of::<Self>(), fields);
                        $(if $ty::PADDED {
                            $ty::clear_padding(&raw mut (*at).$index);
                        })*
                    }
                }

                #[inline]
                unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
                    // SAFETY: fields of the caller's value.
                    true $(&& ($ty::ANY || unsafe { $ty::check(&raw const (*at).$index, bounds) }))*
                }

                unsafe fn expect_extensions(at: *const Self, bounds: &Bounds, search: &mut Search) -> Result<()> {
                    // SAFETY: fields of the caller's value.
                    $(unsafe { $ty::search(&raw const (*at).$index, bounds, search) }?;)*
                    Ok(())
                }

                fn describe(layout: &mut Layout) {
                    let mut name = String::new();
                    Self::type_name(&mut name);
                    // A description has a type's name as one word.
                    name.retain(|letter| letter != ' ');
                    layout.define::<Self>(&name, |members| {
                        $(members.field::<$ty>(stringify!($index), offset_of!(Self, $index));)*
                    });
                }

                fn type_name(out: &mut String) {
                    let names = [$({
                        let mut name = String::new();
                        $ty::type_name(&mut name);
                        name
                    }),*];
                    let end = if names.len() == 1 { ",)" } else { ")" };
                    out.push('(');
                    out.push_str(&names.join(", "));
                    out.push_str(end);
                }
            }
        )*
    };
}

tuples!((A 0) (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3) (A 0, B 1, C 2, D 3, E 4) (A 0, B 1, C 2, D 3, E 4, F 5));
