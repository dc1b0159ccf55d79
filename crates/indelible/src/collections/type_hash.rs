//! Distinguishes types at run time, also those that borrow a heap. The linker merges functions of
//! the same code, so addresses would not do.

#![allow(unsafe_code)]

use std::any::TypeId;
use std::marker::PhantomData;

trait Typed {
    fn hash(&self) -> TypeId
    where
        Self: 'static;
}

impl<T> Typed for PhantomData<T> {
    fn hash(&self) -> TypeId
    where
        Self: 'static,
    {
        TypeId::of::<T>()
    }
}

pub(super) fn type_hash<'h, T: 'h>() -> TypeId {
    let stand_in: &(dyn Typed + 'h) = &PhantomData::<T>;
    // SAFETY: the stand-in has no bytes: nothing is used beyond `'h`.
    let stand_in: &(dyn Typed + 'static) = unsafe { std::mem::transmute(stand_in) };
    stand_in.hash()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collections::{PString, PVec, Persist};

    mod one {
        pub(super) struct Twin;
    }

    mod two {
        pub(super) struct Twin;
    }

    fn of<'h, T: Persist<'h>>(_: &'h u8) -> TypeId {
        type_hash::<T>()
    }

    #[test]
    fn types_whose_functions_may_be_merged_have_hashes_of_their_own() {
        assert_ne!(type_hash::<one::Twin>(), type_hash::<two::Twin>());
        assert_ne!(type_hash::<u64>(), type_hash::<std::num::Wrapping<u64>>());
    }

    #[test]
    fn the_hash_of_a_type_is_the_same_for_all_borrows() {
        static LASTING: u8 = 0;
        let short = 0;
        assert_eq!(of::<PString<'_>>(&short), of::<PString<'static>>(&LASTING));
        assert_eq!(type_hash::<PVec<'_, u64>>(), TypeId::of::<PVec<'static, u64>>());
    }
}
