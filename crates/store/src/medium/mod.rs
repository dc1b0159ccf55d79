//! The seam between everything persistent and the bytes it stands on.
//!
//! Nothing above this module knows whether it stands on an SSD file, a DAX device, tmpfs or a
//! simulation. The rest of the crate assumes of a medium, and nothing more:
//!
//! 1. A [`Medium::write`] is visible to later reads (of any process) at once, and durable at some
//!    unknown time, in any order with respect to other writes, torn at [`Capabilities::tear_unit`].
//! 2. When [`Medium::barrier`] returns `Ok`, every write that returned before it began is durable.
//! 3. When [`Medium::write_durable`] returns `Ok`, its own bytes are durable; nothing is promised
//!    about other writes.
//! 4. After a failed change ([`Fatal`]) nothing may be assumed about the durability of any write to
//!    the medium since the last successful barrier. Nothing is ever retried by this crate.
//! 5. If calls overlap, none succeeds because another was told of the failure that concerns it:
//!    barriers and durable writes are told apart, and the fault latch makes no two of a kind at
//!    once.
//! 6. Only a reservation may find that there is no space, and then nothing happened
//!    ([`ReserveError`]).
//! 7. Of 2 and 3 there is one exception. If the first write to a page since it was zeroed fails,
//!    later barriers may succeed and the page read as zeros after a power cut all the same, until
//!    it is zeroed again: [`Medium::unwritten`] tells.

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

/// The place where bytes become durable. Offsets and lengths are in bytes from the start of the
/// pool.
///
/// Implementations are shared between threads and between processes that open the same file.
pub trait Medium: Send + Sync {
    /// Length in bytes. It only grows while the medium is open: by [`extend`](Medium::extend), or,
    /// if another process did that, by [`verify`](Medium::verify).
    fn len(&self) -> u64;

    /// True for a medium of no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether writes are refused.
    fn read_only(&self) -> bool;

    /// Fills `buf` from `offset`.
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError>;

    /// As [`read`](Medium::read), of bytes that are not read again soon: they need not stay in this
    /// process's memory.
    fn read_once(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        self.read(offset, buf)
    }

    /// Writes `bytes` at `offset`, in space that is reserved; durable only after a later
    /// [`barrier`](Medium::barrier). After an error any part of it may be visible.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal>;

    /// As [`write`](Medium::write), of bytes that need not stay in the processor's caches: they are
    /// part of a write larger than these.
    fn stream(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.write(offset, bytes)
    }

    /// Writes at `to` the `len` bytes, a page at most, that a read at `from` returns, as
    /// [`write`](Medium::write). The two ranges are apart.
    ///
    /// # Errors
    /// [`Fatal`], as of a write that failed, also if the bytes cannot be read.
    fn copy(&self, from: u64, to: u64, len: usize) -> Result<(), Fatal> {
        let mut bytes = [0; PAGE as usize];
        self.read(from, &mut bytes[..len])?;
        self.write(to, &bytes[..len])
    }

    /// Writes `bytes` at `offset` and makes these bytes durable before it returns. An error is that
    /// of a failed barrier, for any cause.
    fn write_durable(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal>;

    /// Makes every earlier write durable.
    fn barrier(&self) -> Result<(), Fatal>;

    /// Fails if the system has failed to write back pages that it accepted, and has not reported
    /// that yet. After a success, everything read before it was the last written content: lost
    /// pages are clean, may be dropped, and are then read as they were long ago.
    fn check_writeback(&self) -> Result<(), Fatal> {
        Ok(())
    }

    /// As [`check_writeback`](Medium::check_writeback), of the report that the next barrier would
    /// get, if the system keeps the two apart.
    fn check_barriers(&self) -> Result<(), Fatal> {
        Ok(())
    }

    /// Parts of the range, ascending and apart, to which no write was ever made durable since they
    /// were zeroed: they read as zeros after a power cut, whatever programs see, and whatever
    /// barriers returned. Asked after a barrier, it proves the barrier's effect.
    ///
    /// # Errors
    /// The medium cannot tell. One that has no such parts says that there are none.
    fn unwritten(&self, _offset: u64, _len: u64) -> Result<Vec<Range<u64>>, MediumError> {
        Ok(Vec::new())
    }

    /// Makes the range read as zeros (as a write: durable after a barrier), and writes that failed
    /// there of no consequence for those to come. Its space may be given back to the system: a
    /// range that is to stay reserved is reserved again.
    fn zero(&self, offset: u64, len: u64) -> Result<(), Fatal>;

    /// Ensures that later writes to the range cannot fail for want of space. Contents stay, also if
    /// it fails. Every range is reserved before it is written: no other call says that there is no
    /// space.
    fn reserve(&self, offset: u64, len: u64) -> Result<(), ReserveError>;

    /// As [`reserve`](Medium::reserve), for a range that is written right away.
    fn prepare(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        self.reserve(offset, len)
    }

    /// Makes the medium at least `len` bytes long, unless it has a length of its own, as devices
    /// have; durable after a barrier. Its contents stay. One process at a time calls this.
    ///
    /// # Errors
    /// Those of [`reserve`](Medium::reserve); without [`Fatal`], nothing happened.
    fn extend(&self, _len: u64) -> Result<Extended, ReserveError> {
        Ok(Extended { len: self.len(), zeros_from: self.len() })
    }

    /// Prepares for many short reads of the range, which is never discarded: they need no system
    /// call from now on, if the medium can do that.
    fn keep_near(&self, _offset: u64, _len: u64) {}

    /// Begins to bring written bytes of a range to the device, if that saves the next barrier time.
    fn begin_writeback(&self, _offset: u64, _len: u64) {}

    /// Makes the bytes durable that a read of the range returns, whichever process wrote them: also
    /// if a barrier of their writer failed. The caller keeps all writers from the range meanwhile.
    /// Errors are those of [`write_durable`](Medium::write_durable).
    fn persist(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        // Writing it again decides it even on a medium that forgets a failed write.
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

    /// Gives the range back to the system if that is possible; its contents become undefined.
    fn discard(&self, offset: u64, len: u64);

    /// A word of the pool, at a multiple of eight, which several processes change at a time.
    /// `None`: the pool is no memory, or not to be written to. It is never made durable, and
    /// nothing that counts after the last process may stand in it.
    fn shared_word(&self, _offset: u64) -> Option<&AtomicU64> {
        None
    }

    /// Abilities of the medium, and costs.
    fn capabilities(&self) -> Capabilities;

    /// How many bytes are moved at a time.
    fn transfers(&self) -> Transfers {
        Transfers::SHIPPED
    }

    /// Confirms that the medium is still the one that was opened (not truncated, not unlinked), and
    /// takes notice if it is longer than it was.
    fn verify(&self) -> Result<(), MediumError>;
}

/// A medium that is as long as [`Medium::extend`] could make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extended {
    /// Its length in bytes.
    pub len: u64,
    /// Bytes from here on are new, and read as zeros.
    pub zeros_from: u64,
}

/// A medium whose users can exclude each other across processes.
pub trait Device: Medium + Locks {}

impl<T: Medium + Locks> Device for T {}
