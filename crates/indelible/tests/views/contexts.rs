use crate::support::{Ground, World, everywhere};
use crate::{durable, kind, with_view, writing};
use indelible::{
    AttachedView, ErrorKind, Rights, RuleKind, SecurityContext, SlotMemory, State, Tracking, View,
};
use indelible_testing::Seeded;

const NONE: Option<Rights> = None;

fn memory() -> World {
    World::new(Ground::Memory, Tracking::Auto, false)
}

fn edit(world: &World, name: &str, change: impl FnOnce(&mut SecurityContext)) {
    let pool = world.open();
    let mut context = SecurityContext::open(&pool, name)
        .unwrap_or_else(|_| SecurityContext::create(&pool, name, 10).unwrap());
    change(&mut context);
    context.psync().unwrap();
}

fn states(view: &AttachedView) -> Vec<SlotMemory> {
    view.slots().iter().map(|slot| slot.memory).collect()
}

#[test]
fn s2_16_a_context_is_an_object_of_rights() {
    everywhere(|world| {
        let pool = with_view(world, 3, writing());
        let mut context = SecurityContext::create(&pool, "c", 4).unwrap();
        assert_eq!((context.name(), context.room()), ("c", 4));
        let empty = context.rules().unwrap();
        assert_eq!((empty.default, empty.rules.len()), (None, 0));
        context.set_default(Rights::READ).unwrap();
        context.allow("o0", Rights::READ).unwrap();
        context.allow("o0", writing()).unwrap();
        context.mask("o0", Rights::READ).unwrap();
        context.allow("o1", NONE).unwrap();
        assert_eq!(SecurityContext::read(&pool, "c").unwrap(), empty);
        context.psync().unwrap();
        let said = SecurityContext::read(&pool, "c").unwrap();
        assert_eq!(said, context.rules().unwrap());
        let ids = ["o0", "o1"].map(|name| pool.stat(name).unwrap().id);
        let found: Vec<_> = said.rules.iter().map(|rule| (rule.kind, rule.target, rule.rights)).collect();
        let expected = [
            (RuleKind::Capability, ids[0], Some(writing())),
            (RuleKind::Mask, ids[0], Some(Rights::READ)),
            (RuleKind::Capability, ids[1], None),
        ];
        assert_eq!((said.default, &found[..]), (Some(Rights::READ), &expected[..]));
        context.allow("o2", writing()).unwrap();
        assert_eq!(kind(context.mask("o2", NONE)), ErrorKind::BadSize);
        context.allow("o2", Rights::READ).unwrap();
        assert_eq!((context.clear("o0").unwrap(), context.clear("o0").unwrap()), (2, 0));
        context.mask("o2", NONE).unwrap();
        for rights in [Rights::WRITE, Rights::READ | Rights::EXECUTE, Rights::EXECUTE] {
            assert_eq!(kind(context.allow("o0", rights)), ErrorKind::Unsuitable);
            assert_eq!(kind(context.set_default(rights)), ErrorKind::Unsuitable);
        }
        assert_eq!(kind(context.allow("missing", writing())), ErrorKind::NotFound);
        assert_eq!(kind(SecurityContext::open(&pool, "c")), ErrorKind::Held);
        context.psync().unwrap();
        drop(context);
        pool.destroy("o2").unwrap();
        let mut context = SecurityContext::open(&pool, "c").unwrap();
        let gone = context.rules().unwrap().rules.iter().find(|rule| rule.target != ids[1]).unwrap().target;
        assert_eq!(kind(context.clear("o2")), ErrorKind::NotFound);
        let id: String = gone.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(context.clear(&format!("id:{id}")).unwrap(), 2);
    });
}

