//! Replication of pools to object storage: changes as segments, moments to restore, epochs of
//! owners.
//!
//! - [`Shipper`]: puts the changes of psyncs, moment by moment
//! - [`restore()`]: a shipped moment as a new pool, proved by hashes
//! - [`Authority`]: which process may ship; [`StoreAuthority`] needs no service but the store
//! - [`open`]: a store by URL; [`Bucket`] is the seam
//! - [`status()`]: owner and epochs of a store
//!
//! Modules, bottom-up: `error`, `names`, `format` (FORMAT.md, section 11), `encode` and `decode`;
//! `bucket`, `folder`, `s3`, `url`, `clock`, `patient`; `records`, `history`, `replica`, `authority`;
//! `feed`, `content`, `source`, `ship`; `chain`, `restore`, `status`, `beacon`.
//!
//! A moment holds whole psyncs: all changes of one `psync_all` are in one moment.

#![forbid(unsafe_code)]

mod authority;
mod beacon;
mod bucket;
mod chain;
mod clock;
mod content;
mod decode;
mod encode;
mod error;
mod feed;
mod folder;
mod format;
mod history;
mod names;
mod patient;
mod records;
mod replica;
mod restore;
mod s3;
mod ship;
mod source;
mod status;
mod url;

pub use authority::{Authority, Claim, StoreAuthority};
pub use beacon::{Account, Beacon, uptime};
pub use bucket::{Bucket, Trouble};
pub use clock::{Clock, SystemClock};
pub use error::{ReplicateError, Result};
pub use folder::Folder;
pub use names::Position;
pub use replica::Replica;
pub use restore::{Restored, restore};
pub use s3::S3;
pub use ship::{Beginning, Shipped, Shipper};
pub use status::{Epoch, Moment, Status, moments, status};
pub use url::open;
