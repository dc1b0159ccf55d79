//! The seam between the store and its bytes. The store assumes of a medium:
//!
//! 1. A [`Medium::write`] is visible to later reads of any process at once. It becomes durable at
//!    an unknown time, in any order, torn at [`Capabilities::tear_unit`].
//! 2. A successful [`Medium::barrier`] makes every write that returned before it durable.
//! 3. A successful [`Medium::write_durable`] makes its own bytes durable.
//! 4. After a failed change ([`Fatal`]) the durability of all writes since the last successful
//!    barrier is unknown. This crate retries nothing.
//! 5. No call succeeds because an overlapping one got its failure report: the medium tells barriers
//!    and durable writes apart, and the fault latch runs one of a kind at a time.
//! 6. Only a reservation may find that there is no space, and then nothing happened
//!    ([`ReserveError`]).
//! 7. Exception to 2 and 3: if the first write to a page since it was zeroed fails, later barriers
//!    may succeed and the page still read as zeros after a power cut, until it is zeroed again.
//!    [`Medium::unwritten`] tells.

mod capabilities;
mod error;
mod fresh;
mod latch;
mod lengthened;
mod lock;
mod lock_table;
mod overlay;
mod page_edit;
mod process;
mod runs;
mod transfers;
pub mod volatile;
mod write_combiner;

pub use capabilities::Capabilities;
pub use error::{FORMATTED, Fatal, MediumError, ReserveError};
pub use fresh::{clear_fresh, clear_rest, write_fresh, zero_fresh};
pub(crate) use fresh::{not_kept, not_kept_beside};
pub(crate) use latch::{Epoch, FaultLatch};
pub use lengthened::Lengthened;
pub use lock::{LockKey, LockMode, Locks};
pub use lock_table::{LockTable, Others};
pub use page_edit::{PageEdit, read_struct};
pub use process::Process;
pub use write_combiner::{WriteCombiner, runs};

pub use overlay::Overlay;
pub(crate) use runs::Runs;
pub use transfers::Transfers;

use crate::format::PAGE;
use crate::sync::AtomicU64;
use std::ops::Range;

/// Durable bytes, shared between processes. Offsets and lengths are in bytes from the start of the
/// pool.
pub trait Medium: Send + Sync {
    /// Length in bytes; grows only by [`extend`](Medium::extend) and [`verify`](Medium::verify).
    fn len(&self) -> u64;

    /// Whether the length is zero.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether writes are refused.
    fn read_only(&self) -> bool;

    /// Fills `buf` from `offset`.
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError>;

    /// [`read`](Medium::read) of bytes that are not read again soon.
    fn read_once(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.read(offset, buf)
    }

    /// Writes to reserved space; durable after a [`barrier`](Medium::barrier). After an error any
    /// part may be visible.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal>;

    /// [`write`](Medium::write) of a part of a large write, past the processor's caches.
    fn stream(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.write(offset, bytes)
    }

    /// [`write`](Medium::write) of bytes that are not read or written again soon.
    fn write_once(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.write(offset, bytes)
    }

    /// Copies at most a page from `from` to `to`; the ranges are disjoint.
    ///
    /// # Errors
    /// [`Fatal`], also if the read fails.
    fn copy(&self, from: u64, to: u64, len: usize) -> Result<(), Fatal> {
        let mut bytes = [0; PAGE as usize];
        self.read(from, &mut bytes[..len])?;
        self.write(to, &bytes[..len])
    }

    /// Writes `bytes` durably. An error counts as a failed barrier.
    fn write_durable(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal>;

    /// Makes every earlier write durable.
    fn barrier(&self) -> Result<(), Fatal>;

    /// Fails if the system has an unreported failed write-back; after a success, all earlier reads
    /// saw the last written content.
    fn check_writeback(&self) -> Result<(), Fatal> {
        Ok(())
    }

    /// [`check_writeback`](Medium::check_writeback) for the report of the next barrier, if the
    /// system keeps the two apart.
    fn check_barriers(&self) -> Result<(), Fatal> {
        Ok(())
    }

    /// Subranges, ascending and disjoint, without a durable write since they were zeroed: they read
    /// as zeros after a power cut. A call after a barrier proves the barrier's effect.
    ///
    /// # Errors
    /// The medium cannot tell. A medium without such ranges returns none.
    fn unwritten(&self, _offset: u64, _len: u64) -> Result<Vec<Range<u64>>, MediumError> {
        Ok(Vec::new())
    }

    /// Makes the range read as zeros after a barrier, and undoes failed writes there. The space may
    /// return to the system.
    fn zero(&self, offset: u64, len: u64) -> Result<(), Fatal>;

    /// Ensures space for writes to the range; contents stay. Every range is reserved before it is
    /// written.
    fn reserve(&self, offset: u64, len: u64) -> Result<(), ReserveError>;

    /// [`reserve`](Medium::reserve) before an immediate write.
    fn prepare(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        self.reserve(offset, len)
    }

    /// Makes the medium at least `len` bytes long, unless its length is fixed; durable after a
    /// barrier. One process at a time calls this.
    ///
    /// # Errors
    /// Those of [`reserve`](Medium::reserve); without [`Fatal`], nothing happened.
    fn extend(&self, _len: u64) -> Result<Extended, ReserveError> {
        Ok(Extended { len: self.len(), zeros_from: self.len() })
    }

    /// Prepares for many short reads of a range that is never discarded.
    fn keep_near(&self, _offset: u64, _len: u64) {}

    /// Starts the write-back of a range, if that shortens the next barrier.
    fn begin_writeback(&self, _offset: u64, _len: u64) {}

    /// Makes durable what a read returns, without writers meanwhile. Errors as for
    /// [`write_durable`](Medium::write_durable).
    fn persist(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        let (mut at, end) = (offset, offset + len);
        let mut piece = Vec::new();
        while at < end {
            piece.resize((end - at).min(1 << 20) as usize, 0);
            self.read(at, &mut piece)?;
            self.write_durable(at, &piece)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    /// Returns the range to the system if possible; its contents become undefined.
    fn discard(&self, offset: u64, len: u64);

    /// A word at a multiple of eight that processes change concurrently, never durable; `None`: the
    /// pool is not memory, or read-only.
    fn shared_word(&self, _offset: u64) -> Option<&AtomicU64> {
        None
    }

    /// Abilities and costs.
    fn capabilities(&self) -> Capabilities;

    /// Sizes of transfers.
    fn transfers(&self) -> Transfers {
        Transfers::SHIPPED
    }

    /// Checks that the medium is still the opened one (not truncated, not unlinked), and learns of
    /// a greater length.
    fn verify(&self) -> Result<(), MediumError>;
}

/// Result of [`Medium::extend`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extended {
    /// Its length in bytes.
    pub len: u64,
    /// Start of the new bytes, which read as zeros.
    pub zeros_from: u64,
}

/// A medium with locks between processes.
pub trait Device: Medium + Locks {}

impl<T: Medium + Locks> Device for T {}
