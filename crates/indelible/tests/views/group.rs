use crate::support::{Ground, World, everywhere};
use crate::{durable, hold, with_view, writing};
use indelible::{AttachedView, SlotMemory, Tracking, View};
use indelible_testing::{Choice, CrashImage, Fault, Limits, OpKind, SimMedium, for_each_crash};
use std::sync::Arc;

fn durable_writes<R>(world: &World, call: impl FnOnce() -> R) -> (u64, R) {
    let sim = world.sim().unwrap();
    let count = || sim.count(OpKind::WriteDurable) + sim.count(OpKind::Barrier);
    let before = count();
    let done = call();
    (count() - before, done)
}

#[test]
fn s2_07_a_hundred_objects_are_attached_by_one_change_of_the_table() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let pool = with_view(&world, 20, writing());
    let (one, object) = durable_writes(&world, || pool.attach("o0").unwrap());
    drop(object);
    let view = AttachedView::attach(&pool, "v").unwrap();
    let (all, attached) = durable_writes(&world, || view.bring_all().unwrap());
    assert!(attached == 20 && all <= one + 4, "{all} durable writes for all, {one} for one");
    drop(view);
    let mut editor = View::open(&pool, "v").unwrap();
    for number in 0..20 {
        editor.set_at_once(10 * number, &format!("o{number}"), writing()).unwrap();
    }
    editor.psync().unwrap();
    drop(editor);
    let (all, mut view) = durable_writes(&world, || AttachedView::attach(&pool, "v").unwrap());
    assert!(view.slots().iter().all(|slot| slot.memory == SlotMemory::Writing));
    assert!(all <= one + 4, "{all} durable writes for all, {one} for one");
    for number in 0..20 {
        *view.get_mut::<u64>(10 * number).unwrap() += 1;
    }
    view.psync().unwrap();
    drop(view);
    for number in 0..20 {
        assert_eq!(durable(&world, &format!("o{number}")), 101 + number);
    }
}

#[test]
fn s2_07_objects_are_detached_by_one_change_of_the_table_for_each_lane() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let pool = with_view(&world, 20, writing());
    let mut object = pool.attach("o0").unwrap();
    *object.root_mut::<u64>().unwrap() += 1;
    object.psync().unwrap();
    let (one, detached) = durable_writes(&world, || object.detach());
    detached.unwrap();
    let mut view = AttachedView::attach(&pool, "v").unwrap();
    assert_eq!(view.bring_all().unwrap(), 20);
    for number in 0..20 {
        *view.get_mut::<u64>(10 * number).unwrap() += 1;
    }
    view.psync().unwrap();
    let (all, ()) = durable_writes(&world, || view.detach());
    assert!(all <= 4 * one, "{all} durable writes for all, {one} for one");
    for number in 0..20 {
        let object = pool.attach(&format!("o{number}")).unwrap();
        let expected = 101 + number + u64::from(number == 0);
        assert_eq!(*object.root::<u64>().unwrap(), expected, "object {number}");
        assert_eq!(object.recovered_bytes(), 0, "its last writer detached");
    }
}

#[test]
fn s2_18_a_detach_that_fails_loses_nothing() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let pool = with_view(&world, 3, writing());
    let sim = world.sim().unwrap();
    let start = sim.power_cut(Choice::All);
    drop(pool);
    let open = |medium: &SimMedium| world.options().on_device(Arc::new(medium.handle()), false).unwrap();
    for kind in [OpKind::WriteDurable, OpKind::Barrier] {
        for fails in 0.. {
            let medium = start.medium();
            let pool = open(&medium);
            let mut view = AttachedView::attach(&pool, "v").unwrap();
            assert_eq!(view.bring_all().unwrap(), 3);
            for number in 0..3 {
                view.bytes_mut(10 * number).unwrap()[100] = 7;
            }
            view.psync().unwrap();
            medium.fail_at(kind, fails, Fault::Io);
            drop(view);
            let met = medium.faults_met();
            drop(pool);
            for again in [medium.power_cut(Choice::None), medium.power_cut(Choice::All)] {
                let again = again.medium();
                let pool = open(&again);
                for name in ["o0", "o1", "o2"] {
                    let object = pool.attach(name).unwrap();
                    assert_eq!(object.as_slice()[100], 7, "{name}, fault {fails} of {kind:?}");
                }
            }
            if met == 0 {
                assert!(fails > 0, "no {kind:?} failed");
                break;
            }
        }
    }
}

