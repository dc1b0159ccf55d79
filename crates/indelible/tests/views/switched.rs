use crate::support::{Ground, World, everywhere};
use crate::{durable, kind, with_view, writing};
use indelible::{
    CreateOptions, ErrorKind, HeapOptions, Pool, Rights, SecurityContext, SwitchedView, Tracking, View,
    leave_contexts, raw,
};
use indelible_testing::{Seeded, not_tested};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

const NONE: Option<Rights> = None;

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn memory() -> World {
    World::new(Ground::Memory, Tracking::Explicit, false)
}

type Attach = fn(&Pool, &[&str]) -> SwitchedView;

fn each_way(test: impl Fn(Attach)) {
    /// A failing test leaves its contexts: its thread's rights last as long as the process.
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            let _ = leave_contexts();
        }
    }
    let _turn = turn();
    let _leave = Leave;
    if !indelible::doctor(None)
        .facilities
        .iter()
        .any(|of| of.name == "protection keys" && of.available == Some(true))
    {
        not_tested("contexts of one thread alone: there are no protection keys here");
    }
    test(|pool, contexts| SwitchedView::attach(pool, "v", contexts).unwrap());
    test(|pool, contexts| SwitchedView::attach_by_pages(pool, "v", contexts).unwrap());
}

fn context(pool: &Pool, name: &str, rights: &[(&str, Option<Rights>)]) {
    let mut context = SecurityContext::open(pool, name)
        .unwrap_or_else(|_| SecurityContext::create(pool, name, 40).unwrap());
    for (object, rights) in rights {
        context.allow(object, *rights).unwrap();
    }
    context.psync().unwrap();
}

fn shop(world: &World, attach: Attach) -> (Pool, SwitchedView) {
    let pool = with_view(world, 3, writing());
    context(&pool, "reader", &[("o0", Rights::READ.into())]);
    context(&pool, "writer", &[("o0", writing().into()), ("o1", Rights::READ.into())]);
    let view = attach(&pool, &["reader", "writer"]);
    (pool, view)
}

fn access(at: usize) -> Option<Rights> {
    let at = std::ptr::with_exposed_provenance_mut::<libc::c_void>(at);
    let mut pipe = [0; 2];
    // SAFETY: one byte, which is stored back unchanged; the kernel refuses forbidden accesses.
    unsafe {
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        let loaded = libc::write(pipe[1], at, 1) == 1;
        let stored = loaded && libc::read(pipe[0], at, 1) == 1;
        let _ = pipe.map(|end| libc::close(end));
        loaded.then(|| if stored { writing() } else { Rights::READ })
    }
}

fn psynced(pool: &Pool, name: &str) -> u64 {
    *pool.attach_snapshot_anywhere(name, b"").unwrap().root::<u64>().unwrap()
}

fn addresses(view: &SwitchedView) -> Vec<usize> {
    view.slots().iter().map(|slot| slot.address).collect()
}

fn accesses(at: &[usize]) -> Vec<Option<Rights>> {
    at.iter().map(|at| access(*at)).collect()
}

#[test]
fn s2_16_a_thread_has_what_its_contexts_give() {
    each_way(|attach| {
        everywhere(|world| {
            let (pool, mut view) = shop(world, attach);
            if world.tracking == Tracking::Mprotect {
                // Closing pages would open them to unnoticed stores.
                assert_eq!(kind(view.bring(0)), ErrorKind::Unsuitable);
                return;
            }
            let at = addresses(&view);
            assert_eq!(accesses(&at), [NONE; 3]);
            assert_eq!(view.bring_all().unwrap(), 2);
            assert_eq!((kind(view.bring(20)), view.classes()), (ErrorKind::Denied, 2));
            assert_eq!(accesses(&at), [NONE; 3]);
            let (load, store) = (Some(Rights::READ), Some(writing()));
            view.within(&["reader"], |inside| {
                assert_eq!(accesses(&at), [load, NONE, NONE]);
                assert_eq!(*inside.get::<u64>(0).unwrap(), 100);
                assert_eq!(inside.bytes(0).unwrap().len(), 8192);
                assert_eq!(kind(inside.get::<u64>(10)), ErrorKind::Denied);
                let error = inside.bytes(10).unwrap_err().to_string();
                assert!(error.contains("loads: \"reader\"") && error.contains("o1"), "{error}");
            })
            .unwrap();
            view.within_mut(&["reader"], |inside| {
                assert_eq!(kind(inside.get_mut::<u64>(0)), ErrorKind::Denied);
                assert_eq!(kind(inside.bytes_mut(0)), ErrorKind::Denied);
            })
            .unwrap();
            view.within_mut(&["writer"], |inside| {
                assert_eq!(accesses(&at), [store, load, NONE]);
                *inside.get_mut::<u64>(0).unwrap() = 7;
                inside.bytes_mut(0).unwrap()[8] = 1;
                assert_eq!(kind(inside.get_mut::<u64>(10)), ErrorKind::Denied);
                assert_eq!(kind(inside.get::<u64>(20)), ErrorKind::Denied);
                assert_eq!(kind(inside.get::<u64>(30)), ErrorKind::NotFound);
            })
            .unwrap();
            assert_eq!(accesses(&at), [NONE; 3]);
            view.psync().unwrap();
            assert_eq!(accesses(&at), [NONE; 3]);
            assert_eq!(psynced(&pool, "o0"), 7);
            view.within_mut(&["writer"], |inside| {
                *inside.get_mut::<u64>(0).unwrap() = 8;
                inside.psync().unwrap();
                assert_eq!(access(at[0]), store);
                *inside.get_mut::<u64>(0).unwrap() = 9;
            })
            .unwrap();
            view.detach();
            assert_eq!(accesses(&at), [NONE; 3]);
            assert_eq!(durable(world, "o0"), 8);
        });
    });
}

