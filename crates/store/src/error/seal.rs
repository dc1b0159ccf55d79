//! Errors of sealed objects. None of them has a key, or a part of one.

use super::date_time;

/// Why a sealed object cannot be used, or not in this way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The object is sealed, and no key was given.
    #[error("it is sealed: attach it with a key of one of its key slots")]
    KeyNeeded,
    /// A key was given for an object that is not sealed.
    #[error(
        "it is not sealed, and a seal key is given: it may have taken the place of a sealed object; nothing of it is used"
    )]
    NotSealed,
    /// The key opens none of the slots.
    #[error("the seal key opens none of its {slots} key slots: nothing of it was read")]
    WrongKey {
        /// Slots in use.
        slots: usize,
    },
    /// The slot that the key opens has expired.
    #[error(
        "key slot {slot}, labelled {label:?}, which the seal key opens, expired at {}: ask somebody with another key to add one",
        date_time(*at)
    )]
    Expired {
        /// Its number, from 0.
        slot: usize,
        /// Its label.
        label: String,
        /// Seconds since 1970.
        at: u64,
    },
    /// Not possible with sealed objects.
    #[error("it is sealed, and sealed objects have no {what}: nothing happened; {instead}")]
    Refused {
        /// Name of the operation, as a noun.
        what: &'static str,
        /// Advice.
        instead: &'static str,
    },
    /// Two objects whose seals cannot be compared.
    #[error(
        "it cannot be compared with {other:?}: without its key a sealed object is compared with its own snapshots and copies only"
    )]
    Unrelated {
        /// The other object.
        other: String,
    },
    /// A page does not match its seal.
    #[error(
        "page {page}, {what}, is not what was sealed: it was changed, or is from another time or place; nothing of it is used"
    )]
    Broken {
        /// The page, counted from the first of the contents or, if it is none of them, of the
        /// extent.
        page: u64,
        /// Whether it is a page of the contents or of the extent, and its role.
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
    /// It is signed, and the caller gave no key that verifies.
    #[error(
        "it is signed: give the key that verifies its signature, or the one that signs it, with the seal key; nothing of it was read"
    )]
    VerifyKeyNeeded,
    /// It is signed, and the change lacks the sign key.
    #[error("it is signed: to write it, give its sign key with the seal key; nothing happened")]
    SignKeyNeeded,
    /// The root is of another object than the one that was asked for.
    #[error(
        "it was sealed under another name, or as another object: it is a copy, a snapshot, or was renamed or exchanged without its key; nothing of it is used"
    )]
    AnotherIdentity,
    /// The root does not say of which object it is.
    #[error("it was sealed by an earlier release, and does not say under which name; nothing of it is used")]
    NoIdentity,
    /// The name is sealed, and the change lacks the key.
    #[error(
        "its name is sealed with it: to rename it, give its seal key, and its sign key if it is signed; nothing happened"
    )]
    NameSealed,
    /// The object should be signed and is not.
    #[error(
        "it is not signed, and the seal key is given with a key of a signature: it is another object, or somebody without the sign key made it; nothing of it is used"
    )]
    NotSigned,
    /// The signature is not that of the key that was given.
    #[error(
        "its signature is not of the key that is given: another key signed it, or somebody who has a seal key and no sign key changed it; nothing of it is used"
    )]
    BadSignature,
    /// It has an anchor, and none was given.
    #[error(
        "it has an anchor, without which an older state of it is not told from the newest: give the anchor with the seal key"
    )]
    AnchorNeeded,
    /// The anchor has no record of an object that says that it has one.
    #[error(
        "it has an anchor, and the one that is given has no record of it: give the right one; if it was lost, set the object's anchor anew, which takes its present state for the newest"
    )]
    AnchorEmpty,
    /// The anchor is that of another object.
    #[error("the anchor that is given has the record of another object: give the one of this object")]
    AnchorOfAnother,
    /// The pool has an older state than the anchor was told, or another one.
    #[error(
        "it is in state {pool}, and its anchor was told state {anchor}: the pool, or the object, was put back to an older state"
    )]
    PoolBehind {
        /// State of the object in the pool.
        pool: u64,
        /// State that the anchor was told.
        anchor: u64,
    },
    /// The object was changed since the anchor was told that it was left.
    #[error(
        "it is in state {pool}, and its anchor says that it was left in state {anchor}: it was changed without its anchor, or the anchor was put back to an older state"
    )]
    AnchorBehind {
        /// State of the object in the pool.
        pool: u64,
        /// State that the anchor was told.
        anchor: u64,
    },
    /// The record of the anchor is not the newest by the anchor's counter.
    #[error(
        "its anchor has record {record}, and the counter of the anchor is at {counter}: the record was put back to an older one, or the counter is another one"
    )]
    RecordBehind {
        /// Number of the record.
        record: u64,
        /// Value of the counter.
        counter: u64,
    },
    /// The anchor cannot be used.
    #[error("the anchor cannot be used: {why}")]
    BadAnchor {
        /// Reason.
        why: &'static str,
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
