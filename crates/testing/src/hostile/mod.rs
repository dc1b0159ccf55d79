//! Images made by an attacker or a failing medium: the store must withstand them.
//!
//! Functions here depend on bytes alone: a fuzzer, a replay and a test run the same code.
//! [`TARGETS`] names them. They panic if a promise is broken:
//!
//! 1. Nothing panics, and no read is out of bounds (the medium refuses it).
//! 2. Every operation ends: an [`Image`] panics past the bound for a pool of its size.
//! 3. `check` changes nothing.
//! 4. After `repair`, `check` finds only errors that repair reported as left.
//! 5. If bytes were damaged without fitting checksums, objects that attach show a psynced state.
//!
//! Images start from real pools ([`pool`]), kept compressed beside this crate as a pool's identity
//! and seed are random; an input is a list of changes to one ([`edit`]).

pub mod anatomy;
pub mod decode;
pub mod edit;
mod image;
pub mod pool;
pub mod sweep;
pub mod whole;

pub use image::Image;

#[derive(Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    pub seeds: fn() -> Vec<Vec<u8>>,
}

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
