use crate::support::{Ground, World, everywhere};
use crate::{kind, with_view, writing};
use indelible::{ErrorKind, Rights, Tracking, View};
use indelible_testing::OpKind;

#[test]
fn s2_06_a_view_is_an_object_of_slots() {
    everywhere(|world| {
        let pool = with_view(world, 2, writing());
        let mut view = View::open(&pool, "v").unwrap();
        assert_eq!((view.name(), view.slots()), ("v", 200));
        let set = view.list().unwrap();
        let ids = ["o0", "o1"].map(|name| pool.stat(name).unwrap().id);
        assert_eq!(
            set.iter().map(|slot| (slot.slot, slot.target)).collect::<Vec<_>>(),
            [(0, ids[0]), (10, ids[1])]
        );
        assert!(set.iter().all(|slot| slot.rights == writing() && !slot.at_once));
        assert!(view.clear(10).unwrap());
        assert!(!view.clear(10).unwrap());
        view.set_at_once(199, "o1", Rights::READ).unwrap();
        assert_eq!(View::read(&pool, "v").unwrap(), set);
        view.psync().unwrap();
        let changed = View::read(&pool, "v").unwrap();
        assert_eq!(changed, view.list().unwrap());
        assert_eq!(changed.iter().map(|slot| slot.slot).collect::<Vec<_>>(), [0, 199]);
        assert_eq!((changed[1].rights, changed[1].at_once), (Rights::READ, true));
        assert_eq!(kind(View::open(&pool, "v")), ErrorKind::Held);
        drop(view);
        assert_eq!(View::read(&world.open(), "v").unwrap(), changed);
    });
}

#[test]
fn s2_06_a_slot_takes_what_it_can_have() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = with_view(&world, 2, writing());
    let mut view = View::open(&pool, "v").unwrap();
    let before = view.list().unwrap();
    assert_eq!(kind(view.set(5, "missing", Rights::READ)), ErrorKind::NotFound);
    let error = view.set(5, "o1", Rights::READ).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddressTaken);
    assert!(error.to_string().contains("slots 10 and 5"), "{error}");
    assert_eq!(kind(view.set(200, "o1", Rights::READ)), ErrorKind::BadSize);
    assert_eq!(kind(view.clear(200)), ErrorKind::BadSize);
    for rights in [Rights::WRITE, Rights::READ | Rights::EXECUTE] {
        assert_eq!(kind(view.set(10, "o1", rights)), ErrorKind::Unsuitable);
    }
    assert_eq!(view.list().unwrap(), before, "nothing changed");
    view.set(10, "o1", Rights::READ).unwrap();
    view.clear(10).unwrap();
    view.set(5, "o1", Rights::READ).unwrap();
    assert_eq!(kind(View::create(&pool, "w", 65_537)), ErrorKind::BadSize);
    assert_eq!(kind(View::create(&pool, "o0", 1)), ErrorKind::Exists);
    assert_eq!(kind(View::open(&pool, "o0")), ErrorKind::Unsuitable);
    assert_eq!(kind(View::read(&pool, "o0")), ErrorKind::Unsuitable);
    assert_eq!(kind(View::read(&pool, "missing")), ErrorKind::NotFound);
}

fn reads<R>(world: &World, call: impl FnOnce() -> R) -> u64 {
    let sim = world.sim().unwrap();
    let before = sim.count(OpKind::Read);
    call();
    sim.count(OpKind::Read) - before
}

#[test]
fn setting_a_slot_looks_at_its_object_alone() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let pool = with_view(&world, 15, writing());
    pool.create("more", 4096).unwrap();
    let mut view = View::open(&pool, "v").unwrap();
    view.set(0, "o0", Rights::READ).unwrap();
    let stat = reads(&world, || pool.stat("more").unwrap());
    let set = reads(&world, || view.set(199, "more", Rights::READ).unwrap());
    assert!(set <= 2 * stat + 2, "{set} reads to set a slot, {stat} to find its object");
}

