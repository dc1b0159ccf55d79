//! loom's atomics, corrected in two respects.
//!
//! All `SeqCst` operations have one order. loom takes them for `AcqRel`: two threads that each
//! store and then read the other's store might miss each other. A fence before each gives the
//! order, but does more: a thread that passes one sees what threads before it saw. So a model
//! explores too little where knowledge of plain data travels by `SeqCst` operations on other
//! atomics alone.
//!
//! All pairs of operations on an atomic are tried in both orders. loom remembers one access per
//! thread, so a load before an exchange hides another thread's load. So a counter beside each
//! atomic is changed by every operation.

use loom::sync::atomic::{AtomicUsize as Counter, Ordering, fence};

macro_rules! total {
    ($name:ident $(<$of:ident>)?, $value:ty) => {
        #[derive(Debug, Default)]
        pub(crate) struct $name $(<$of>)? {
            atomic: loom::sync::atomic::$name $(<$of>)?,
            operations: Counter,
        }

        impl $(<$of>)? $name $(<$of>)? {
            pub(crate) fn new(value: $value) -> Self {
                Self { atomic: loom::sync::atomic::$name::new(value), operations: Counter::new(0) }
            }

            /// Does `operation` in its place among those on this atomic, and among all `SeqCst`
            /// ones.
            fn placed<R>(&self, order: Ordering, operation: impl FnOnce(&loom::sync::atomic::$name $(<$of>)?) -> R) -> R {
                self.operations.fetch_add(1, Ordering::Relaxed);
                if order == Ordering::SeqCst {
                    fence(Ordering::SeqCst);
                }
                operation(&self.atomic)
            }

            pub(crate) fn load(&self, order: Ordering) -> $value {
                let own = if order == Ordering::SeqCst { Ordering::Acquire } else { order };
                self.placed(order, |atomic| atomic.load(own))
            }

            pub(crate) fn store(&self, value: $value, order: Ordering) {
                let own = if order == Ordering::SeqCst { Ordering::Release } else { order };
                self.placed(order, |atomic| atomic.store(value, own));
            }

            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                self.placed(order, |atomic| atomic.swap(value, order))
            }

            pub(crate) fn compare_exchange(
                &self,
                old: $value,
                new: $value,
                order: Ordering,
                failed: Ordering,
            ) -> Result<$value, $value> {
                self.placed(order, |atomic| atomic.compare_exchange(old, new, order, failed))
            }

            /// As `compare_exchange`: loom's has no spurious failures either.
            pub(crate) fn compare_exchange_weak(
                &self,
                old: $value,
                new: $value,
                order: Ordering,
                failed: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(old, new, order, failed)
            }
        }
    };
}

macro_rules! counting {
    ($name:ident, $value:ty) => {
        total!($name, $value);

        impl $name {
            pub(crate) fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.placed(order, |atomic| atomic.fetch_add(value, order))
            }

            pub(crate) fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.placed(order, |atomic| atomic.fetch_sub(value, order))
            }

            pub(crate) fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.placed(order, |atomic| atomic.fetch_or(value, order))
            }
        }
    };
}

total!(AtomicBool, bool);
total!(AtomicPtr<T>, *mut T);
counting!(AtomicU8, u8);
counting!(AtomicU32, u32);
counting!(AtomicU64, u64);
counting!(AtomicUsize, usize);
