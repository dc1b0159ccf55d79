//! Far pointers of C, from pool to pool and from run to run.

use super::ground::{C, folder, program, succeed};
use std::process::Command;

#[test]
fn s2_12_a_list_of_c_goes_through_objects_of_two_pools() {
    let folder = folder();
    let (binary, pools) =
        (folder.path().join("far"), ["one.pmo", "two.pmo"].map(|name| folder.path().join(name)));
    C.build(&program("far.c"), &binary);
    for step in ["make", "walk", "wrong", "walk"] {
        assert_eq!(succeed(Command::new(&binary).args(&pools).arg(step)), "done\n");
    }
    // As Rust has it.
    let opened = pools.map(|path| indelible::Pool::open(path).unwrap());
    let mut space = indelible::Space::new();
    opened.iter().for_each(|pool| space.add(pool));
    let id = opened[0].stat("list").unwrap().id;
    assert_eq!(space.reachable(&[id], true).unwrap().len(), 2);
}