#[test]
pub fn s2_16_a_thread_may_be_within_several_contexts() {
    each_way(|attach| {
        let world = memory();
        let (_pool, view) = shop(&world, attach);
        view.bring_all().unwrap();
        let at = addresses(&view);
        let (load, store) = (Some(Rights::READ), Some(writing()));
        let both = view.enter(&["reader", "writer"]).unwrap();
        assert_eq!(accesses(&at), [store, load, NONE]);
        drop(both);
        let first = view.enter(&["reader"]).unwrap();
        assert_eq!(accesses(&at), [load, NONE, NONE]);
        let second = view.enter(&["writer"]).unwrap();
        assert_eq!(accesses(&at), [store, load, NONE]);
        // A nested context takes nothing away: references of the outer one stay valid.
        let third = view.enter(&["reader"]).unwrap();
        assert_eq!(accesses(&at), [store, load, NONE]);
        drop(third);
        drop(second);
        assert_eq!(accesses(&at), [load, NONE, NONE]);
        drop(first);
        assert_eq!(accesses(&at), [NONE; 3]);
        let none: [&str; 0] = [];
        view.within(&none, |inside| assert_eq!(kind(inside.get::<u64>(0)), ErrorKind::Denied)).unwrap();
        assert_eq!(kind(view.enter(&["clerk"])), ErrorKind::NotFound);
        assert_eq!(kind(SwitchedView::attach(view.pool(), "v", &none)), ErrorKind::Unsuitable);
        std::mem::forget(view.enter(&["writer"]).unwrap());
        assert_eq!(accesses(&at), [store, load, NONE]);
        leave_contexts().unwrap();
        assert_eq!(accesses(&at), [NONE; 3]);
    });
}

#[test]
pub fn s2_16_guards_are_dropped_in_any_order() {
    each_way(|attach| {
        let world = memory();
        let (_pool, view) = shop(&world, attach);
        view.bring_all().unwrap();
        let at = addresses(&view)[0];
        for (first, second) in [("reader", "writer"), ("writer", "reader"), ("writer", "writer")] {
            for keep_first in [true, false] {
                let guards = (view.enter(&[first]).unwrap(), view.enter(&[second]).unwrap());
                let (dropped, kept, name) = match keep_first {
                    true => (guards.1, guards.0, first),
                    false => (guards.0, guards.1, second),
                };
                drop(dropped);
                let left = if name == "writer" { writing() } else { Rights::READ };
                assert_eq!(access(at), Some(left), "{first}, {second}: {name} is left");
                drop(kept);
                assert_eq!(access(at), NONE, "{first}, {second}: none is left");
                std::thread::scope(|scope| {
                    scope.spawn(|| assert_eq!(access(at), NONE, "another thread"));
                });
            }
        }
        let old = view.enter(&["writer"]).unwrap();
        leave_contexts().unwrap();
        let new = view.enter(&["reader"]).unwrap();
        drop(old);
        assert_eq!(access(at), Some(Rights::READ));
        drop(new);
        assert_eq!(access(at), NONE);
    });
}

