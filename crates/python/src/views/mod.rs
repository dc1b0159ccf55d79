//! Views, which say which objects a program has in its memory, and security contexts, which say
//! with which rights.

mod attached;
mod context;
mod object;
mod view;

pub(crate) use attached::AttachedView;
pub(crate) use context::{_read_context, _rights, SecurityContext};
pub(crate) use view::{_read_view, View};

use indelible::{ErrorKind, Result};

/// Opens something; makes it if it is not there and `make` is given.
fn open_or_make<T>(open: impl Fn() -> Result<T>, make: Option<impl FnOnce() -> Result<T>>) -> Result<T> {
    match (open(), make) {
        (Err(error), Some(make)) if error.kind() == ErrorKind::NotFound => match make() {
            // Another process was faster.
            Err(error) if error.kind() == ErrorKind::Exists => open(),
            made => made,
        },
        (opened, _) => opened,
    }
}
