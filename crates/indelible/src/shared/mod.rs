//! Objects of the class shared (docs/decisions/0055-shared-class.md): memory at the object's
//! address that any number of processes have at once, words to wait for in it, and queues.
//!
//! The memory is a file of tmpfs ([`crate::backing::Common`]), which the first process that
//! attaches the object makes, and which stays until the object is destroyed, `pmo gc` finds that no
//! process will need it, or the machine is started anew. Nothing in it becomes durable. All sharing
//! processes are of one user, and each may store anything to it at any moment, or die.
//!
//! Invariants:
//! 1. The bytes are accessed as atomics alone, or by system calls.
//! 2. No number that is read from them is an index, a length or an address before it was compared
//!    with this process's knowledge of the object: bytes that others scribble make errors, or wrong
//!    messages of the right length.
//! 3. Nothing waits for another process without looking, again and again, whether that one is still
//!    there: by a lock of the kernel's, which ends with its holder.
//! 4. A page that is gone, because the file was truncated, reads as zeros for the thread that meets
//!    it first, and is an error before anything of it is believed ([`crate::sys::bus`]).

mod consumer;
mod event;
mod layout;
mod life;
mod memory;
mod object;
mod producer;
mod queue;
pub(crate) mod slots;
mod stream;
mod value;
mod word;

pub use consumer::Consumer;
pub use event::Event;
pub use layout::{QueueKind, QueueOptions};
pub use life::Life;
pub use object::SharedObject;
pub use producer::Producer;
pub use queue::Queue;
pub use stream::{StreamReader, StreamWriter};
pub use word::{Word, wait_any};
