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

/// Any of the old pools, whatever state it is in: attached, left by a dead writer, full, in the middle of a move.
#[test]
fn every_command_but_upgrade_refuses_an_old_pool_and_leaves_it_alone() {
    let commands: [(&[&str], &[&str]); 14] = [
        (&["ls"], &[]),
        (&["stat"], &["left"]),
        (&["check"], &[]),
        (&["repair"], &[]),
        (&["repair", "--drop-damaged"], &[]),
        (&["create"], &["new", "4K"]),
        (&["rm"], &["left"]),
        (&["mv"], &["left", "new"]),
        (&["resize"], &["left", "1M"]),
        (&["cat"], &["left"]),
        (&["types"], &["left"]),
        (&["heap", "audit"], &["left"]),
        (&["attach-check"], &["left"]),
        (&["metrics"], &[]),
    ];
    for pool in old_pools() {
        let rig = Rig::empty();
        fs::write(&rig.pool, &pool.image).expect("written");
        for (command, arguments) in commands {
            let run = rig.pmo(command.iter().copied(), arguments.iter());
            assert_eq!(run.code, Some(9), "{}, {command:?}: {run:?}", pool.name);
            let said = run.err.contains("format version 1") && run.err.contains("pmo upgrade");
            assert!(said, "{}, {command:?}: {run:?}", pool.name);
        }
        assert!(fs::read(&rig.pool).expect("the pool")[..] == pool.image[..], "{}", pool.name);
    }
}
