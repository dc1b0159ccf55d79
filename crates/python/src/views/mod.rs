//! Views, which say which objects a program has in its memory, and security contexts, which say with which rights.

mod attached;
mod context;
mod object;
mod rights;
mod view;

pub(crate) use attached::AttachedView;
pub(crate) use context::{_read_context, _rights, SecurityContext};
pub(crate) use view::{_read_view, View};
