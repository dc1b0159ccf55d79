//! The native half of the Python package `indelible`: pools, attached objects as buffers, dicts,
//! shared objects with queues, logs, views and security contexts, far pointers; and the tool.
//!
//! The Python half on top of it is in `python/indelible`. Unsafe code is in `buffer`, `bystanders`,
//! `block`, `object`, `shared/object` and `views/object` alone.

#![deny(unsafe_code)]

mod attachment;
mod audit;
mod backup;
mod block;
mod buffer;
mod bystanders;
mod dict;
mod error;
mod guard;
mod handle;
mod held;
mod import;
mod kept;
mod keys;
mod log;
mod object;
mod options;
mod patience;
mod pool;
mod pool_calls;
mod process;
mod progress;
mod psync;
mod ranges;
mod rights;
mod seal_key;
mod sealed;
mod shared;
mod space;
mod stat;
mod tool;
mod transactions;
mod unsynced;
mod views;

use pyo3::prelude::*;

/// Pools, objects, dicts.
#[pymodule]
mod _indelible {
    #[pymodule_export]
    use super::audit::_audit;
    #[pymodule_export]
    use super::backup::{_backup, _restore};
    #[pymodule_export]
    use super::block::Block;
    #[pymodule_export]
    use super::dict::{Dict, DictIterator};
    #[pymodule_export]
    use super::import::Import;
    #[pymodule_export]
    use super::log::{_open_log, Log, LogReader};
    #[pymodule_export]
    use super::object::Object;
    #[pymodule_export]
    use super::pool::Pool;
    #[pymodule_export]
    use super::pool_calls::{_adopt, _psync_kept};
    #[pymodule_export]
    use super::psync::psync_all;
    #[pymodule_export]
    use super::ranges::_create_from_ranges;
    #[pymodule_export]
    use super::seal_key::{SealKey, verify_key};
    #[pymodule_export]
    use super::sealed::{_bind_name, _change_signer, _reencrypt, _rename, _renew_key, _resize, _set_anchor};
    #[pymodule_export]
    use super::shared::{
        _attach_shared, _queue_bytes, Consumer, Event, Life, Producer, Queue, Shared, StreamBytes, Word,
        wait_any,
    };
    #[pymodule_export]
    use super::space::Space;
    #[pymodule_export]
    use super::tool::{mkpmo, pmo};
    #[pymodule_export]
    use super::transactions::{
        _create_transactional, _in_transaction, _run_transaction, _scrub, _set_durability, _set_epochs,
        _set_readable_outside, _tx_pending, _tx_psync, _tx_read, _tx_sync, _tx_write, Transaction,
        TxAttachment,
    };
    #[pymodule_export]
    use super::views::{_read_context, _read_view, _rights, AttachedView, SecurityContext, View};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        super::process::watch(module)
    }
}
