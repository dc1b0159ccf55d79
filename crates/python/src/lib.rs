//! The native half of the Python package `indelible`: pools, attached objects as buffers, the heap of one.
//!
//! What Python users see on top of it, arrays and dicts and exceptions, is in `python/indelible`. Unsafe
//! code is in `buffer` and `heap` alone.

#![deny(unsafe_code)]

mod attachment;
mod buffer;
mod error;
mod heap;
mod object;
mod pool;
mod psync;

use pyo3::prelude::*;

/// Pools, objects, heaps.
#[pymodule]
mod _indelible {
    #[pymodule_export]
    use super::heap::{Block, Heap};
    #[pymodule_export]
    use super::object::Object;
    #[pymodule_export]
    use super::pool::Pool;
    #[pymodule_export]
    use super::psync::psync_all;
}
