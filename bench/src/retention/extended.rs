//! Structs as Indelible extends them: one macro makes all versions of a struct.

use super::Space;
use super::body::Body;
use super::linked::{Linked, LinkedKey, Unchecked as UncheckedLink};
use super::plain::{Named, Plain64, Width};
use super::space::{Own, PmemSpace};
use super::versions::{Add, Change, Deep, Keyed, Parts, Recopy, Versions};
use indelible::Persist;
use indelible::retention::{Extensions, extendible};

/// Bytes of an extension before its fields (FORMAT.md, section 10).
const HEADER: usize = 24;

/// The field of the keys that a program has as `$wide`, and the access to it.
macro_rules! version {
    ($(#[$about:meta])* $name:ident($fields:ty): $keys:literal, $rest:ty,
     |$at:ident| $get:expr, |$into:ident, $new:ident| $set:expr) => {
        $(#[$about])*
        #[repr(transparent)]
        pub struct $name($fields);

        // SAFETY: its chain is its own.
        unsafe impl<S: Space> Keyed<S, $keys> for $name {
            type Rest = $rest;

            unsafe fn make(at: *mut Self, keys: [u64; $keys], rest: $rest, _: &mut S) {
                // SAFETY: the caller's promise.
                unsafe {
                    at.write($name(Fields { keys: keys.map(u32::of), rest, extensions: Extensions::new() }));
                    let ($into, $new) = (&mut (*at).0, keys);
                    $set
                }
            }

            #[inline]
            unsafe fn keys(at: *mut Self, _: &mut S) -> [u64; $keys] {
                // SAFETY: the caller's promise.
                let $at = unsafe { &mut (*at).0 };
                $get
            }

            #[inline]
            unsafe fn set_keys(at: *mut Self, keys: [u64; $keys], _: &mut S) {
                // SAFETY: the caller's promise.
                let ($into, $new) = unsafe { (&mut (*at).0, keys) };
                $set
            }

            #[inline]
            unsafe fn rest(at: *mut Self) -> *mut $rest {
                // SAFETY: the caller's promise.
                unsafe { &raw mut (*at).0.rest }
            }

            unsafe fn is_extended(at: *mut Self) -> bool {
                // SAFETY: the caller's promise.
                unsafe { link(&(*at).0.extensions) != 0 }
            }

            unsafe fn discard(at: *mut Self, _: &mut S) {
                // SAFETY: the caller's promise.
                unsafe { at.drop_in_place() }
            }
        }
    };
}

fn link<C>(extensions: &Extensions<'_, C>) -> u64 {
    const { assert!(size_of::<Extensions<'_, C>>() == 8) };
    // SAFETY: the link is one word, to which no thread stores meanwhile.
    unsafe { std::ptr::from_ref(extensions).cast::<u64>().read() }
}

#[inline]
unsafe fn unchecked<C, const N: usize>(extensions: &Extensions<'_, C>) -> [u64; N] {
    let block = std::ptr::with_exposed_provenance::<u8>(link(extensions) as usize);
    // SAFETY: the caller's promise.
    unsafe { block.add(HEADER).cast::<[u64; N]>().read() }
}

macro_rules! versions {
    ($(#[$about:meta])* $of:ident in $module:ident: $keys:literal, $rest:ty) => {
        $(#[$about])*
        pub struct $of;

        #[allow(dead_code)]
        mod $module {
            use super::*;

            mod original {
                use super::*;

                #[extendible]
                #[derive(Persist)]
                #[repr(C)]
                pub struct Fields<'h> {
                    pub keys: [u32; $keys],
                    pub rest: $rest,
                }

                version!(
                    /// P-ORIGINAL of the automatic model.
                    Before(Fields<'static>): $keys, $rest,
                    |at| at.keys.map(u64::from), |at, keys| at.keys = keys.map(u32::of)
                );
            }

            mod change {
                use super::*;

                #[extendible]
                #[derive(Persist)]
                #[repr(C)]
                pub struct Fields<'h> {
                    pub keys: [u32; $keys],
                    pub rest: $rest,
                    #[extension(1, init = |fields| fields.keys.map(u64::from))]
                    pub wide: [u64; $keys],
                }

                version!(
                    /// P-AUTO, LAYOUT-CHANGE of the paper: the first access to a key extends its
                    /// struct.
                    Eager(Fields<'static>): $keys, $rest,
                    |at| { at.extend().expect("the heap has room"); at.wide() },
                    |at, keys| *at.wide_mut() = keys
                );

                // SAFETY: a clone is deep, and the old chain is dropped.
                unsafe impl<S: Space> Recopy<S> for Eager {
                    unsafe fn recopy(at: *mut Self, _: &mut S) {
                        // SAFETY: the caller's promise.
                        let extensions = unsafe { &mut (*at).0.extensions };
                        *extensions = extensions.clone();
                    }
                }

                version!(
                    /// P-AUTO, LAYOUT-CHANGE; reading unstored keys computes them.
                    Lazy(Fields<'static>): $keys, $rest,
                    |at| at.wide(), |at, keys| *at.wide_mut() = keys
                );
                version!(
                    /// P-AUTO, LAYOUT-CHANGE, with values extended before.
                    Unchecked(Fields<'static>): $keys, $rest,
                    |at| {
                        // SAFETY: the value was extended.
                        unsafe { unchecked(&at.extensions) }
                    },
                    |at, keys| *at.wide_mut() = keys
                );
            }

            mod add {
                use super::*;

                #[extendible]
                #[derive(Persist)]
                #[repr(C)]
                pub struct Fields<'h> {
                    pub keys: [u32; $keys],
                    pub rest: $rest,
                    #[extension(1)]
                    pub name: [u8; 32],
                }

                version!(
                    /// P-AUTO, LAYOUT-ADD.
                    GrownName(Fields<'static>): $keys, $rest,
                    |at| at.keys.map(u64::from), |at, keys| at.keys = keys.map(u32::of)
                );
            }

            pub use add::GrownName;
            pub use change::{Eager, Lazy, Unchecked};
            pub use original::Before;
        }

        impl Versions<Own, $keys> for Change<$of> {
            type Rest = $rest;
            type Manual = Plain64<$rest, $keys>;
            type Before = $module::Before;
            type Auto = $module::Eager;
            type Computed = $module::Lazy;
            const COMPUTES: bool = true;
        }

        impl Parts<Own, $keys> for Change<$of> {
            type Unchecked = $module::Unchecked;
            type Deep = Deep<$module::Eager>;
        }

        impl Versions<Own, $keys> for Add<$of> {
            type Rest = $rest;
            type Manual = Named<$rest, $keys>;
            type Before = $module::Before;
            type Auto = $module::GrownName;
            type Computed = $module::GrownName;
            const COMPUTES: bool = false;
        }

        impl Versions<PmemSpace, $keys> for Change<$of> {
            type Rest = $rest;
            type Manual = Plain64<$rest, $keys>;
            type Before = Linked<$rest, $keys>;
            type Auto = LinkedKey<$rest, $keys>;
            type Computed = LinkedKey<$rest, $keys>;
            const COMPUTES: bool = false;
        }

        impl Parts<PmemSpace, $keys> for Change<$of> {
            type Unchecked = LinkedKey<$rest, $keys, UncheckedLink>;
            type Deep = Deep<LinkedKey<$rest, $keys>>;
        }

        impl Versions<PmemSpace, $keys> for Add<$of> {
            type Rest = $rest;
            type Manual = Named<$rest, $keys>;
            type Before = Linked<$rest, $keys>;
            type Auto = Linked<$rest, $keys>;
            type Computed = Linked<$rest, $keys>;
            const COMPUTES: bool = false;
        }
    };
}

versions! {
    Pair in pair: 1, u64
}

versions! {
    TreeNode in tree_node: 8, Body
}