#[test]
fn s2_16_what_is_no_context_is_an_error() {
    let world = memory();
    let pool = with_view(&world, 1, writing());
    assert_eq!(kind(SecurityContext::open(&pool, "v")), ErrorKind::Unsuitable);
    assert_eq!(kind(SecurityContext::read(&pool, "o0")), ErrorKind::Unsuitable);
    assert_eq!(kind(SecurityContext::create(&pool, "o0", 1)), ErrorKind::Exists);
    assert_eq!(kind(SecurityContext::create(&pool, "c", 65_537)), ErrorKind::BadSize);
    let error = AttachedView::attach_in(&pool, "v", &["o0"]).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsuitable && error.to_string().contains("\"o0\""), "{error}");
    let error = AttachedView::attach_in(&pool, "v", &["missing"]).unwrap_err();
    assert!(error.kind() == ErrorKind::NotFound && error.to_string().contains("\"missing\""), "{error}");
    edit(&world, "c", |_| ());
    for (at, byte, expected) in [
        (0, b'X', ErrorKind::Unsuitable),
        (8, 2, ErrorKind::Version),
        (13, 0xff, ErrorKind::Damaged),
        (16, 2, ErrorKind::Damaged),
        (17, 1, ErrorKind::Damaged),
        (64, 1, ErrorKind::Damaged),
        (191, 1, ErrorKind::Damaged),
    ] {
        let mut object = pool.attach("c").unwrap();
        let before = object.as_slice()[at];
        object.as_mut_slice()[at] = byte;
        object.psync().unwrap();
        drop(object);
        assert_eq!(kind(AttachedView::attach_in(&pool, "v", &["c"])), expected, "byte {at}");
        assert_eq!(kind(SecurityContext::open(&pool, "c")), expected, "byte {at}");
        let mut object = pool.attach("c").unwrap();
        object.as_mut_slice()[at] = before;
        object.psync().unwrap();
    }
    assert!(AttachedView::attach_in(&pool, "v", &["c"]).is_ok());
}

/// FORMAT.md, section 14.
#[test]
fn the_bytes_of_a_context_are_as_format_md_says() {
    let world = memory();
    let pool = with_view(&world, 1, writing());
    edit(&world, "c", |context| {
        context.set_default(Rights::READ).unwrap();
        context.allow("o0", writing()).unwrap();
        context.mask("o0", NONE).unwrap();
    });
    let id = pool.stat("o0").unwrap().id;
    let object = pool.attach_read("c").unwrap();
    let mut expected = vec![0; 64 + 10 * 128];
    expected[..17].copy_from_slice(b"PMO-CTXT\x01\0\0\0\x0a\0\0\0\x01");
    expected[64..80].copy_from_slice(&id);
    expected[80..82].copy_from_slice(&[3, 1]);
    expected[192..208].copy_from_slice(&id);
    expected[208..210].copy_from_slice(&[0, 2]);
    assert_eq!(object.as_slice(), expected);
}

#[test]
pub fn s2_15_nothing_is_refused_before_it_is_used() {
    everywhere(|world| {
        let pool = with_view(world, 4, writing());
        edit(world, "c", |context| {
            context.allow("o0", writing()).unwrap();
            context.allow("o1", Rights::READ).unwrap();
        });
        let mut view = AttachedView::attach_in(&pool, "v", &["c"]).unwrap();
        assert_eq!(view.contexts(), ["c"]);
        let allowed: Vec<_> = view.slots().iter().map(|slot| slot.allowed).collect();
        assert_eq!(allowed, [Some(writing()), Some(Rights::READ), None, None]);
        *view.get_mut::<u64>(0).unwrap() += 1;
        assert_eq!(*view.get::<u64>(10).unwrap(), 101);
        let error = view.get_mut::<u64>(10).unwrap_err();
        assert_eq!((error.kind(), error.object_name()), (ErrorKind::Denied, Some("o1")));
        assert!(error.to_string().contains("allows stores: \"c\""), "{error}");
        let error = view.get::<u64>(20).unwrap_err();
        assert_eq!((error.kind(), error.object_name()), (ErrorKind::Denied, Some("o2")));
        assert!(error.to_string().contains("allows loads: \"c\""), "{error}");
        assert_eq!(kind(view.bring(30)), ErrorKind::Denied);
        assert_eq!(view.bring_all().unwrap(), 2);
        use SlotMemory::{Reading, Reserved, Writing};
        assert_eq!(states(&view), [Writing, Reading, Reserved, Reserved]);
        assert_eq!(pool.stat("o2").unwrap().state, State::Detached);
        assert!(view.slots()[2].refused.is_some());
        view.psync().unwrap();
        drop(view);
        assert_eq!(durable(world, "o0"), 101);
    });
}

