//! A medium in memory that loses power.
//!
//! # Fault model
//!
//! Contents are divided into *units* of 8, 64 or 512 bytes ([`TearUnit`]), aligned to their size.
//!
//! 1. **Visible.** A write is visible at once to every handle. It is then *pending*: each unit
//!    whose content it changed has one more version that a power cut may leave.
//! 2. **Any subset, torn at the unit.** A power cut leaves each unit with its durable content or
//!    with any of its pending versions, independently of all other units.
//! 3. **Per unit, in order.** Versions of one unit are whole contents in the order of the writes,
//!    so a unit holds the result of some prefix of the writes to it, at or after its durable
//!    content.
//! 4. **Barrier.** When `barrier` returns `Ok`, versions written before it began are durable. A cut
//!    during a barrier is a cut before it.
//! 5. **Durable write.** `write_durable` is a write (1, 2, 3: visible, and torn by a cut, *before*
//!    it returns) whose units are durable when it returns `Ok`, and with them earlier writes to the
//!    same units, and nothing else. Other threads may run between its two halves and see bytes that
//!    are not durable yet.
//! 6. **`zero`** is a write of zeros; **`reserve`** changes nothing; **`discard`** is a write of
//!    bytes that the seed decides (noise, zeros or the former ones), so that code which relies on
//!    discarded contents is caught while running as well as after a cut. Noise goes to pages that
//!    hold something and to the first and last few of the range: a gigabyte stays cheap to discard.
//!    **`extend`** makes the medium longer; a cut before the next barrier leaves the old length.
//!    Other handles know the length once they `verify`.
//! 7. **Write-back errors belong to the file.** After any failure to write a page back, for any
//!    call, the file has an error: *one*, which every handle is told once by its next barrier, and
//!    once by its next durable write or `check_writeback`, which fail (`errseq_t`: a handle is two
//!    descriptions of the file, each with a cursor). A handle opened later is told of an error that
//!    was reported to no handle yet, and of no other. [`SimMedium::error_due`] says whether a
//!    handle has yet to be told.
//! 8. **Failed barrier** ([`Fault::Io`] and others). The state of pending units is unknown. They
//!    are *clean but lost*: each of their versions stays possible, also after later barriers that
//!    succeed, as the system writes no page back that is marked clean. A new write to the unit,
//!    then made durable, ends that.
//! 9. **Failed durable write.** None, a part or all of it is visible; ENOSPC as well as EIO,
//!    because both may come from write-back. All pending versions of its units are clean but lost,
//!    and by the seed those of the whole file. A barrier or durable write that is told of an older
//!    error leaves pending units pending, its own included. The caller is told at the end of the
//!    call; of two threads that share a cursor, the one that asks first is told and the other is
//!    not, even if the lost pages are the other's.
//! 10. **Failed write-back** ([`SimMedium::fail_writeback`]) without a call: as a failed barrier,
//!     but no handle is told before its next barrier or durable write.
//! 11. **Evicted pages.** A page that is clean but lost may be evicted, and is then read again:
//!     each of its units shows its durable version, which is decided in that moment. Programs that
//!     still run see their own writes vanish. Pages with a unit that was written since are dirty
//!     and stay. [`SimMedium::evict`] does it at once; where it is
//!     [allowed](SimMedium::evict_by_itself) it happens some operations after a failure, or never,
//!     by the seed.
//! 12. **Reservations** ([`OpKind::Reserve`]) fail without a trace, as do plain writes and `zero`
//!     of which no byte is visible; a plain write may also fail half-way ([`Fault::Short`]) or when
//!     all of it is visible ([`Fault::After`]).
//! 13. **Reads** fail once ([`SimMedium::fail_at`]), from some time on ([`SimMedium::fail_from`]),
//!     or where a sector is bad (17).
//! 14. **Process death** ([`SimMedium::kill`]) releases the locks of one handle. Its writes stay
//!     visible and pending: the page cache outlives a process, not a power cut.
//!
//! Faults of the medium at rest are apart from all this: no power cut makes them, and the store
//! need not survive them but must detect them.
//!
//! 15. **Flipped bits, foreign bytes** ([`SimMedium::flip`], [`SimMedium::scribble`]) are durable
//!     at once.
//! 16. **Damage heals nothing**: an error that is due stays due.
//! 17. **Latent sector errors** ([`SimMedium::spoil`]): reads that touch a sector of 512 bytes
//!     fail, as do writes to a part of it (which would have to read the rest); writing all of it
//!     heals it. They belong to the medium and not to its log: to give an image such errors, spoil
//!     the image.
//!
//! The simulation is harsher than Linux in this: a write to one unit makes that unit dirty again,
//! not its whole page, so that lost units beside it stay lost.
//!
//! Not modelled: units that persist a mixture of old and new bytes, reads that see a torn write,
//! and a medium that acknowledges a barrier it did not carry out. The first is below the smallest
//! unit that hardware promises; against the last there is no defence.
//!
//! # Locking
//!
//! All handles of one medium share one mutex, held for one operation; there is no other lock.

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
