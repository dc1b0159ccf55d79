//! A medium in memory that loses power.
//!
//! # Fault model
//!
//! Contents are *units* of 8, 64 or 512 aligned bytes ([`TearUnit`]).
//!
//! 1. **Visible.** A write is visible at once to every handle. It is then *pending*: each changed
//!    unit has one more version that a power cut may leave.
//! 2. **Any subset, torn at the unit.** A power cut leaves each unit with its durable content or
//!    any pending version, independently of other units.
//! 3. **Per unit, in order.** Versions of a unit are whole contents in the order of the writes: a
//!    unit holds the result of a prefix of them, at or after its durable content.
//! 4. **Barrier.** When `barrier` returns `Ok`, versions written before it began are durable. A cut
//!    during a barrier is a cut before it.
//! 5. **Durable write.** `write_durable` is a write (1, 2, 3: visible, and torn by a cut, *before*
//!    it returns) whose units, with earlier writes to them, are durable when it returns `Ok`. Other
//!    threads may see its bytes before they are durable.
//! 6. **`zero`** is a write of zeros; **`reserve`** changes nothing; **`discard`** is a write of
//!    undefined bytes, chosen by the seed (noise, zeros or the former ones). Noise goes to written
//!    pages and to the first and last few of the range, which keeps big ranges cheap. **`extend`**
//!    lengthens the medium; a cut before the next barrier leaves the old length. Other handles know
//!    the length once they `verify`.
//! 7. **Write-back errors belong to the file.** After a failed write-back the file has *one* error,
//!    which each handle gets once from its next barrier, and once from its next durable write or
//!    `check_writeback`, which fail (`errseq_t`: a handle is two descriptions of the file). A
//!    handle opened later gets only an error that no handle got yet. [`SimMedium::error_due`] says
//!    whether a report is due.
//! 8. **Failed barrier** ([`Fault::Io`] and others). Pending units are *clean but lost*: each of
//!    their versions stays possible, also after later successful barriers, as the system does not
//!    write clean pages back. A new durable write to the unit ends that.
//! 9. **Failed durable write.** None, a part or all of it is visible, for ENOSPC as for EIO. All
//!    pending versions of its units are clean but lost, and, by the seed, those of the whole file.
//!    A barrier or durable write that reports an older error leaves pending units pending. Of two
//!    threads with one cursor, the first to ask gets the report, even if the lost pages are the
//!    other's.
//! 10. **Failed write-back** ([`SimMedium::fail_writeback`]) without a call: as a failed barrier,
//!     reported by a handle's next barrier or durable write.
//! 11. **Evicted pages.** A page that is clean but lost may be evicted and read again: each unit
//!     then shows its durable version, decided at that moment; programs see their writes vanish.
//!     Pages with a unit written since are dirty and stay. [`SimMedium::evict`] does it at once;
//!     where it is [allowed](SimMedium::evict_by_itself) it happens some operations after a
//!     failure, or never.
//! 12. **Reservations** ([`OpKind::Reserve`]), plain writes and `zero` fail without a trace; a
//!     plain write may also fail half-way ([`Fault::Short`]) or when all of it is visible
//!     ([`Fault::After`]).
//! 13. **Reads** fail once ([`SimMedium::fail_at`]), from a moment on ([`SimMedium::fail_from`]),
//!     or where a sector is bad (17).
//! 14. **Process death** ([`SimMedium::kill`]) releases the locks of one handle. Its writes stay
//!     visible and pending: the page cache outlives it.
//!
//! No power cut makes the following faults at rest; the store must detect them, not survive them.
//!
//! 15. **Flipped bits, foreign bytes** ([`SimMedium::flip`], [`SimMedium::scribble`]) are durable
//!     at once.
//! 16. **Damage heals nothing**: an error that is due stays due.
//! 17. **Latent sector errors** ([`SimMedium::spoil`]): reads that touch a sector of 512 bytes
//!     fail, as do partial writes; a whole write heals it. They are not in the log: to give them to
//!     an image, spoil the image.
//!
//! Harsher than Linux: a write makes only its units dirty again, not the whole page.
//!
//! Not modelled: units that persist as a mixture of old and new bytes, torn reads, and a medium
//! that acknowledges a barrier without executing it (there is no defence).
//!
//! # Locking
//!
//! All handles of a medium share one mutex, held for one operation.

mod blocks;
mod choice;
pub(crate) mod classes;
mod config;
mod control;
mod cut;
mod device;
mod errors;
mod event;
mod fault;
mod images;
mod locks;
mod medium;
mod model;
mod pages;
mod recording;
mod turns;
mod watch;
mod whole;
mod writeback;

pub use choice::Choice;
pub use classes::{ClassLimits, ClassReport};
pub use config::{Discard, SMALL, SimConfig, TearUnit};
pub use cut::{CrashImage, Cut};
pub use event::{Event, EventKind};
pub use fault::{Fault, OpKind};
pub use images::{CrashImages, Limits};
pub use medium::SimMedium;
pub use turns::Turns;