#[test]
pub fn s2_16_guards_at_random_give_what_is_left() {
    each_way(|attach| {
        let world = memory();
        let (_pool, view) = shop(&world, attach);
        view.bring_all().unwrap();
        let at = addresses(&view)[0];
        let mut random = Seeded::new(0x6752);
        let mut guards = Vec::new();
        for step in 0..400 {
            let full = guards.len() == 6;
            if !guards.is_empty() && (full || random.bool()) {
                drop(guards.swap_remove(random.usize(..guards.len())));
            } else {
                let (name, rights) = [("reader", Rights::READ), ("writer", writing())][step % 2];
                guards.push((view.enter(&[name]).unwrap(), rights));
            }
            let all = guards.iter().map(|(_, rights)| *rights).reduce(|all, rights| all | rights);
            assert_eq!(access(at), all, "step {step}");
        }
        guards.clear();
        assert_eq!(access(at), NONE);
    });
}

#[test]
fn s2_16_other_threads_have_nothing_of_it() {
    each_way(|attach| {
        let world = memory();
        let (_pool, view) = shop(&world, attach);
        view.bring_all().unwrap();
        let at = addresses(&view);
        let (ask, asked) = mpsc::channel::<()>();
        let (answer, answered) = mpsc::channel();
        let seen = at.clone();
        let other =
            std::thread::spawn(move || asked.iter().for_each(|()| answer.send(accesses(&seen)).unwrap()));
        let inside = view.enter(&["writer"]).unwrap();
        let all = [Some(writing()), Some(Rights::READ), NONE];
        ask.send(()).unwrap();
        let others = answered.recv().unwrap();
        // Without keys all threads have the rights meanwhile.
        assert_eq!(others, if view.is_by_thread() { [NONE; 3] } else { all });
        let started = std::thread::scope(|scope| {
            let at = &at;
            let started = scope.spawn(move || {
                let inherited = accesses(at);
                leave_contexts().unwrap();
                (inherited, accesses(at))
            });
            started.join().unwrap()
        });
        assert_eq!(started.0, all);
        if view.is_by_thread() {
            assert_eq!(started.1, [NONE; 3]);
        }
        drop(inside);
        ask.send(()).unwrap();
        assert_eq!(answered.recv().unwrap(), [NONE; 3]);
        drop(ask);
        other.join().unwrap();
    });
}

#[test]
pub fn s2_16_classes_are_as_each_context_says() {
    each_way(|attach| {
        let mut random = Seeded::new(2160);
        for _ in 0..8 {
            let world = memory();
            let pool = with_view(&world, 6, writing());
            let all = [NONE, Some(Rights::READ), Some(writing())];
            let names = ["a", "b", "c"];
            let mut rights = [[NONE; 6]; 3];
            for (name, rights) in names.iter().zip(&mut rights) {
                for (number, right) in rights.iter_mut().enumerate() {
                    *right = all[random.usize(..3)];
                    context(&pool, name, &[(&format!("o{number}"), *right)]);
                }
            }
            let view = attach(&pool, &names);
            view.bring_all().unwrap();
            let at = addresses(&view);
            let bits = |right: Option<Rights>| all.iter().position(|known| *known == right).unwrap();
            for set in 0..8_usize {
                let within: Vec<usize> = (0..3).filter(|number| set >> number & 1 == 1).collect();
                let entered: Vec<&str> = within.iter().map(|number| names[*number]).collect();
                let _inside = view.enter(&entered).unwrap();
                for (object, at) in at.iter().enumerate() {
                    let given = within.iter().map(|number| bits(rights[*number][object])).max();
                    assert_eq!(bits(access(*at)), given.unwrap_or(0), "object {object} in {entered:?}");
                }
            }
            let mut vectors: Vec<_> =
                (0..6).map(|object| rights.map(|rights| bits(rights[object]))).collect();
            vectors.retain(|vector| vector.iter().any(|bits| *bits > 0));
            vectors.sort_unstable();
            vectors.dedup();
            assert_eq!(view.classes(), vectors.len());
        }
    });
}

