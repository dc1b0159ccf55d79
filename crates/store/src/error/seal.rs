//! Errors of sealed objects. None of them has a key, or a part of one.

/// Why a sealed object cannot be used, or not in this way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The object is sealed, and no key was given.
    #[error("it is sealed: attach it with a key of one of its key slots")]
    KeyNeeded,
    /// A key was given for an object that is not sealed.
    #[error("it is not sealed: attach it without a seal key")]
    NotSealed,
    /// The key opens none of the slots.
    #[error("the seal key opens none of its {slots} key slots: nothing of it was read")]
    WrongKey {
        /// Slots in use.
        slots: usize,
    },
    /// Not possible with sealed objects.
    #[error("it is sealed, and this release has no {what} for sealed objects: nothing happened")]
    Refused {
        /// Name of the operation, as a noun.
        what: &'static str,
    },
    /// A page does not match its seal.
    #[error(
        "page {page}, {what}, is not what was sealed: it was changed, or is from another time or place; nothing of it is used"
    )]
    Broken {
        /// The page, counted from the first of the object; the contents come first.
        page: u64,
        /// Its part in the object.
        what: &'static str,
    },
    /// Only later software knows how to use it.
    #[error("its {what} is number {number}, which this release does not know")]
    Unknown {
        /// Part of the object.
        what: &'static str,
        /// Number found.
        number: u32,
    },
    /// A key that cannot be used.
    #[error("the seal key cannot be used: {why}")]
    BadKey {
        /// Reason.
        why: &'static str,
    },
    /// A device that keeps secrets did not give one.
    #[error("{what}")]
    Device {
        /// The device and its reason.
        what: String,
    },
    /// Too few slots are free.
    #[error("too few of its {slots} key slots are free: remove one first")]
    NoSlot {
        /// Slots of an object.
        slots: usize,
    },
    /// The slot cannot be removed.
    #[error("key slot {slot} {why}")]
    BadSlot {
        /// Its number, from 0.
        slot: usize,
        /// Reason, as a predicate.
        why: &'static str,
    },
}
