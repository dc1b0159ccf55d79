use crate::support::{Ground, World, everywhere};
use crate::{durable, kind, with_view, writing};
use indelible::{AttachedView, ErrorKind, Rights, SlotMemory, Tracking, View};

fn edit(world: &World, change: impl FnOnce(&mut View)) {
    let pool = world.open();
    let mut view = View::open(&pool, "v").unwrap();
    change(&mut view);
    view.psync().unwrap();
}

#[test]
fn s2_07_a_slot_that_another_process_sets_is_found_at_the_next_fault() {
    everywhere(|world| {
        let pool = with_view(world, 2, writing());
        pool.create("new", 4096).unwrap();
        let mut object = pool.attach("new").unwrap();
        *object.root_mut::<u64>().unwrap() = 9;
        object.psync().unwrap();
        drop(object);
        let view = AttachedView::attach(&pool, "v").unwrap();
        edit(world, |view| view.set(3, "new", Rights::READ).unwrap());
        assert_eq!(view.slots().len(), 2);
        let at = std::ptr::with_exposed_provenance::<u64>(pool.stat("new").unwrap().address as usize);
        // SAFETY: an object of the view, which the load brings.
        assert_eq!(unsafe { at.read_volatile() }, 9);
        assert_eq!(view.slots()[1].memory, SlotMemory::Reading);
        pool.create("newer", 4096).unwrap();
        let editor = world.open();
        let mut open = View::open(&editor, "v").unwrap();
        open.set(4, "newer", writing()).unwrap();
        assert_eq!(kind(view.get::<u64>(4)), ErrorKind::NotFound, "not psynced yet");
        open.psync().unwrap();
        assert_eq!(*view.get::<u64>(4).unwrap(), 0);
    });
}

#[test]
pub fn s2_07_a_fault_takes_nothing_away() {
    let world = World::new(Ground::File, Tracking::Auto, false);
    let pool = with_view(&world, 3, writing());
    let mut view = AttachedView::attach(&pool, "v").unwrap();
    *view.get_mut::<u64>(0).unwrap() = 1;
    edit(&world, |view| assert!(view.clear(0).unwrap() && view.clear(10).unwrap()));
    assert_eq!(*view.get::<u64>(20).unwrap(), 102);
    assert_eq!(kind(view.get::<u64>(33)), ErrorKind::NotFound);
    assert_eq!(*view.get::<u64>(0).unwrap(), 1);
    view.psync().unwrap();
    assert_eq!(view.slots().iter().map(|slot| slot.of.slot).collect::<Vec<_>>(), [0, 20]);
    view.adopt().unwrap();
    assert_eq!(view.slots().iter().map(|slot| slot.of.slot).collect::<Vec<_>>(), [20]);
    assert_eq!(kind(view.get::<u64>(0)), ErrorKind::NotFound);
    assert_eq!(durable(&world, "o0"), 1, "and others can have it");
}

#[test]
pub fn s2_06_changed_rights_and_objects_are_adopted() {
    everywhere(|world| {
        let pool = with_view(world, 3, Rights::READ);
        let mut view = AttachedView::attach(&pool, "v").unwrap();
        assert_eq!(*view.get::<u64>(0).unwrap(), 100);
        assert_eq!(*view.get::<u64>(10).unwrap(), 101);
        edit(world, |view| {
            view.set(0, "o0", writing()).unwrap();
            view.clear(20).unwrap();
            view.set(10, "o2", writing()).unwrap();
        });
        assert_eq!(kind(view.get_mut::<u64>(0)), ErrorKind::ReadOnly);
        view.adopt().unwrap();
        *view.get_mut::<u64>(0).unwrap() = 8;
        assert_eq!(*view.get::<u64>(10).unwrap(), 102);
        view.psync().unwrap();
        *view.get_mut::<u64>(0).unwrap() = 9;
        edit(world, |view| view.set(0, "o0", Rights::READ).unwrap());
        view.adopt().unwrap();
        assert_eq!(*view.get::<u64>(0).unwrap(), 8);
        assert_eq!(kind(view.get_mut::<u64>(0)), ErrorKind::ReadOnly);
        view.adopt().unwrap();
        assert_eq!(*view.get::<u64>(10).unwrap(), 102);
    });
}

#[test]
fn s2_06_rights_change_before_the_first_use_as_well() {
    everywhere(|world| {
        let pool = with_view(world, 2, Rights::READ);
        let mut view = AttachedView::attach(&pool, "v").unwrap();
        edit(world, |view| view.set(10, "o1", writing()).unwrap());
        assert_eq!(kind(view.get::<u64>(33)), ErrorKind::NotFound);
        *view.get_mut::<u64>(10).unwrap() = 1;
        edit(world, |view| view.set(0, "o0", writing()).unwrap());
        view.adopt().unwrap();
        *view.get_mut::<u64>(0).unwrap() = 1;
        view.psync().unwrap();
        drop(view);
        assert_eq!([durable(world, "o0"), durable(world, "o1")], [1, 1]);
    });
}

/// The object of an emptied slot keeps its stores, and its next psync has them, despite other
/// look-ups.
#[test]
pub fn s2_07_an_emptied_slot_goes_on_until_it_is_adopted() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = with_view(&world, 2, writing());
    let mut view = AttachedView::attach(&pool, "v").unwrap();
    for round in 1..5 {
        *view.get_mut::<u64>(0).unwrap() = round;
        edit(&world, |view| {
            (0..20).for_each(|slot| assert!(view.clear(slot).is_ok()));
            view.set(10 + round as usize, "o1", writing()).unwrap();
        });
        let _ = view.bring(10 + round as usize);
        view.psync().unwrap();
        assert!(view.is_attached(0), "round {round}");
    }
    drop(view);
    assert_eq!(durable(&world, "o0"), 4);
}

#[test]
fn a_view_that_is_destroyed_or_damaged_is_an_error_of_adopt_alone() {
    let world = World::new(Ground::File, Tracking::Auto, false);
    let pool = with_view(&world, 2, writing());
    let mut view = AttachedView::attach(&pool, "v").unwrap();
    assert_eq!(*view.get::<u64>(0).unwrap(), 100);
    let mut object = world.open().attach("v").unwrap();
    object.as_mut_slice()[0] = 0;
    object.psync().unwrap();
    drop(object);
    assert_eq!(kind(view.adopt()), ErrorKind::Unsuitable);
    world.open().destroy("v").unwrap();
    assert_eq!(kind(view.adopt()), ErrorKind::NotFound);
    *view.get_mut::<u64>(0).unwrap() = 2;
    view.psync().unwrap();
    let at = std::ptr::with_exposed_provenance::<u64>(view.slots()[1].address);
    // SAFETY: an object of the view as it was known last, which the load brings.
    assert_eq!(unsafe { at.read_volatile() }, 101);
    drop(view);
    assert_eq!(durable(&world, "o0"), 2);
}