#[test]
fn s2_15_rights_are_those_that_are_asked_for_and_allowed() {
    let world = memory();
    let pool = with_view(&world, 1, Rights::READ);
    edit(&world, "c", |context| context.set_default(writing()).unwrap());
    let mut view = AttachedView::attach_in(&pool, "v", &["c"]).unwrap();
    assert_eq!(*view.get::<u64>(0).unwrap(), 100);
    assert_eq!(kind(view.get_mut::<u64>(0)), ErrorKind::ReadOnly);
}

#[test]
pub fn s2_16_masks_limit_what_a_context_gives() {
    let world = memory();
    let pool = with_view(&world, 3, writing());
    edit(&world, "c", |context| {
        context.set_default(writing()).unwrap();
        context.mask("o0", Rights::READ).unwrap();
        context.mask("o1", NONE).unwrap();
    });
    let mut view = AttachedView::attach_in(&pool, "v", &["c"]).unwrap();
    assert_eq!(kind(view.get_mut::<u64>(0)), ErrorKind::Denied);
    assert_eq!(kind(view.get::<u64>(10)), ErrorKind::Denied);
    *view.get_mut::<u64>(20).unwrap() = 1;
    edit(&world, "other", |context| context.allow("o0", writing()).unwrap());
    drop(view);
    let mut view = AttachedView::attach_in(&pool, "v", &["c", "other"]).unwrap();
    *view.get_mut::<u64>(0).unwrap() = 1;
    assert_eq!(kind(view.get::<u64>(10)), ErrorKind::Denied);
}

/// The paper's groups and owners: a group is a context, delegated to its members' contexts.
#[test]
fn s2_16_groups_and_owners_are_contexts() {
    let world = memory();
    let pool = with_view(&world, 3, writing());
    edit(&world, "staff", |context| {
        context.allow("o0", writing()).unwrap();
        context.allow("o1", writing()).unwrap();
    });
    edit(&world, "ann", |context| {
        context.delegate("staff", writing()).unwrap();
        context.allow("o2", writing()).unwrap();
    });
    edit(&world, "bob", |context| {
        context.delegate("staff", Rights::READ).unwrap();
        context.mask("o1", NONE).unwrap();
    });
    let rights = |who: &str, object: &str| SecurityContext::rights(&pool, &[who], object).unwrap();
    let all = |who| ["o0", "o1", "o2"].map(|object| rights(who, object));
    assert_eq!(all("ann"), [Some(writing()); 3]);
    assert_eq!(all("bob"), [Some(Rights::READ), None, None]);
    edit(&world, "ann", |context| assert_eq!(context.clear("staff").unwrap(), 1));
    assert_eq!(all("ann"), [None, None, Some(writing())]);
    pool.destroy("staff").unwrap();
    assert_eq!(all("bob"), [None; 3]);
}

