use super::date_time;

/// Why an operation on a sealed object fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages tell")]
pub enum SealError {
    #[error("it is sealed: attach it with a key of one of its key slots")]
    KeyNeeded,
    #[error(
        "it is not sealed, and a seal key is given: it may have taken the place of a sealed object; nothing of it is used"
    )]
    NotSealed,
    #[error("the seal key opens none of its {slots} key slots: nothing of it was read")]
    WrongKey { slots: usize },
    #[error(
        "key slot {slot}, labelled {label:?}, which the seal key opens, expired at {}: ask the owner of another key to add one",
        date_time(*at)
    )]
    Expired { slot: usize, label: String, at: u64 },
    #[error("it is sealed, and sealed objects have no {what}: nothing happened; {instead}")]
    Refused {
        /// The operation, as a noun.
        what: &'static str,
        instead: &'static str,
    },
    #[error(
        "it cannot be compared with {other:?}: without its key a sealed object is compared with its own snapshots and copies only"
    )]
    Unrelated { other: String },
    #[error(
        "page {page}, {what}, is not what was sealed: it was changed, or is from another time or place; nothing of it is used"
    )]
    Broken {
        /// Page number, within the contents or else within the extent.
        page: u64,
        what: &'static str,
    },
    #[error("its {what} is number {number}, which this release does not know")]
    Unknown { what: &'static str, number: u32 },
    #[error("the seal key cannot be used: {why}")]
    BadKey { why: &'static str },
    #[error("{what}")]
    Device { what: String },
    #[error("too few of its {slots} key slots are free: remove one first")]
    NoSlot { slots: usize },
    #[error(
        "it is signed: give the key that verifies its signature, or the one that signs it, with the seal key; nothing of it was read"
    )]
    VerifyKeyNeeded,
    #[error("it is signed: to write it, give its sign key with the seal key; nothing happened")]
    SignKeyNeeded,
    #[error(
        "it was sealed under another name, or as another object: it is a copy, a snapshot, or was renamed or exchanged without its key; nothing of it is used"
    )]
    AnotherIdentity,
    #[error("it was sealed by an earlier release, and does not say under which name; nothing of it is used")]
    NoIdentity,
    #[error(
        "its name is sealed with it: to rename it, give its seal key, and its sign key if it is signed; nothing happened"
    )]
    NameSealed,
    #[error(
        "it is not signed, and the seal key is given with a key of a signature: it is another object, or a program without the sign key made it; nothing of it is used"
    )]
    NotSigned,
    #[error(
        "its signature is not of the key that is given: another key signed it, or a program with a seal key and no sign key changed it; nothing of it is used"
    )]
    BadSignature,
    #[error(
        "it has an anchor, without which an older state of it is not told from the newest: give the anchor with the seal key"
    )]
    AnchorNeeded,
    #[error(
        "it has an anchor, and the one that is given has no record of it: give the right one; if it was lost, set the object's anchor anew, which takes its present state for the newest"
    )]
    AnchorEmpty,
    #[error("the anchor that is given has the record of another object: give the one of this object")]
    AnchorOfAnother,
    #[error(
        "it is in state {pool}, and its anchor was told state {anchor}: the pool, or the object, was put back to an older state"
    )]
    PoolBehind { pool: u64, anchor: u64 },
    #[error(
        "it is in state {pool}, and its anchor says that it was left in state {anchor}: it was changed without its anchor, or the anchor was put back to an older state"
    )]
    AnchorBehind { pool: u64, anchor: u64 },
    #[error(
        "its anchor has record {record}, and the counter of the anchor is at {counter}: the record was put back to an older one, or the counter is another one"
    )]
    RecordBehind { record: u64, counter: u64 },
    #[error("the anchor cannot be used: {why}")]
    BadAnchor { why: &'static str },
    #[error("key slot {slot} {why}")]
    BadSlot {
        slot: usize,
        /// Reason, as a predicate.
        why: &'static str,
    },
}
