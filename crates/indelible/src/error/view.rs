use super::ErrorKind;
use crate::entries::Misfit;
use std::io;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ViewError {
    #[error("the object holds no view")]
    NotAView,
    #[error("the view has version {found}, and this release knows version {known}")]
    Version { found: u32, known: u32 },
    #[error("the view is damaged: {0}")]
    Damaged(String),
    #[error("slot {slot} is not among the {slots} slots of the view")]
    Slot { slot: usize, slots: usize },
    #[error("slot {0} is empty")]
    Empty(usize),
    #[error("slots {0} and {1} lead to the same addresses")]
    Overlap(usize, usize),
    #[error("a slot asks for {0}, and objects of a view can be loaded from, or loaded from and stored to")]
    Rights(String),
    #[error("slot {slot} asks for {has}, and this needs stores")]
    ForReading { slot: usize, has: String },
    #[error("the object in slot {slot} has {size} bytes, and the value needs {needed}")]
    TooSmall { slot: usize, size: usize, needed: usize },
    #[error("a view has it attached")]
    Pinned,
    #[error(
        "this process has the object attached for loads elsewhere, and closing its pages would close them there as well"
    )]
    Shared,
    #[error("a view whose contexts are those of threads has it in this process")]
    Closed,
    #[error(
        "stores to the object are found by the protection of its pages, which rights of threads would change"
    )]
    Tracked,
    #[error("the variable {name} has the value {value:?}: {why}")]
    Environment { name: &'static str, value: String, why: &'static str },
    #[error("cannot reserve addresses: {0}")]
    Reserve(io::Error),
}

impl From<Misfit> for ViewError {
    fn from(misfit: Misfit) -> Self {
        match misfit {
            Misfit::Other => ViewError::NotAView,
            Misfit::Version { found, known } => ViewError::Version { found, known },
            Misfit::Damaged(how) => ViewError::Damaged(how),
        }
    }
}

impl ViewError {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            ViewError::NotAView
            | ViewError::Pinned
            | ViewError::Tracked
            | ViewError::Rights(_)
            | ViewError::Environment { .. } => ErrorKind::Unsuitable,
            ViewError::Version { .. } => ErrorKind::Version,
            ViewError::Damaged(_) => ErrorKind::Damaged,
            ViewError::Slot { .. } | ViewError::TooSmall { .. } => ErrorKind::BadSize,
            ViewError::Empty(_) => ErrorKind::NotFound,
            ViewError::Overlap(..) => ErrorKind::AddressTaken,
            ViewError::ForReading { .. } => ErrorKind::ReadOnly,
            ViewError::Shared | ViewError::Closed => ErrorKind::Held,
            ViewError::Reserve(_) => ErrorKind::Io,
        }
    }

    pub(super) fn remedy(&self) -> &'static str {
        match self {
            ViewError::NotAView => "check the name: `View::create` makes views",
            ViewError::Version { .. } => "use the release that made the view, or a newer one",
            ViewError::Damaged(_) => {
                "make a new view (`pmo view create`), or take an older one back (`pmo rollback`)"
            }
            ViewError::Slot { .. } => "use a smaller slot, or create a view with more slots",
            ViewError::Empty(_) => "set the slot first; `pmo view list` shows which are set",
            ViewError::Overlap(..) => "clear one of them: an object has one slot, since it has one address",
            ViewError::Rights(_) => "ask for loads, or for loads and stores",
            ViewError::ForReading { .. } => {
                "ask for stores in the slot (`pmo view set`), then adopt the view again"
            }
            ViewError::TooSmall { .. } => "use a type that fits, or make the object larger (`pmo resize`)",
            ViewError::Pinned => "detach the view, or clear the slot and adopt the view again",
            ViewError::Shared => "detach it there first",
            ViewError::Closed => "use it through the view, or detach that first",
            ViewError::Tracked => {
                "mark stores in the program (`Tracking::Explicit`), or use a kernel of release 6.7 or later, which finds them otherwise"
            }
            ViewError::Environment { .. } => "start the program with `pmo run`, which sets these variables",
            ViewError::Reserve(_) => "the system's own error says what it refused",
        }
    }
}
