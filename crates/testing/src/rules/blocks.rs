//! Blocks whose first write failed: later barriers succeed, and no bytes written to the blocks
//! stay.

use super::errors::{recovered, state};
use super::{CONFIG, KEY, Verdict, create, of, open};
use crate::pool::psync;
use crate::scenario::formatted;
use crate::sim::{Choice, Fault, OpKind, SimMedium};
use indelible_store::lane::Batch;
use indelible_store::table::CreateOptions;

fn cuts(medium: &SimMedium) -> Result<(), String> {
    let promised = state(&open(medium, 8));
    for choice in [Choice::None, Choice::All, Choice::Random(1), Choice::Random(2)] {
        let found = recovered(&medium.power_cut(choice.clone()).medium())?;
        if found != promised {
            return Err(format!("{choice:?} leaves something else than was there"));
        }
    }
    Ok(())
}

pub(super) fn redone_blocks_keep_what_is_written() -> Verdict {
    for sparse in [false, true] {
        let medium = formatted(2 << 20, CONFIG);
        let first = open(&medium, 1);
        create(&first, "gone", 50_000);
        first.create("a", &CreateOptions { sparse, ..of(40_000) }).unwrap();
        first.destroy("gone", KEY).unwrap();
        create(&first, "small", 100);
        first.create("b", &CreateOptions { sparse: true, ..of(45_000) }).unwrap();
        let at = |name| first.find(name).unwrap();
        let (a, b) = (at("a"), at("b"));
        assert!(a.offset < b.offset && a.entry.primary_offset() > b.entry.primary_offset());
        let mut b = first.attach_writer("b", KEY).unwrap();
        psync(&mut b, &[(20_000, &[5; 20_000])]).unwrap();
        let mut a = first.attach_writer("a", KEY).unwrap();
        psync(&mut a, &[(0, &[1; 100]), (4000, &[2; 9000]), (30_000, &[3; 10_000])]).unwrap();
        medium.fail_at(OpKind::Barrier, 0, Fault::Io);
        a.checkpoint().unwrap_err();
        medium.clear_faults();
        drop((a, b, first));
        let second = open(&medium, 2);
        let mut a = second.attach_writer("a", KEY).unwrap();
        cuts(&medium)?;
        psync(&mut a, &[(100, &[4; 9000])]).unwrap();
        a.checkpoint().unwrap();
        drop((a, second));
        cuts(&medium)?;
    }
    Ok(())
}

pub(super) fn blocks_of_the_table_were_written_before() -> Verdict {
    for failing in [Fault::Io, Fault::After] {
        let medium = formatted(2 << 20, CONFIG);
        let turn = |pid: u32, fails: bool| {
            let store = open(&medium, pid);
            let barriers = medium.count(OpKind::Barrier);
            if fails {
                medium.fail_from(OpKind::Barrier, 0, failing);
            }
            for nth in 0.. {
                let made = store.create(&format!("{pid}, {nth}"), &of(100));
                if made.is_err() || (!fails && medium.count(OpKind::Barrier) > barriers + 1) {
                    break;
                }
            }
            medium.clear_faults();
        };
        turn(1, true);
        turn(2, false);
        cuts(&medium)?;
    }
    Ok(())
}

pub(super) fn blocks_of_a_lane_were_written_before() -> Verdict {
    let medium = formatted(2 << 20, CONFIG);
    let first = open(&medium, 1);
    create(&first, "a", 40_000);
    let mut a = first.attach_writer("a", KEY).unwrap();
    psync(&mut a, &[(0, &[1; 100])]).unwrap();
    medium.fail_at(OpKind::WriteDurable, 0, Fault::Io);
    psync(&mut a, &[(0, &[2; 40_000])]).unwrap_err();
    medium.clear_faults();
    drop((a, first));
    let second = open(&medium, 2);
    let mut a = second.attach_writer("a", KEY).unwrap();
    for value in 3..6 {
        psync(&mut a, &[(0, &[value; 20_000])]).unwrap();
        let found = recovered(&medium.power_cut(Choice::None).medium())?;
        if found["a"][..20_000] != [value; 20_000] {
            return Err(format!("psync {value} is lost"));
        }
    }
    Ok(())
}

pub(super) fn space_that_failed_once_is_zeroed_before_its_use() -> Verdict {
    for kind in [OpKind::Barrier, OpKind::WriteDurable] {
        let medium = formatted(4 << 20, CONFIG);
        let keeper = open(&medium, 1);
        create(&keeper, "kept", 5000);
        let kept = keeper.attach_writer("kept", KEY).unwrap();
        create(&keeper, "old", 9000);
        keeper.destroy("old", KEY).unwrap();
        for pid in 2..6 {
            let store = open(&medium, pid);
            medium.fail_at(kind, u64::from(pid) % 2, Fault::Io);
            let _ = store.create("a", &of(9000));
            let _ = store.attach_writer("a", KEY);
            medium.clear_faults();
        }
        let store = open(&medium, 7);
        let _ = store.create("a", &of(9000));
        let mut a = store.attach_writer("a", KEY).unwrap();
        for round in 0..4 {
            psync(&mut a, &[(0, &[round; 9000])]).unwrap();
            let found = recovered(&medium.power_cut(Choice::None).medium())?;
            if found["a"] != [round; 9000] {
                return Err(format!("{kind:?}: psync {round} is lost"));
            }
        }
        a.checkpoint().unwrap();
        let found = recovered(&medium.power_cut(Choice::None).medium())?;
        if found["a"] != [3; 9000] {
            return Err(format!("{kind:?}: the checkpoint is lost"));
        }
        drop((a, kept));
    }
    Ok(())
}

