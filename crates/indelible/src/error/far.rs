use super::ErrorKind;

#[derive(Debug, thiserror::Error)]
pub(crate) enum FarError {
    #[error("the pointer is null")]
    Null,
    #[error("object {target} is in none of the {pools} pools of the space")]
    NoObject { target: String, pools: usize },
    #[error(
        "the pointer leads to byte {offset:#x} of object {target}, and needs {needed} bytes; the object has {len:#x}"
    )]
    Beyond { target: String, offset: u64, needed: usize, len: usize },
    #[error("the pointer leads to byte {offset:#x}, and values of its type lie at multiples of {align}")]
    Misaligned { offset: u64, align: usize },
    #[error("entry {index} asks for {has}, and this needs {needed}")]
    Rights { index: u32, has: String, needed: &'static str },
    #[error("no security context allows {what} of object {target:?}: {contexts}")]
    Denied { target: String, what: &'static str, contexts: String },
    #[error("{target}: {why}")]
    Name { target: String, why: String },
    #[error("{first}: names lead to names more than {most} times")]
    Cycle { first: String, most: usize },
    #[error("object {0} is not in the space")]
    NotHere(String),
    #[error("object {0} is attached for reading")]
    Reading(String),
    #[error("object {0} is in the space already")]
    Here(String),
    #[error(
        "safe code stores by far pointers only where all roots are described and without addresses, in a position-independent object: {0}"
    )]
    Fixed(String),
}

impl FarError {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            FarError::Null
            | FarError::NoObject { .. }
            | FarError::Beyond { .. }
            | FarError::Misaligned { .. }
            | FarError::Name { .. }
            | FarError::Cycle { .. } => ErrorKind::Dangling,
            FarError::Rights { .. } | FarError::Reading(_) => ErrorKind::ReadOnly,
            FarError::Denied { .. } => ErrorKind::Denied,
            FarError::NotHere(_) => ErrorKind::NotAttached,
            FarError::Here(_) => ErrorKind::Exists,
            FarError::Fixed(_) => ErrorKind::Unsuitable,
        }
    }

    pub(super) fn remedy(&self) -> &'static str {
        match self {
            FarError::Null => "ask `Far::is_null` first",
            FarError::NoObject { .. } => {
                "add the pool that has it (`Space::add`), or change the entry (`Heap::retarget`)"
            }
            FarError::Beyond { .. } | FarError::Misaligned { .. } => {
                "the object is another or a shorter one than when the pointer was stored: store it anew, or change the entry (`Heap::retarget`)"
            }
            FarError::Rights { .. } => {
                "store a pointer through an entry that asks for more rights (`Space::far`)"
            }
            FarError::Denied { .. } => {
                "have a context allow it (`pmo context allow`), then set the contexts again (`Space::set_contexts`)"
            }
            FarError::Name { .. } => {
                "add the pool, or the resolver, that knows the name (`Space::add`, `Space::add_resolver`)"
            }
            FarError::Cycle { .. } => "have a resolver end with an ID",
            FarError::NotHere(_) => "attach it first (`Space::attach`, `Space::attach_read`)",
            FarError::Reading(_) => "attach it for writing (`Space::upgrade`)",
            FarError::Here(_) => "use the one that is there, or take it out first (`Space::remove`)",
            FarError::Fixed(_) => {
                "create the object with `CreateOptions::position_independent`, and roots without addresses"
            }
        }
    }
}
