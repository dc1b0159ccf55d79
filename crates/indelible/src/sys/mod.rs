//! The kernel boundary: one file per facility; knows nothing of pools. Only this folder uses
//! `libc`.

pub(crate) mod blocks;
pub(crate) mod boot;
pub(crate) mod bus;
pub(crate) mod extents;
mod facilities;
pub(crate) mod fault_ring;
pub(crate) mod faults;
pub(crate) mod flush;
pub(crate) mod fork;
pub(crate) mod futex;
pub(crate) mod link;
pub(crate) mod loaded;
pub(crate) mod lock_table;
pub(crate) mod loops;
pub(crate) mod maps;
pub(crate) mod mask;
pub(crate) mod memory;
pub(crate) mod mmap;
pub(crate) mod naming;
pub(crate) mod ofd;
pub(crate) mod pagemap;
pub(crate) mod per_process;
pub(crate) mod pkey;
pub(crate) mod process;
pub(crate) mod secret;
pub(crate) mod signal;
pub(crate) mod supervise;
pub(crate) mod swap;
pub(crate) mod sync;
pub(crate) mod total;
pub(crate) mod tpm;
pub(crate) mod uffd;
pub(crate) mod writeback;

pub(crate) use facilities::{Facilities, UffdAccess, max_map_count, va_bits};

#[cfg(not(target_pointer_width = "64"))]
compile_error!("fixed addresses and object sizes need a 64-bit address space");

/// Bytes of a base page. Kernels with larger ones are refused at open.
pub(crate) const PAGE: usize = 4096;