pub(super) fn recycled_blocks_keep_what_is_written() -> Verdict {
    for moves in [false, true] {
        let medium = formatted(4 << 20, CONFIG);
        let first = open(&medium, 1);
        create(&first, "a", 3 * 4096);
        create(&first, "behind", 100);
        create(&first, "old", 9 * 4096);
        let mut old = first.attach_writer("old", KEY).unwrap();
        psync(&mut old, &[(0, &[1; 9 * 4096])]).unwrap();
        medium.fail_at(OpKind::Barrier, 0, Fault::Io);
        old.checkpoint().unwrap_err();
        medium.clear_faults();
        drop((old, first));
        let second = open(&medium, 2);
        second.destroy("old", KEY).unwrap();
        if moves {
            second.resize("a", KEY, 9 * 4096).unwrap();
        } else {
            second.destroy("a", KEY).unwrap();
            create(&second, "a", 9 * 4096);
        }
        let mut a = second.attach_writer("a", KEY).unwrap();
        for value in [2, 3] {
            psync(&mut a, &[(0, &[value; 9 * 4096])]).unwrap();
            a.checkpoint().unwrap();
        }
        let found = recovered(&medium.power_cut(Choice::None).medium())?;
        if found["a"] != [3; 9 * 4096] {
            return Err(format!("moved: {moves}: the checkpoint is lost"));
        }
        drop(a);
    }
    Ok(())
}

pub(super) fn space_that_was_never_used_is_zeroed_before_its_use() -> Verdict {
    for sparse in [false, true] {
        for failing in [OpKind::Write, OpKind::Barrier] {
            let medium = formatted(4 << 20, CONFIG);
            let keeper = open(&medium, 1);
            create(&keeper, "kept", 5000);
            create(&keeper, "other", 5000);
            let kept = keeper.attach_writer("kept", KEY).unwrap();
            let second = open(&medium, 2);
            medium.fail_from(failing, 0, Fault::After);
            let refused = second.attach_writer("other", KEY);
            medium.clear_faults();
            if refused.is_ok() {
                return Err(format!("{failing:?}: nothing failed"));
            }
            drop((refused, second));
            let third = open(&medium, 3);
            let size = 1 << 20;
            third.create("new", &CreateOptions { sparse, ..of(size) }).unwrap();
            let mut new = third.attach_writer("new", KEY).unwrap();
            for value in [1, 2] {
                psync(&mut new, &[(0, &[value; 300_000])]).unwrap();
                new.checkpoint().unwrap();
                let found = recovered(&medium.power_cut(Choice::None).medium())?;
                if found["new"][..300_000] != [value; 300_000] {
                    return Err(format!("sparse: {sparse}, {failing:?}: checkpoint {value} is lost"));
                }
            }
            drop((new, kept));
        }
    }
    Ok(())
}

fn direct_write_fails(published: u64) -> Verdict {
    for sparse in [false, true] {
        let medium = formatted(2 << 20, CONFIG);
        let first = open(&medium, 1);
        first.create("a", &CreateOptions { sparse, ..of(40_000) }).unwrap();
        let mut a = first.attach_writer("a", KEY).unwrap();
        a.psync(&mut |_, _: &mut Batch| Ok(published)).unwrap();
        a.begin_direct(5000).unwrap();
        a.write_direct(published, &vec![1; 5000 - published as usize]).unwrap();
        medium.fail_at(OpKind::Barrier, 0, Fault::Io);
        a.end_direct().unwrap_err();
        medium.clear_faults();
        drop((a, first));
        let second = open(&medium, 2);
        let mut a = second.attach_writer("a", KEY).unwrap();
        cuts(&medium)?;
        psync(&mut a, &[(64, &[2; 64]), (4200, &[3; 64]), (6000, &[4; 64])]).unwrap();
        a.checkpoint().unwrap();
        drop((a, second));
        cuts(&medium).map_err(|cause| format!("sparse: {sparse}: {cause}"))?;
    }
    Ok(())
}

pub(super) fn the_last_page_of_a_failed_direct_write_keeps_what_is_written() -> Verdict {
    direct_write_fails(0)
}

pub(super) fn the_first_page_of_a_failed_direct_write_keeps_what_is_written() -> Verdict {
    direct_write_fails(2560)
}