#[test]
fn s2_16_more_classes_than_there_are_keys_are_an_error() {
    each_way(|attach| {
        let world = memory();
        let pool = with_view(&world, 18, writing());
        let all = [NONE, Some(Rights::READ), Some(writing())];
        for (place, name) in ["a", "b", "c"].iter().enumerate() {
            let digit = |object: usize| (object + 1) / 3_usize.pow(place as u32) % 3;
            let rights: Vec<_> = (0..18).map(|object| (format!("o{object}"), all[digit(object)])).collect();
            let rights: Vec<_> = rights.iter().map(|(name, rights)| (name.as_str(), *rights)).collect();
            context(&pool, name, &rights);
        }
        let mut view = attach(&pool, &["a", "b", "c"]);
        let there = view.bring_all().unwrap();
        assert!(there == view.classes() && (10..=15).contains(&there), "{there} classes");
        let refused: Vec<_> = view.slots().into_iter().filter(|slot| slot.refused.is_some()).collect();
        assert_eq!(refused.len(), 18 - there);
        assert!(refused.iter().all(|slot| slot.refused.as_ref().unwrap().kind() == ErrorKind::NoRoom));
        let said = view.bring(refused[0].of.slot).unwrap_err().to_string();
        assert!(said.contains("protection key") && said.contains(&refused[0].name), "{said}");
        assert_eq!(access(refused[0].address), NONE);
        // Objects with equal rights share a class, and keys suffice.
        for name in ["b", "c"] {
            let same: Vec<_> = (0..18).map(|object| (format!("o{object}"), NONE)).collect();
            let same: Vec<_> = same.iter().map(|(name, rights)| (name.as_str(), *rights)).collect();
            context(&pool, name, &same);
        }
        view.adopt().unwrap();
        assert_eq!((view.bring_all().unwrap(), view.classes()), (12, 2));
        let _inside = view.enter(&["a"]).unwrap();
        let with_digit = |digit: usize| (0..18).filter(|object| (object + 1) % 3 == digit).count();
        let given = accesses(&addresses(&view));
        assert_eq!(given.iter().filter(|given| **given == Some(Rights::READ)).count(), with_digit(1));
        assert_eq!(given.iter().filter(|given| **given == Some(writing())).count(), with_digit(2));
    });
}

#[test]
pub fn s2_16_pages_that_come_later_are_of_the_class() {
    each_way(|attach| {
        let world = memory();
        let (_pool, mut view) = shop(&world, attach);
        let base = view.bring(0).unwrap();
        let at = base.addr().get();
        let inside = view.enter(&["writer"]).unwrap();
        // SAFETY: stored to and grown by this thread alone.
        unsafe {
            base.as_ptr().cast::<u64>().write(5);
            raw::grow(base.as_ptr(), 65_536).unwrap();
        }
        assert_eq!([at, at + 8192, at + 61_440].map(access), [Some(writing()); 3]);
        drop(inside);
        assert_eq!([at, at + 8192, at + 61_440].map(access), [NONE; 3]);
        let read = view.enter(&["reader"]).unwrap();
        assert_eq!([at, at + 8192, at + 61_440].map(access), [Some(Rights::READ); 3]);
        // SAFETY: as above. The call has the rights that it needs.
        unsafe { raw::revert(base.as_ptr()).unwrap() };
        assert_eq!([at, at + 8192, at + 61_440].map(access), [Some(Rights::READ); 3]);
        drop(read);
        assert_eq!([at, at + 8192, at + 61_440].map(access), [NONE; 3]);
        view.psync().unwrap();
    });
}

#[test]
pub fn s2_16_a_heap_that_grows_stays_of_its_class() {
    each_way(|attach| {
        let world = memory();
        let (pool, view) = shop(&world, attach);
        drop(view);
        pool.create_with("heap", &CreateOptions::new(64 << 10).reach(4 << 20)).unwrap();
        let mut edit = View::open(&pool, "v").unwrap();
        edit.set(40, "heap", writing()).unwrap();
        edit.psync().unwrap();
        context(&pool, "writer", &[("heap", writing().into())]);
        let mut view = attach(&pool, &["reader", "writer"]);
        let base = view.bring(40).unwrap().as_ptr();
        let inside = view.enter(&["writer"]).unwrap();
        // SAFETY: this thread alone uses the heap.
        let block = unsafe {
            raw::format_heap(base, HeapOptions::new().grow(true)).unwrap();
            let block = raw::malloc(base, 1 << 20).unwrap();
            block.as_ptr().write_bytes(3, 1 << 20);
            block.addr().get()
        };
        assert!(block + (1 << 20) > base.addr() + (64 << 10), "the heap has not grown");
        let last = block + (1 << 20) - 1;
        assert_eq!([base.addr(), block, last].map(access), [Some(writing()); 3]);
        drop(inside);
        assert_eq!([base.addr(), block, last].map(access), [NONE; 3]);
        view.psync().unwrap();
    });
}

