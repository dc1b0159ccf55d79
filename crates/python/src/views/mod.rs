//! Views, which list a program's objects, and security contexts, which list its rights.

mod attached;
mod context;
mod object;
mod view;

pub(crate) use attached::AttachedView;
pub(crate) use context::{_read_context, _rights, SecurityContext};
pub(crate) use view::{_read_view, View};

use indelible::{ErrorKind, Result};

/// Opens something, or makes it with `make` if it is missing.
fn open_or_make<T>(open: impl Fn() -> Result<T>, make: Option<impl FnOnce() -> Result<T>>) -> Result<T> {
    match (open(), make) {
        (Err(error), Some(make)) if error.kind() == ErrorKind::NotFound => match make() {
            // Another process made it.
            Err(error) if error.kind() == ErrorKind::Exists => open(),
            made => made,
        },
        (opened, _) => opened,
    }
}
