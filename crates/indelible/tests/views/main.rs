//! Views and security contexts: slots, objects mapped on first use, changes by others, deaths.

#[path = "../support/mod.rs"]
mod support;
#[cfg(feature = "__mutants")]
#[path = "../support/watches.rs"]
mod watches;

mod adopting;
mod contexts;
mod editing;
mod faulting;
mod group;
mod mutants;
mod switched;
mod touching;

use crate::support::World;
use indelible::{Pool, Rights, View};

/// Rights to read and to write.
pub fn writing() -> Rights {
    Rights::READ | Rights::WRITE
}

/// A pool with two-page objects `o0`, `o1` and so on, which begin with their number plus 100, in
/// slots 0, 10 and so on of a view `v`.
pub fn with_view(world: &World, objects: usize, rights: Rights) -> Pool {
    let pool = world.format();
    for number in 0..objects {
        let mut object = pool.create_attached(&format!("o{number}"), 8192).unwrap();
        *object.root_mut::<u64>().unwrap() = 100 + number as u64;
        object.psync().unwrap();
    }
    let mut view = View::create(&pool, "v", 200).unwrap();
    for number in 0..objects {
        view.set(10 * number, &format!("o{number}"), rights).unwrap();
    }
    view.psync().unwrap();
    pool
}

/// The number in an object, as the pool has it.
pub fn durable(world: &World, name: &str) -> u64 {
    *world.open().attach_read(name).unwrap().root::<u64>().unwrap()
}

/// Takes an object for writing, as another program would.
pub fn hold(world: &World, name: &str) -> indelible_store::store::Writer {
    world.open().store().attach_writer(name, indelible_store::table::Key(b"")).unwrap()
}

/// The kind of the error that must be there.
pub fn kind<T: std::fmt::Debug>(result: indelible::Result<T>) -> indelible::ErrorKind {
    result.expect_err("it is refused").kind()
}