#[test]
fn an_object_that_cannot_be_had_keeps_no_other_from_the_group() {
    everywhere(|world| {
        let pool = with_view(world, 5, writing());
        let held = hold(world, "o1");
        world.open().destroy("o3").unwrap();
        let view = AttachedView::attach(&pool, "v").unwrap();
        assert_eq!(view.bring_all().unwrap(), 3);
        assert_eq!(view.slots().iter().filter(|slot| slot.refused.is_some()).count(), 2);
        drop(held);
        assert_eq!(view.bring_all().unwrap(), 4);
        assert_eq!(*view.get::<u64>(10).unwrap(), 101);
    });
}

/// The psyncs are in the dead writer's lane alone. Each durable write of the recovery fails once,
/// then the power fails.
#[test]
fn s2_18_a_group_recovers_what_its_writer_left() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let pool = with_view(&world, 4, writing());
    let sim = world.sim().unwrap();
    let mut view = AttachedView::attach(&pool, "v").unwrap();
    view.bring_all().unwrap();
    for round in 0..3 {
        for number in 0..4 {
            view.bytes_mut(10 * number).unwrap()[100] = round + number as u8;
            view.psync().unwrap();
        }
    }
    let died = sim.power_cut(Choice::All);
    drop((view, pool));
    let open = |medium: &SimMedium| world.options().on_device(Arc::new(medium.handle()), false).unwrap();
    for fails in 0..60 {
        let left = died.medium();
        left.fail_at(OpKind::WriteDurable, fails, Fault::Io);
        let again = open(&left);
        if let Ok(view) = AttachedView::attach(&again, "v") {
            let _ = view.bring_all();
            let _ = view.bring_all();
        }
        let _ = again.attach("o2").map(|mut object| object.psync());
        drop(again);
        let found = left.power_cut(Choice::None).medium();
        let view = AttachedView::attach(&open(&found), "v").unwrap();
        assert_eq!(view.bring_all().unwrap(), 4, "fault {fails}");
        for number in 0..4 {
            let byte = view.bytes(10 * number).unwrap()[100];
            assert_eq!(byte, 2 + number as u8, "object {number}, fault {fails}");
        }
        if left.faults_met() == 0 {
            assert!(fails > 1, "no durable write failed");
            return;
        }
    }
    panic!("the durable writes never end");
}

#[test]
fn s2_18_a_power_cut_leaves_all_objects_of_a_view_as_one_psync_left_them() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let pool = with_view(&world, 3, writing());
    let sim = world.sim().unwrap();
    let store = |view: &mut AttachedView, byte: u8| {
        for number in 0..3 {
            view.bytes_mut(10 * number).unwrap()[3000] = byte;
        }
        view.psync().unwrap();
    };
    let mut view = AttachedView::attach(&pool, "v").unwrap();
    view.bring_all().unwrap();
    store(&mut view, 1);
    let died = sim.power_cut(Choice::All).medium();
    drop((view, pool));
    let open = |medium: &SimMedium| world.options().on_device(Arc::new(medium.handle()), false).unwrap();
    let record = |medium: &SimMedium| {
        let pool = open(medium);
        let mut view = AttachedView::attach(&pool, "v").unwrap();
        assert_eq!(view.bring_all().unwrap(), 3);
        store(&mut view, 2);
        medium.mark(2);
    };
    let verify = |image: &CrashImage| {
        let view = AttachedView::attach(&open(&image.medium()), "v").unwrap();
        let attached = view.bring_all().map_err(|error| error.to_string())?;
        let bytes = [0, 10, 20].map(|slot| view.bytes(slot).map_or(0, |bytes| bytes[3000]));
        let least = if image.last_mark().is_some() { 2 } else { 1 };
        match attached == 3 && bytes[0] >= least && bytes == [bytes[0]; 3] {
            true => Ok(()),
            false => Err(format!("{attached} objects with {bytes:?}, said {least}")),
        }
    };
    let limits = Limits { exhaustive: 4, singles: 3, random: 4, points: 80, seed: 63 };
    let report = for_each_crash(&died, record, verify, &limits).unwrap();
    assert!(report.distinct > 20, "only {} images", report.distinct);
}
