//! Pools of release 0.1's first format.

use crate::common::Rig;
use indelible_testing::hostile::pool::{old_pool, old_pools};
use std::fs;

fn old() -> Rig {
    let rig = Rig::empty();
    fs::write(&rig.pool, &old_pool("waiting").image).expect("written");
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

#[test]
fn doctor_names_the_format_and_the_remedy() {
    let rig = old();
    let pool = || {
        let run = rig.pmo(["doctor"], [""; 0]);
        let line = run.out.lines().position(|line| line.starts_with("pool "));
        let said = line.map(|line| run.out.lines().skip(line).take(2).collect::<Vec<_>>().join("\n"));
        (run.code, said.unwrap_or(run.out))
    };
    let (code, said) = pool();
    assert_eq!(code, Some(9), "{said}");
    assert!(
        said.contains("no ") && said.contains("format version 1") && said.contains("pmo upgrade"),
        "{said}"
    );
    rig.pmo(["upgrade"], [""; 0]).fine();
    let (code, said) = pool();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("yes  a pool of format 2, made or upgraded by release "), "{said}");
    let none = Rig::empty().pmo(["doctor"], [""; 0]).fine();
    assert!(none.out.lines().any(|line| line.starts_with("pool ") && line.ends_with(" none")), "{none:?}");
}

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
