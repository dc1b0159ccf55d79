//! Pools that release 0.1 made in its first format.

use crate::common::Rig;
use indelible_testing::hostile::pool::old_pools;
use std::fs;

/// A pool of format 1 with the objects of a program that died.
fn old() -> Rig {
    let rig = Rig::empty();
    let pools = old_pools();
    let waiting = pools.iter().find(|pool| pool.name == "waiting").expect("a pool with a dead writer");
    fs::write(&rig.pool, &waiting.image).expect("written");
    rig
}

#[test]
fn an_old_pool_is_refused_by_its_version_and_upgraded() {
    let rig = old();
    let refused = rig.pmo(["ls"], [""; 0]).fails(9, "format version 1, this software uses version 2");
    assert!(refused.err.contains("pmo upgrade"), "{}", refused.err);
    let before = fs::read(&rig.pool).expect("the pool");
    let tried = rig.pmo(["upgrade"], ["--dry-run"]).fine();
    assert_eq!(tried.out, "the pool can be upgraded from format 1 to 2: 3 objects, 3 objects recovered\n");
    assert!(fs::read(&rig.pool).expect("the pool") == before);
    let done = rig.pmo(["upgrade", "--json"], [""; 0]).fine().json();
    assert_eq!((done["from"].as_u64(), done["to"].as_u64()), (Some(1), Some(2)), "{done}");
    assert_eq!((done["objects"].as_u64(), done["recovered"].as_u64()), (Some(3), Some(3)), "{done}");
    rig.pmo(["check"], [""; 0]).fine();
    assert_eq!(rig.pmo(["cat"], ["left"]).fine().raw.len(), 5000);
    let again = rig.pmo(["upgrade"], [""; 0]).fine();
    assert_eq!(again.out, "the pool has format 2 already\n");
}
