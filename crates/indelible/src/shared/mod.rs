//! Objects of the class shared (docs/decisions/0055-shared-class.md): memory at the object's
//! address in any number of processes of one user, with words to wait for, and queues.
//!
//! The memory is a tmpfs file ([`crate::backing::Common`]), made by the first attach. It stays
//! until the object is destroyed, a process that alone has it gives it back, `pmo gc` finds it
//! unneeded, or the machine restarts. Nothing in it becomes durable. Each process may store
//! anything at any moment, or die.
//!
//! Invariants:
//! 1. The bytes are accessed as atomics alone, or by system calls.
//! 2. A number read from them is compared with this process's knowledge of the object before it
//!    serves as index, length or address: scribbled bytes make errors, or wrong messages of the
//!    right length.
//! 3. Every wait for another process repeatedly checks that it exists, by a kernel lock that ends
//!    with its holder.
//! 4. A page lost by truncation reads as zeros for the thread that meets it first, and is an error
//!    before any of its bytes is believed ([`crate::sys::bus`]).

mod consumer;
mod event;
mod exchange;
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
pub use exchange::{Exchange, ExchangeOptions, Requester, Server};
pub use layout::{QueueKind, QueueOptions};
pub use life::Life;
pub use object::SharedObject;
pub use producer::Producer;
pub use queue::Queue;
pub use stream::{StreamReader, StreamWriter};
pub use word::{Word, wait_any};
