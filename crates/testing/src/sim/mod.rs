//! A medium in memory that loses power.
//!
//! # Fault model
//!
//! Contents are divided into *units* of 8, 64 or 512 bytes ([`TearUnit`]), aligned to their size.
//!
//! 1. **Visible.** A write is visible at once to every handle. It is then *pending*: each unit whose
//!    content it changed has one more version that a power cut may leave.
//! 2. **Any subset, torn at the unit.** A power cut leaves each unit with its durable content or
//!    with any of its pending versions, independently of all other units.
//! 3. **Per unit, in order.** Versions of one unit are whole contents in the order of the writes, so
//!    a unit holds what some prefix of the writes to it, at or after its durable content, made.
//! 4. **Barrier.** When `barrier` returns `Ok`, versions written before it began are durable. A cut
//!    during a barrier is a cut before it.
//! 5. **Durable write.** `write_durable` is a write (1, 2, 3: visible, and torn by a cut, *before* it
//!    returns) whose units are durable when it returns `Ok`, and with them earlier writes to the
//!    same units, and nothing else. Other threads may run between its two halves and see bytes that
//!    are not durable yet.
//! 6. **`zero`** is a write of zeros; **`reserve`** changes nothing; **`discard`** is a write of
//!    whatever the seed decides (noise, zeros or what was there), so that code which relies on
//!    discarded contents is caught while running as well as after a cut. Noise goes to pages that
//!    hold something and to the first and last few of the range: a gigabyte stays cheap to discard.
//! 7. **Failed barrier.** Nothing may be assumed of what was pending. It is *stuck*: each of its
//!    versions stays possible, also after later barriers that succeed, as on a kernel that marks pages
//!    clean when writing them back fails. A new write to the unit, then made durable, ends that. Every
//!    other handle that is open learns of the error at its next barrier, which fails once.
//! 8. **Failed durable write.** As 7 for its own units, and unseen by other handles.
//! 9. **Process death** ([`SimMedium::kill`]) releases the locks of one handle. What it wrote stays
//!    visible and pending: the page cache outlives a process, not a power cut.
//!
//! Faults of the medium at rest are apart from all this: no power cut makes them, and what is asked of the
//! store is not to survive them but to detect them.
//!
//! 10. **Flipped bits, foreign bytes** ([`SimMedium::flip`], [`SimMedium::scribble`]) are durable at once.
//! 11. **Latent sector errors** ([`SimMedium::spoil`]): reads that touch a sector of 512 bytes fail, as do
//!     writes of a part of it (which would have to read the rest); writing all of it heals it. They
//!     belong to the medium and not to its log: an image that is to have them is spoiled itself.
//!
//! Not modelled: units that persist a mixture of old and new bytes, reads that see a torn write, a page
//! cache that loses what a failed barrier left in it while programs still run, and a medium that
//! acknowledges a barrier it did not carry out. The first is below the smallest unit that hardware
//! promises; the last nobody can defend against.
//!
//! # Locking
//!
//! All handles of one medium share one mutex, held for one operation; there is no other lock.

mod choice;
pub(crate) mod classes;
mod config;
mod control;
mod cut;
mod device;
mod event;
mod fault;
mod images;
mod locks;
mod medium;
mod model;
mod pages;
mod recording;
mod watch;
mod whole;

pub use choice::Choice;
pub use classes::{ClassLimits, ClassReport};
pub use config::{Discard, SimConfig, TearUnit};
pub use cut::{CrashImage, Cut};
pub use event::{Event, EventKind};
pub use fault::{Fault, OpKind};
pub use images::{CrashImages, Limits};
pub use medium::SimMedium;
