use super::ErrorKind;
use crate::backing::BackingError;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SharedError {
    #[error(transparent)]
    Backing(#[from] BackingError),
    #[error(
        "processes that have it see another {}: its memory is not there",
        folder.display()
    )]
    Elsewhere { folder: PathBuf },
    #[error("its backing file {} was truncated", .0.display())]
    Cut(PathBuf),
    #[error("its memory cannot be watched: {0}")]
    Watch(std::io::Error),
    #[error("the system does not wait: {0}")]
    Wait(std::io::Error),
    #[error("offset {offset} is no place for a word of 4 bytes: the object has {size}")]
    NoWord { offset: usize, size: usize },
    #[error("{words} words are waited for, and it takes from 1 to {most}")]
    Words { words: usize, most: usize },
    #[error("no queue can be at offset {offset}: {why}")]
    NoQueue { offset: usize, why: QueueMisfit },
    #[error("offset {offset} has something that is no queue, or a queue of another release")]
    NotAQueue { offset: usize },
    #[error("the queue at offset {offset} is of other options: it is {found}, and not {expected}")]
    OtherQueue { offset: usize, found: String, expected: String },
    #[error("the queue at offset {offset} is damaged: {why}")]
    Damaged { offset: usize, why: &'static str },
    #[error("the queue at offset {offset} has another {role}")]
    Taken { offset: usize, role: &'static str },
    #[error("a message of {len} bytes is longer than the {most} that the queue takes")]
    TooLong { len: usize, most: usize },
    #[error("a message of {len} bytes is no value of {needed}")]
    OtherType { len: usize, needed: usize },
    #[error("it has no request {number} that is to be completed")]
    NoRequest { number: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QueueMisfit {
    #[error("it is no multiple of 64")]
    Offset,
    #[error("{0} slots are no power of two from 2 to 268,435,456")]
    Slots(usize),
    #[error("messages of {0} bytes are none of 1 byte to 256 MiB")]
    Bytes(usize),
    #[error("it takes {needed} bytes, and the object has {left} from there on")]
    Room { needed: usize, left: usize },
}

impl QueueMisfit {
    fn remedy(self) -> &'static str {
        match self {
            QueueMisfit::Offset => "give a multiple of 64",
            QueueMisfit::Slots(_) => "give a power of two as the number of slots",
            QueueMisfit::Bytes(_) => "give the bytes of the longest message",
            QueueMisfit::Room { .. } => {
                "give fewer slots or shorter messages, or create a larger object, of the bytes that the options say"
            }
        }
    }
}

impl SharedError {
    pub(crate) fn no_room(offset: usize, needed: usize, left: usize) -> Self {
        SharedError::NoQueue { offset, why: QueueMisfit::Room { needed, left } }
    }

    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            SharedError::Backing(error) => super::kinds::backing_kind(error),
            SharedError::Elsewhere { .. } | SharedError::Cut(_) => ErrorKind::Gone,
            SharedError::Wait(_) | SharedError::Watch(_) => ErrorKind::Io,
            SharedError::NoWord { .. }
            | SharedError::Words { .. }
            | SharedError::NoQueue { .. }
            | SharedError::TooLong { .. }
            | SharedError::OtherType { .. } => ErrorKind::BadSize,
            SharedError::NotAQueue { .. } | SharedError::OtherQueue { .. } => ErrorKind::RootType,
            SharedError::Damaged { .. } => ErrorKind::Damaged,
            SharedError::Taken { .. } => ErrorKind::Held,
            SharedError::NoRequest { .. } => ErrorKind::NotFound,
        }
    }

    pub(super) fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            SharedError::Backing(BackingError::Foreign { .. }) => {
                "processes of one user share an object: if another user's made it, use one user for all; else see who made it"
            }
            SharedError::Backing(BackingError::Damaged { .. }) => {
                "detach it everywhere, and remove its memory with `pmo gc`, or create the object anew"
            }
            SharedError::Backing(BackingError::OfOriginal { .. }) => {
                "`pmo clone` makes a copy whose objects have memory of their own; once the original is deleted, `pmo gc --deleted` with its path removes this one"
            }
            SharedError::Backing(BackingError::NoRoom { .. }) => "free memory in /dev/shm",
            SharedError::Backing(_) => return None,
            SharedError::Elsewhere { .. } => {
                "run all processes that share it where they see the same /dev/shm, as containers can be told to"
            }
            SharedError::Cut(_) | SharedError::Damaged { .. } => {
                "what was in it is lost: detach it everywhere, destroy it, and create it anew"
            }
            SharedError::Wait(_) | SharedError::Watch(_) => return None,
            SharedError::NoWord { .. } => "give a multiple of 4 below the object's size",
            SharedError::Words { .. } => "wait for fewer words at a time",
            SharedError::NoQueue { why, .. } => why.remedy(),
            SharedError::NotAQueue { .. } => {
                "give the offset of a queue, or of bytes that are zeros; a queue of another release goes with its object's memory"
            }
            SharedError::OtherQueue { .. } => "open it with the options that it was made with",
            SharedError::Taken { .. } => "wait until that one has ended",
            SharedError::TooLong { .. } => "send it in parts, or make a queue of longer messages",
            SharedError::NoRequest { .. } => "give the number of a request, which has one completion",
            SharedError::OtherType { .. } => "receive messages as the type that they are sent as",
        })
    }

    pub(super) fn system(&self) -> Option<&std::io::Error> {
        match self {
            SharedError::Wait(error)
            | SharedError::Watch(error)
            | SharedError::Backing(BackingError::Io { source: error, .. }) => Some(error),
            _ => None,
        }
    }
}