#[test]
fn s2_16_contexts_delegate_in_no_circle() {
    let world = memory();
    let pool = with_view(&world, 1, writing());
    for name in ["a", "b", "c"] {
        edit(&world, name, |_| ());
    }
    edit(&world, "a", |a| {
        let error = a.delegate("a", writing()).unwrap_err();
        assert!(error.kind() == ErrorKind::Unsuitable && error.to_string().contains("circle"), "{error}");
        a.delegate("b", writing()).unwrap();
        assert_eq!(kind(a.delegate("o0", writing())), ErrorKind::Unsuitable);
        assert_eq!(kind(a.delegate("missing", writing())), ErrorKind::NotFound);
    });
    edit(&world, "b", |b| b.delegate("c", writing()).unwrap());
    edit(&world, "c", |c| assert_eq!(kind(c.delegate("a", writing())), ErrorKind::Unsuitable));
    assert!(AttachedView::attach_in(&pool, "v", &["a"]).is_ok());
    let id = pool.stat("a").unwrap().id;
    let mut object = pool.attach("c").unwrap();
    object.as_mut_slice()[64..80].copy_from_slice(&id);
    object.as_mut_slice()[80..82].copy_from_slice(&[1, 3]);
    object.psync().unwrap();
    drop(object);
    for name in ["a", "b", "c"] {
        let error = AttachedView::attach_in(&pool, "v", &[name]).unwrap_err();
        assert!(error.kind() == ErrorKind::Unsuitable && error.to_string().contains("circle"), "{error}");
    }
}

#[test]
pub fn s2_16_rights_are_those_of_the_formula() {
    #[derive(Default)]
    struct Model {
        default: u8,
        capabilities: [Option<u8>; 4],
        masks: [Option<u8>; 4],
        from: Vec<(usize, u8)>,
    }
    fn gives(all: &[Model], context: usize, object: usize) -> u8 {
        let of = &all[context];
        let own = of.capabilities[object].unwrap_or(of.default);
        let given = of.from.iter().map(|(from, most)| gives(all, *from, object) & most);
        given.fold(own, |all, more| all | more) & of.masks[object].unwrap_or(7)
    }
    let world = memory();
    let pool = with_view(&world, 4, writing());
    let mut random = Seeded::new(216);
    for round in 0..12 {
        let mut all: Vec<Model> = Vec::new();
        let some = |random: &mut Seeded| [0, 1, 3][random.usize(..3)];
        for number in 0..6 {
            let mut model = Model { default: some(&mut random), ..Model::default() };
            let name = format!("r{round}c{number}");
            let mut context = SecurityContext::create(&pool, &name, 20).unwrap();
            context.set_default(Rights::from_bits(model.default)).unwrap();
            for object in 0..4 {
                let rights = some(&mut random);
                match random.usize(..4) {
                    0 => {
                        context.allow(&format!("o{object}"), Rights::from_bits(rights)).unwrap();
                        model.capabilities[object] = Some(rights);
                    }
                    1 => {
                        context.mask(&format!("o{object}"), Rights::from_bits(rights)).unwrap();
                        model.masks[object] = Some(rights);
                    }
                    _ => {}
                }
            }
            for from in 0..number {
                let rights = some(&mut random);
                if random.usize(..3) == 0 {
                    context.delegate(&format!("r{round}c{from}"), Rights::from_bits(rights)).unwrap();
                    model.from.push((from, rights));
                }
            }
            context.psync().unwrap();
            all.push(model);
        }
        let chosen: Vec<usize> = (0..6).filter(|_| random.usize(..3) > 0).collect();
        let names: Vec<String> = chosen.iter().map(|number| format!("r{round}c{number}")).collect();
        for object in 0..4 {
            let expected = chosen.iter().fold(0, |bits, context| bits | gives(&all, *context, object));
            let expected = if chosen.is_empty() { 7 } else { expected };
            let found = SecurityContext::rights(&pool, &names, &format!("o{object}")).unwrap();
            assert_eq!(found, Rights::from_bits(expected), "round {round}, object {object} in {names:?}");
        }
    }
}

