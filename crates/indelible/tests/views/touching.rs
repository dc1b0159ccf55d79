use crate::support::{Ground, World, everywhere};
use crate::{durable, hold, kind, with_view, writing};
use indelible::{AttachedView, CreateOptions, ErrorKind, Rights, SlotMemory, State, Tracking, View};
use indelible_store::table::Key;

fn memory(view: &AttachedView) -> Vec<SlotMemory> {
    view.slots().iter().map(|slot| slot.memory).collect()
}

fn load(address: usize) -> u64 {
    // SAFETY: the addresses of an object of an attached view, which the load brings.
    unsafe { std::ptr::with_exposed_provenance::<u64>(address).read_volatile() }
}

#[test]
fn s2_07_attaching_a_view_attaches_no_object() {
    everywhere(|world| {
        let pool = with_view(world, 3, writing());
        let view = AttachedView::attach(&pool, "v").unwrap();
        assert_eq!(memory(&view), [SlotMemory::Reserved; 3]);
        for number in 0..3 {
            let stat = pool.stat(&format!("o{number}")).unwrap();
            assert_eq!((stat.state, stat.holder), (State::Detached, None));
            assert_eq!(view.slots()[number].address as u64, stat.address, "objects keep their addresses");
        }
        let second = world.open();
        assert!(second.attach_read("v").is_ok());
    });
}

#[test]
pub fn s2_08_the_first_touch_maps_an_object() {
    everywhere(|world| {
        let pool = with_view(world, 3, writing());
        let mut view = AttachedView::attach(&pool, "v").unwrap();
        let addresses: Vec<usize> = view.slots().iter().map(|slot| slot.address).collect();
        assert_eq!(load(addresses[0]), 100);
        assert_eq!(memory(&view), [SlotMemory::Writing, SlotMemory::Reserved, SlotMemory::Reserved]);
        let at = std::ptr::with_exposed_provenance_mut::<u64>(addresses[1] + 4096);
        // SAFETY: as for `load`; there are no references to it.
        unsafe { at.write_volatile(7) };
        world.mark(at.cast(), 8);
        assert_eq!(view.bring(20).unwrap().addr().get(), addresses[2]);
        assert_eq!(memory(&view), [SlotMemory::Writing; 3]);
        *view.get_mut::<u64>(20).unwrap() = 5;
        assert_eq!(view.bytes(10).unwrap()[4096], 7);
        view.psync().unwrap();
        view.bytes_mut(20).unwrap()[0] = 6;
        drop(view);
        assert_eq!([durable(world, "o0"), durable(world, "o1"), durable(world, "o2")], [100, 101, 5]);
        assert_eq!(world.open().attach_read("o1").unwrap().as_slice()[4096], 7);
    });
}

#[test]
fn s2_08_all_threads_wait_for_the_same_object() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = with_view(&world, 8, writing());
    for _ in 0..10 {
        let view = AttachedView::attach(&pool, "v").unwrap();
        let addresses: Vec<usize> = view.slots().iter().map(|slot| slot.address).collect();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let addresses = &addresses;
                scope.spawn(move || {
                    for turn in 0..8 {
                        let number = (turn + 3 * thread) % 8;
                        assert_eq!(load(addresses[number]), 100 + number as u64);
                    }
                });
            }
        });
        assert_eq!(memory(&view), [SlotMemory::Writing; 8]);
    }
}

#[test]
pub fn s2_15_a_slot_has_the_rights_that_it_asks_for() {
    everywhere(|world| {
        let pool = with_view(world, 2, Rights::READ);
        let mut view = AttachedView::attach(&pool, "v").unwrap();
        assert_eq!(load(view.slots()[0].address), 100);
        assert_eq!(memory(&view), [SlotMemory::Reading, SlotMemory::Reserved]);
        let error = view.get_mut::<u64>(0).unwrap_err();
        assert_eq!((error.kind(), error.object_name()), (ErrorKind::ReadOnly, Some("o0")));
        assert_eq!(kind(view.bytes_mut(10)), ErrorKind::ReadOnly);
        assert!(world.open().store().attach_reader("o0", Key(b"")).is_ok());
        view.psync().unwrap();
    });
}