#[test]
fn s2_16_changed_rights_come_with_adopt() {
    each_way(|attach| {
        let world = memory();
        let (pool, mut view) = shop(&world, attach);
        view.bring_all().unwrap();
        let at = addresses(&view);
        view.within_mut(&["writer"], |inside| *inside.get_mut::<u64>(0).unwrap() = 6).unwrap();
        context(&pool, "reader", &[("o0", writing().into())]);
        context(&pool, "writer", &[("o0", Rights::READ.into())]);
        let inside = view.enter(&["writer"]).unwrap();
        assert_eq!(access(at[0]), Some(writing()));
        drop(inside);
        view.adopt().unwrap();
        view.within(&["writer"], |inside| {
            assert_eq!(access(at[0]), Some(Rights::READ));
            assert_eq!(*inside.get::<u64>(0).unwrap(), 6);
        })
        .unwrap();
        view.within(&["reader"], |_| assert_eq!(access(at[0]), Some(writing()))).unwrap();
        view.psync().unwrap();
        assert_eq!(psynced(&pool, "o0"), 6);
        view.within_mut(&["reader"], |inside| *inside.get_mut::<u64>(0).unwrap() = 66).unwrap();
        context(&pool, "reader", &[("o0", Rights::READ.into())]);
        view.adopt().unwrap();
        view.within(&["reader", "writer"], |inside| {
            assert_eq!(*inside.get::<u64>(0).unwrap(), 6);
            assert_eq!(access(at[0]), Some(Rights::READ));
        })
        .unwrap();
        for name in ["reader", "writer"] {
            context(&pool, name, &[("o0", NONE)]);
        }
        view.adopt().unwrap();
        view.within(&["reader", "writer"], |inside| {
            assert_eq!(kind(inside.get::<u64>(0)), ErrorKind::Denied);
            assert_eq!(access(at[0]), NONE);
        })
        .unwrap();
    });
}

#[test]
fn s2_16_an_object_that_is_new_needs_a_class() {
    each_way(|attach| {
        let world = memory();
        let (pool, mut view) = shop(&world, attach);
        pool.create("new", 4096).unwrap();
        pool.create("newer", 4096).unwrap();
        let mut edit = View::open(&pool, "v").unwrap();
        edit.set(50, "new", writing()).unwrap();
        edit.set(60, "newer", writing()).unwrap();
        edit.psync().unwrap();
        context(&pool, "reader", &[("new", Rights::READ.into()), ("newer", writing().into())]);
        context(&pool, "writer", &[("new", writing().into())]);
        view.within_mut(&["writer"], |inside| {
            *inside.get_mut::<u64>(50).unwrap() = 1;
            let refused = inside.get::<u64>(60).unwrap_err();
            assert!([ErrorKind::Busy, ErrorKind::Denied].contains(&refused.kind()), "{refused}");
        })
        .unwrap();
        view.within(&["reader"], |inside| {
            assert_eq!(*inside.get::<u64>(50).unwrap(), 1);
            let refused = inside.get::<u64>(60).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
        })
        .unwrap();
        view.adopt().unwrap();
        view.within_mut(&["reader"], |inside| {
            assert_eq!(*inside.get::<u64>(50).unwrap(), 1);
            *inside.get_mut::<u64>(60).unwrap() = 2;
            inside.psync().unwrap();
        })
        .unwrap();
        drop(view);
        assert_eq!((durable(&world, "new"), durable(&world, "newer")), (1, 2));
    });
}

#[test]
fn s2_16_an_object_that_is_read_elsewhere_is_not_closed() {
    each_way(|attach| {
        let world = memory();
        let pool = with_view(&world, 2, Rights::READ);
        context(&pool, "c", &[("o0", Rights::READ.into()), ("o1", Rights::READ.into())]);
        let read = pool.attach_read("o0").unwrap();
        let address = raw::attach(&pool, "o1", raw::Permission::Read, b"").unwrap();
        let view = attach(&pool, &["c"]);
        assert_eq!(
            (kind(view.bring(0)), kind(view.bring(10))),
            (ErrorKind::AddressTaken, ErrorKind::AddressTaken)
        );
        assert_eq!(*read.root::<u64>().unwrap(), 100);
        drop(read);
        raw::detach(address.as_ptr()).unwrap();
        let view = attach(&pool, &["c"]);
        view.bring(0).unwrap();
        view.bring(10).unwrap();
        assert_eq!(accesses(&addresses(&view)), [NONE; 2]);
        assert_eq!(kind(pool.attach_read("o0")), ErrorKind::Held);
        assert_eq!(kind(raw::attach(&pool, "o1", raw::Permission::Read, b"")), ErrorKind::Held);
        drop(view);
        assert_eq!(*pool.attach_read("o0").unwrap().root::<u64>().unwrap(), 100);
    });
}