#[test]
fn slots_agree_with_a_model() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = with_view(&world, 6, writing());
    for number in 0..6 {
        let (from, to) = (format!("o{number}"), format!("c{number}"));
        pool.snapshot(&from, &to, b"").unwrap();
    }
    let names: Vec<String> =
        ["o", "c"].iter().flat_map(|kind| (0..6).map(move |number| format!("{kind}{number}"))).collect();
    let mut rng = indelible_testing::Seeded::new(0x51075);
    let mut view = View::open(&pool, "v").unwrap();
    let mut model: std::collections::BTreeMap<usize, String> =
        (0..6).map(|number| (10 * number, format!("o{number}"))).collect();
    for step in 0..2000 {
        let (slot, name) = (rng.usize(..12) * 5, &names[rng.usize(..names.len())]);
        match rng.usize(..10) {
            0 => {
                let set = view.list().unwrap().iter().any(|set| set.slot == slot);
                model.remove(&slot);
                assert_eq!(view.clear(slot).unwrap(), set, "step {step}");
            }
            1 => {
                let copy = format!("c{}", rng.usize(..6));
                pool.destroy(&copy).unwrap();
                model.retain(|_, name| *name != copy);
                pool.snapshot(&copy.replace('c', "o"), &copy, b"").unwrap();
            }
            _ => {
                let free = model.iter().all(|(other, at)| *other == slot || at[1..] != name[1..]);
                let set = view.set(slot, name, Rights::READ);
                assert_eq!(set.is_ok(), free, "step {step}: {name} into {slot}, {model:?}: {set:?}");
                if free {
                    model.insert(slot, name.clone());
                }
            }
        }
        if step % 100 == 0 {
            view.psync().unwrap();
            drop(view);
            view = View::open(&pool, "v").unwrap();
        }
    }
}

/// A copy of a view is a copy of an object (S2.6: create, copy).
#[test]
fn s2_06_a_copy_of_a_view_goes_its_own_way() {
    let world = World::new(Ground::File, Tracking::Auto, false);
    let pool = with_view(&world, 2, writing());
    pool.create_from("v", "copy", b"", &indelible::CreateOptions::new(0)).unwrap();
    let mut copy = View::open(&pool, "copy").unwrap();
    assert_eq!(copy.list().unwrap(), View::read(&pool, "v").unwrap());
    copy.clear(0).unwrap();
    copy.psync().unwrap();
    assert_eq!((copy.list().unwrap().len(), View::read(&pool, "v").unwrap().len()), (1, 2));
}

/// FORMAT.md, section 12.
#[test]
fn the_bytes_of_a_view_are_as_format_md_says() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = with_view(&world, 2, writing());
    let mut view = View::open(&pool, "v").unwrap();
    view.set_at_once(10, "o1", Rights::READ).unwrap();
    view.psync().unwrap();
    drop(view);
    let ids = ["o0", "o1"].map(|name| pool.stat(name).unwrap().id);
    let object = pool.attach_read("v").unwrap();
    let mut expected = vec![0; 64 + 200 * 32];
    expected[..16].copy_from_slice(b"PMO-VIEW\x01\0\0\0\xc8\0\0\0");
    expected[64..80].copy_from_slice(&ids[0]);
    expected[80] = 3;
    expected[64 + 320..80 + 320].copy_from_slice(&ids[1]);
    expected[80 + 320..82 + 320].copy_from_slice(&[1, 1]);
    assert_eq!(object.as_slice(), expected);
}

#[test]
fn a_damaged_view_is_an_error_of_the_attach() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = with_view(&world, 1, writing());
    for (at, byte, expected) in [
        (0, b'X', ErrorKind::Unsuitable),
        (8, 2, ErrorKind::Version),
        (13, 0xff, ErrorKind::Damaged),
        (80, 9, ErrorKind::Damaged),
        (81, 2, ErrorKind::Damaged),
        (95, 1, ErrorKind::Damaged),
    ] {
        let mut object = pool.attach("v").unwrap();
        let before = object.as_slice()[at];
        object.as_mut_slice()[at] = byte;
        object.psync().unwrap();
        drop(object);
        assert_eq!(kind(indelible::AttachedView::attach(&pool, "v")), expected, "byte {at}");
        assert_eq!(kind(View::open(&pool, "v")), expected, "byte {at}");
        let mut object = pool.attach("v").unwrap();
        object.as_mut_slice()[at] = before;
        object.psync().unwrap();
    }
    assert_eq!(View::read(&pool, "v").unwrap().len(), 1);
}

#[test]
fn slots_that_overlap_are_an_error_of_the_second() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = with_view(&world, 2, writing());
    let mut object = pool.attach("v").unwrap();
    let first = object.as_slice()[64..96].to_vec();
    object.as_mut_slice()[96..128].copy_from_slice(&first);
    object.psync().unwrap();
    drop(object);
    let view = indelible::AttachedView::attach(&pool, "v").unwrap();
    assert_eq!(*view.get::<u64>(0).unwrap(), 100);
    assert!(view.get::<u64>(1).is_err());
    assert_eq!(*view.get::<u64>(10).unwrap(), 101);
}
