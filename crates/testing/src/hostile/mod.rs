//! Images that an attacker, or a failing medium, made up: the store must withstand them.
//!
//! All functions here depend on bytes alone, so that a fuzzer, a replay of its finds, and a test
//! run the same code. [`TARGETS`] names them. A function panics if a promise is broken:
//!
//! 1. Nothing panics, and nothing is read out of bounds (the medium refuses that, and callers may
//!    not ask).
//! 2. Every operation ends: a [`Image`] panics when more operations or bytes are asked of it than
//!    any operation on a pool of its size can need.
//! 3. `check` changes nothing.
//! 4. After `repair`, `check` finds no error but those that repair said it left.
//! 5. If bytes were damaged without their checksums being made to fit again, objects that attach
//!    show a state that some psync wrote.
//!
//! Images start from real pools ([`pool`]), kept compressed beside this crate, because a pool's
//! identity and seed are random: an input is a list of changes to one of them ([`edit`]).

pub mod anatomy;
pub mod decode;
pub mod edit;
mod image;
pub mod pool;
pub mod sweep;
pub mod whole;

pub use image::Image;

/// A function that a fuzzer drives.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name of the target and of its corpus.
    pub name: &'static str,
    /// Panics if a promise is broken.
    pub run: fn(&[u8]),
    /// Inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "superblock", run: decode::superblock, seeds: decode::superblocks },
    Target { name: "root", run: decode::root, seeds: decode::roots },
    Target { name: "node", run: decode::node, seeds: decode::nodes },
    Target { name: "entry", run: decode::entry, seeds: decode::entries },
    Target { name: "key_page", run: decode::key_page, seeds: decode::key_pages },
    Target { name: "lane", run: decode::lane, seeds: decode::lanes },
    Target { name: "table", run: whole::table, seeds: edit::seeds },
    Target { name: "check", run: whole::check, seeds: edit::seeds },
    Target { name: "recover", run: whole::recover, seeds: edit::seeds },
    Target { name: "repair", run: whole::repair, seeds: edit::seeds },
    Target { name: "damage", run: whole::damage, seeds: edit::seeds },
];
