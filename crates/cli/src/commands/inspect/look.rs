//! The pool, as a request finds it, and reasons for the lack of an answer.

use super::answer::Status;
use super::index::{Index, Kept};
use crate::failure::{Failure, Result};
use indelible::Pool;
use std::path::Path;
use std::sync::Arc;

/// An answer, or why there is none.
pub enum Missing {
    Refused(Status),
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Missing {
    fn from(error: E) -> Missing {
        Missing::Failed(error.into())
    }
}

impl From<Status> for Missing {
    fn from(status: Status) -> Missing {
        Missing::Refused(status)
    }
}

pub type Found<T> = std::result::Result<T, Missing>;

/// The pool, as a request finds it.
pub struct Look<'s> {
    pub pool: Pool,
    pub kept: &'s Kept,
    pub path: &'s Path,
}

impl Look<'_> {
    pub fn index(&self) -> Result<Arc<Index>> {
        self.kept.index(&self.pool, self.path)
    }
}