#[test]
pub fn s2_16_a_right_that_is_revoked_while_in_use_goes_with_adopt() {
    everywhere(|world| {
        let pool = with_view(world, 4, writing());
        edit(world, "c", |context| context.set_default(writing()).unwrap());
        let mut view = AttachedView::attach_in(&pool, "v", &["c"]).unwrap();
        *view.get_mut::<u64>(0).unwrap() = 1;
        *view.get_mut::<u64>(10).unwrap() = 1;
        view.psync().unwrap();
        *view.get_mut::<u64>(0).unwrap() = 2;
        edit(world, "c", |context| {
            context.set_default(NONE).unwrap();
            context.allow("o1", writing()).unwrap();
        });
        assert_eq!(kind(view.get::<u64>(20)), ErrorKind::Denied);
        assert_eq!(*view.get_mut::<u64>(0).unwrap(), 2);
        view.psync().unwrap();
        *view.get_mut::<u64>(0).unwrap() = 3;
        *view.get_mut::<u64>(10).unwrap() = 3;
        view.adopt().unwrap();
        assert_eq!(kind(view.get::<u64>(0)), ErrorKind::Denied);
        assert_eq!(*view.get::<u64>(10).unwrap(), 3, "the same rights as before, and so the same memory");
        assert_eq!(pool.stat("o0").unwrap().state, State::Detached, "others may have it");
        edit(world, "c", |context| context.set_default(Rights::READ).unwrap());
        assert_eq!(*view.get::<u64>(0).unwrap(), 2);
        assert_eq!(kind(view.get_mut::<u64>(0)), ErrorKind::Denied);
        edit(world, "c", |context| context.set_default(writing()).unwrap());
        view.adopt().unwrap();
        *view.get_mut::<u64>(0).unwrap() = 4;
        view.psync().unwrap();
        drop(view);
        assert_eq!([durable(world, "o0"), durable(world, "o1")], [4, 3]);
    });
}

#[test]
pub fn s2_16_a_context_that_is_lost_while_in_use_gives_nothing() {
    let world = World::new(Ground::File, Tracking::Auto, false);
    let pool = with_view(&world, 3, writing());
    edit(&world, "c", |context| context.set_default(writing()).unwrap());
    let mut view = AttachedView::attach_in(&pool, "v", &["c"]).unwrap();
    *view.get_mut::<u64>(0).unwrap() = 1;
    let mut object = world.open().attach("c").unwrap();
    object.as_mut_slice()[16] = 9;
    object.psync().unwrap();
    drop(object);
    assert_eq!(kind(view.get::<u64>(10)), ErrorKind::Damaged);
    assert_eq!(kind(view.bring_all()), ErrorKind::Damaged);
    assert_eq!(kind(view.adopt()), ErrorKind::Damaged);
    *view.get_mut::<u64>(0).unwrap() += 1;
    view.psync().unwrap();
    world.open().destroy("c").unwrap();
    assert_eq!(kind(view.get::<u64>(10)), ErrorKind::Denied);
    assert_eq!(*view.get::<u64>(0).unwrap(), 2);
    view.adopt().unwrap();
    assert_eq!(kind(view.get::<u64>(0)), ErrorKind::Denied);
    edit(&world, "c", |context| context.set_default(writing()).unwrap());
    view.adopt().unwrap();
    assert_eq!(kind(view.get::<u64>(0)), ErrorKind::Denied);
    drop(view);
    assert_eq!(durable(&world, "o0"), 2);
}

#[test]
fn s2_16_slots_that_are_set_later_are_limited_as_well() {
    let world = memory();
    let pool = with_view(&world, 2, writing());
    pool.create("new", 4096).unwrap();
    edit(&world, "c", |context| {
        context.set_default(writing()).unwrap();
        context.allow("new", Rights::READ).unwrap();
    });
    let mut view = AttachedView::attach_in(&pool, "v", &["c"]).unwrap();
    *view.get_mut::<u64>(0).unwrap() = 5;
    let other = world.open();
    let mut editor = View::open(&other, "v").unwrap();
    editor.set_at_once(3, "new", writing()).unwrap();
    editor.psync().unwrap();
    drop(editor);
    view.adopt().unwrap();
    assert_eq!(view.slots()[1].memory, SlotMemory::Reading);
    assert_eq!(kind(view.get_mut::<u64>(3)), ErrorKind::Denied);
    assert_eq!(*view.get::<u64>(0).unwrap(), 5, "and nothing else was detached");
}