#[test]
fn s2_15_a_request_for_stores_is_no_reason_to_refuse_loads() {
    let world = World::new(Ground::File, Tracking::Auto, false);
    let pool = with_view(&world, 1, writing());
    for (name, options) in [
        ("fixed", CreateOptions::new(4096).read_only(true)),
        ("locked", CreateOptions::new(4096).write_key(b"key")),
    ] {
        pool.create_with(name, &options).unwrap();
    }
    let mut editor = View::open(&pool, "v").unwrap();
    editor.set(1, "fixed", writing()).unwrap();
    editor.set_at_once(2, "locked", writing()).unwrap();
    editor.psync().unwrap();
    drop(editor);
    let mut view = AttachedView::attach(&pool, "v").unwrap();
    assert_eq!(memory(&view), [SlotMemory::Reserved, SlotMemory::Reserved, SlotMemory::Reading]);
    assert_eq!((*view.get::<u64>(1).unwrap(), *view.get::<u64>(2).unwrap()), (0, 0));
    for slot in [1, 2] {
        assert_eq!(kind(view.get_mut::<u64>(slot)), ErrorKind::ReadOnly);
    }
    *view.get_mut::<u64>(0).unwrap() += 1;
    view.psync().unwrap();
}

#[test]
fn objects_that_cannot_be_had_are_errors_of_their_use() {
    everywhere(|world| {
        let pool = with_view(world, 3, writing());
        let held = hold(world, "o1");
        world.open().destroy("o2").unwrap();
        let view = AttachedView::attach(&pool, "v").unwrap();
        assert_eq!(memory(&view), [SlotMemory::Reserved, SlotMemory::Reserved, SlotMemory::Absent]);
        for _ in 0..2 {
            let error = view.get::<u64>(10).unwrap_err();
            assert_eq!((error.kind(), error.object_name().is_some()), (ErrorKind::Held, true), "{error}");
            assert_eq!(kind(view.get::<u64>(20)), ErrorKind::NotFound);
            assert_eq!(kind(view.get::<u64>(7)), ErrorKind::NotFound, "an empty slot");
        }
        assert!(view.slots()[1].refused.is_some());
        assert_eq!(*view.get::<u64>(0).unwrap(), 100);
        drop(held);
        assert_eq!(*view.get::<u64>(10).unwrap(), 101);
        assert_eq!(load(view.slots()[1].address), 101);
        assert!(view.slots()[1].refused.is_none());
    });
}

#[test]
fn values_fit_into_their_objects() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = with_view(&world, 1, writing());
    let mut view = AttachedView::attach(&pool, "v").unwrap();
    assert_eq!(view.bytes(0).unwrap().len(), 8192);
    assert!(view.get::<[u64; 1024]>(0).is_ok());
    assert_eq!(kind(view.get::<[u64; 1025]>(0)), ErrorKind::BadSize);
    assert_eq!(kind(view.get_mut::<[u64; 1025]>(0)), ErrorKind::BadSize);
}

/// Safe code has references into a view's objects: nothing else may unmap them.
#[test]
fn an_object_of_a_view_is_detached_by_the_view_alone() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    for rights in [Rights::READ, writing()] {
        let pool = with_view(&world, 1, rights);
        let view = AttachedView::attach(&pool, "v").unwrap();
        let value = view.get::<u64>(0).unwrap();
        let address: *const u8 = std::ptr::from_ref(value).cast();
        assert_eq!(kind(indelible::raw::detach(address)), ErrorKind::Unsuitable);
        if rights == Rights::READ {
            indelible::raw::attach(&pool, "o0", indelible::raw::Permission::Read, b"").unwrap();
            indelible::raw::detach(address).unwrap();
            assert_eq!(kind(indelible::raw::detach(address)), ErrorKind::Unsuitable);
        }
        assert_eq!(*value, 100);
        view.detach();
        assert_eq!(kind(indelible::raw::detach(address)), ErrorKind::NotAttached);
        assert_eq!(pool.stat("o0").unwrap().state, State::Detached);
        drop(pool);
        std::fs::remove_file(world.path()).unwrap();
    }
}

#[test]
fn system_calls_on_objects_that_were_not_used_fail() {
    use std::io::Write;
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = with_view(&world, 1, writing());
    let view = AttachedView::attach(&pool, "v").unwrap();
    let address = view.slots()[0].address;
    let mut file = tempfile::tempfile().unwrap();
    let mut write = || {
        // SAFETY: bytes that the kernel alone reads.
        file.write(unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(address), 8) })
    };
    assert_eq!(write().unwrap_err().raw_os_error(), Some(libc::EFAULT));
    view.bring(0).unwrap();
    assert_eq!(write().unwrap(), 8);
}
