use super::date_time;

/// Why an operation on a sealed object fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The object is sealed, and the caller gave no key.
    #[error("it is sealed: attach it with a key of one of its key slots")]
    KeyNeeded,
    /// The caller gave a key for an unsealed object.
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
    /// The key's slot has expired.
    #[error(
        "key slot {slot}, labelled {label:?}, which the seal key opens, expired at {}: ask somebody with another key to add one",
        date_time(*at)
    )]
    Expired {
        /// Slot number.
        slot: usize,
        /// Its label.
        label: String,
        /// Seconds since 1970.
        at: u64,
    },
    /// Sealed objects do not allow the operation.
    #[error("it is sealed, and sealed objects have no {what}: nothing happened; {instead}")]
    Refused {
        /// The operation, as a noun.
        what: &'static str,
        /// Advice.
        instead: &'static str,
    },
    /// The seals of the two objects cannot be compared.
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
        /// Page number, within the contents or else within the extent.
        page: u64,
        /// Role of the page.
        what: &'static str,
    },
    /// A later version made the object.
    #[error("its {what} is number {number}, which this release does not know")]
    Unknown {
        /// Unknown part.
        what: &'static str,
        /// Number found.
        number: u32,
    },
    /// The key is unusable.
    #[error("the seal key cannot be used: {why}")]
    BadKey {
        /// Reason.
        why: &'static str,
    },
    /// A device failed to give its secret.
    #[error("{what}")]
    Device {
        /// The device and its error.
        what: String,
    },
    /// Too few slots are free.
    #[error("too few of its {slots} key slots are free: remove one first")]
    NoSlot {
        /// Slots of an object in all.
        slots: usize,
    },
    /// The object is signed, and the caller gave no verify key.
    #[error(
        "it is signed: give the key that verifies its signature, or the one that signs it, with the seal key; nothing of it was read"
    )]
    VerifyKeyNeeded,
    /// The object is signed, and a change needs the sign key.
    #[error("it is signed: to write it, give its sign key with the seal key; nothing happened")]
    SignKeyNeeded,
    /// The root names another object.
    #[error(
        "it was sealed under another name, or as another object: it is a copy, a snapshot, or was renamed or exchanged without its key; nothing of it is used"
    )]
    AnotherIdentity,
    /// The root names no object.
    #[error("it was sealed by an earlier release, and does not say under which name; nothing of it is used")]
    NoIdentity,
    /// The name is sealed, and a rename needs the key.
    #[error(
        "its name is sealed with it: to rename it, give its seal key, and its sign key if it is signed; nothing happened"
    )]
    NameSealed,
    /// The object is unsigned, but the caller expects a signature.
    #[error(
        "it is not signed, and the seal key is given with a key of a signature: it is another object, or somebody without the sign key made it; nothing of it is used"
    )]
    NotSigned,
    /// The signature is not of the given key.
    #[error(
        "its signature is not of the key that is given: another key signed it, or somebody who has a seal key and no sign key changed it; nothing of it is used"
    )]
    BadSignature,
    /// The object has an anchor, and the caller gave none.
    #[error(
        "it has an anchor, without which an older state of it is not told from the newest: give the anchor with the seal key"
    )]
    AnchorNeeded,
    /// The given anchor has no record of the object.
    #[error(
        "it has an anchor, and the one that is given has no record of it: give the right one; if it was lost, set the object's anchor anew, which takes its present state for the newest"
    )]
    AnchorEmpty,
    /// The anchor belongs to another object.
    #[error("the anchor that is given has the record of another object: give the one of this object")]
    AnchorOfAnother,
    /// The pool's state is not the one that the anchor recorded.
    #[error(
        "it is in state {pool}, and its anchor was told state {anchor}: the pool, or the object, was put back to an older state"
    )]
    PoolBehind {
        /// State in the pool.
        pool: u64,
        /// State in the anchor.
        anchor: u64,
    },
    /// The object changed without its anchor.
    #[error(
        "it is in state {pool}, and its anchor says that it was left in state {anchor}: it was changed without its anchor, or the anchor was put back to an older state"
    )]
    AnchorBehind {
        /// State in the pool.
        pool: u64,
        /// State in the anchor.
        anchor: u64,
    },
    /// The anchor's record is not its newest.
    #[error(
        "its anchor has record {record}, and the counter of the anchor is at {counter}: the record was put back to an older one, or the counter is another one"
    )]
    RecordBehind {
        /// Number of the record.
        record: u64,
        /// Value of the counter.
        counter: u64,
    },
    /// The anchor is unusable.
    #[error("the anchor cannot be used: {why}")]
    BadAnchor {
        /// Reason.
        why: &'static str,
    },
    /// The slot cannot be removed.
    #[error("key slot {slot} {why}")]
    BadSlot {
        /// Slot number.
        slot: usize,
        /// Reason, as a predicate.
        why: &'static str,
    },
}
