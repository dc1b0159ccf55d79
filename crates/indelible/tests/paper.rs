//! The paper's capabilities that are not in `contract.rs`, by number, in every world.

use crate::support::{self, Ground, World, everywhere};
use indelible::{CreateOptions, ErrorKind, Plain, Pool, Relative, State, doctor, raw};
use indelible_store::medium::{Device, Fatal};
use indelible_testing::{Choice, Hook, Hooked, SimConfig, SimMedium};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The pool as another process or a power cut would find it: the bytes alone, on a medium without
/// locks. A copy of the file is refused beside the original.
fn from_outside(world: &World) -> Pool {
    let found = match world.sim() {
        Some(sim) => sim.power_cut(Choice::None).medium(),
        None => SimMedium::from_bytes(&std::fs::read(world.path()).unwrap(), SimConfig::default()),
    };
    world.options().on_device(Arc::new(found), false).unwrap()
}

// S0.5: state changes are atomic and durable at once.
#[test]
fn s0_05_a_state_is_on_the_medium_when_the_call_returns() {
    everywhere(|world| {
        let pool = world.format();
        pool.create("a", 100).unwrap();
        assert_eq!(from_outside(world).stat("a").unwrap().state, State::Detached);
        let a = pool.attach("a").unwrap();
        let stat = from_outside(world).stat("a").unwrap();
        assert!(stat.state == State::Writing && stat.needs_recovery, "{stat:?}");
        drop(a);
        assert_eq!(from_outside(world).stat("a").unwrap().state, State::Detached);
        pool.destroy("a").unwrap();
        assert_eq!(from_outside(world).stat("a").unwrap_err().kind(), ErrorKind::NotFound);
    });
}

#[test]
fn s0_09_destroyed_space_is_used_again_and_reads_as_zeros() {
    everywhere(|world| {
        let pool = world.format();
        let free = pool.info().unwrap().free;
        for round in 0..6_u8 {
            for name in ["x", "y", "z"] {
                pool.create(name, 14 << 20).unwrap();
                let mut object = pool.attach(name).unwrap();
                assert!(object.as_slice().iter().all(|byte| *byte == 0), "old bytes in round {round}");
                object.range_mut(0..1 << 20).fill(round + 1);
                object.psync().unwrap();
            }
            for name in ["y", "x", "z"] {
                pool.destroy(name).unwrap();
            }
            let info = pool.info().unwrap();
            assert_eq!(info.objects, 0);
            assert!(info.largest_free + (9 << 20) > free, "free space fell apart: {info:?}");
        }
    });
}

#[test]
fn s0_13_objects_are_found_among_many() {
    everywhere(|world| {
        let pool = world.format();
        for i in 0..500 {
            pool.create_with(&format!("object {i}"), &CreateOptions::new(1).sparse(true)).unwrap();
        }
        for i in (0..500).rev() {
            assert_eq!(pool.stat(&format!("object {i}")).unwrap().name, format!("object {i}"));
        }
        let attached = pool.attach("object 250").unwrap();
        assert_eq!(
            pool.attach("object 250").unwrap_err().kind(),
            ErrorKind::Held,
            "found in the process first"
        );
        assert_eq!(pool.stat("object 250").unwrap().address as usize, attached.as_ptr().addr());
        assert_eq!(pool.list().count(), 500);
    });
}

#[test]
fn s0_14_attaching_with_another_permission_keeps_the_address() {
    everywhere(|world| {
        let pool = world.format();
        pool.create("a", 10_000).unwrap();
        let mut seen = Vec::new();
        for permission in [raw::Permission::Write, raw::Permission::Read, raw::Permission::Write] {
            let address = raw::attach(&pool, "a", permission, b"").unwrap();
            seen.push(address);
            raw::detach(address.as_ptr()).unwrap();
        }
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
    });
}

// S0.16: threads share the attachment.
#[test]
fn s0_16_threads_of_the_process_share_an_attachment() {
    everywhere(|world| {
        let pool = world.format();
        pool.create("a", 4096).unwrap();
        let address =
            raw::attach(&pool, "a", raw::Permission::Write, b"").unwrap().as_ptr().expose_provenance();
        for thread in 1..=4_u64 {
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let a: *mut u64 = std::ptr::with_exposed_provenance_mut(address);
                    world.mark(a.cast(), 8);
                    // SAFETY: attached for writing; one thread at a time.
                    unsafe {
                        *a += thread;
                        raw::psync(a.cast()).unwrap();
                    }
                });
            });
        }
        std::thread::spawn(move || raw::detach(std::ptr::with_exposed_provenance(address)).unwrap())
            .join()
            .unwrap();
        assert_eq!(*pool.attach("a").unwrap().root::<u64>().unwrap(), 10);
    });
}

#[test]
fn s0_17_psync_is_idempotent_and_ignored_by_readers() {
    everywhere(|world| {
        let pool = world.format();
        pool.create("a", 4096).unwrap();
        let mut a = pool.attach("a").unwrap();
        *a.root_mut::<u64>().unwrap() = 3;
        for _ in 0..3 {
            a.psync().unwrap();
        }
        assert_eq!((a.psyncs(), a.lane_use().batches), (1, 1));
        drop(a);
        let a = raw::attach(&pool, "a", raw::Permission::Read, b"").unwrap();
        // SAFETY: no thread stores.
        unsafe { raw::psync(a.as_ptr()) }.unwrap();
        raw::psync_cut(a.as_ptr()).unwrap();
        raw::detach(a.as_ptr()).unwrap();
        assert_eq!(pool.stat("a").unwrap().psyncs, 1);
    });
}

// S0.21: the touched part of an object decides its cost.
#[test]
fn s0_21_a_huge_object_costs_what_is_touched_of_it() {
    const SIZE: u64 = 16 << 30;
    everywhere(|world| {
        let pool = match world.ground {
            Ground::Simulated if !support::faults_in() => {
                indelible_testing::not_tested(format_args!(
                    "without full userfaultfd the object is copied whole"
                ));
                return;
            }
            Ground::Simulated => {
                let sim = SimMedium::new(SIZE + (64 << 20), SimConfig::default());
                world.options().on_device(Arc::new(sim), true).unwrap()
            }
            _ => world.options().format(world.dir().join("huge.pmo"), SIZE + (64 << 20)).unwrap(),
        };
        pool.create_with("huge", &CreateOptions::new(SIZE).sparse(true)).unwrap();
        let mut huge = pool.attach("huge").unwrap();
        let places = [0, 5 << 30, SIZE as usize - 8];
        for place in places {
            huge.range_mut(place..place + 8).fill(7);
        }
        huge.psync().unwrap();
        let stats = huge.stats();
        assert_eq!((stats.pages_changed, stats.logged_bytes), (3, 192));
        assert!(stats.pages_compared <= 3 * 512, "{stats:?}");
        drop(huge);
        let huge = pool.attach_read("huge").unwrap();
        assert!(places.iter().all(|place| huge.as_slice()[*place..place + 8] == [7; 8]));
    });
}

#[test]
fn s0_23_relative_pointers_survive_a_move() {
    #[derive(Plain)]
    #[repr(C)]
    struct List {
        value: u64,
        next: Relative<List>,
        spare: [u64; 2],
    }
    everywhere(|world| {
        let pool = world.format();
        for name in ["a", "b"] {
            pool.create(name, 4096).unwrap();
        }
        let mut a = pool.attach("a").unwrap();
        let nodes = a.root_mut::<[List; 4]>().unwrap();
        for i in 0..4 {
            nodes[i].value = 10 + i as u64;
            let next = if i < 3 { &raw mut nodes[i + 1] } else { std::ptr::null_mut() };
            nodes[i].next.set(next);
        }
        a.psync().unwrap();
        let mut b = pool.attach("b").unwrap();
        b.as_mut_slice().copy_from_slice(a.as_slice());
        b.psync().unwrap();
        drop((a, b));
        let b = world.open().attach_read("b").unwrap();
        let mut node: *const List = b.root::<List>().unwrap();
        let mut values = Vec::new();
        while !node.is_null() {
            assert!((b.as_ptr().addr()..b.as_ptr().addr() + b.len()).contains(&node.addr()));
            // SAFETY: within b, as checked.
            let list = unsafe { &*node };
            values.push(list.value);
            node = list.next.get();
        }
        assert_eq!(values, [10, 11, 12, 13]);
    });
}

// S0.25, S0.26: D and R need nothing; W keeps the primary; C completes the psync that was cut
// short.
#[test]
fn s0_26_each_state_is_recovered_as_the_paper_says() {
    everywhere(|world| {
        let pool = world.format();
        for name in ["D", "R", "W", "C"] {
            pool.create(name, 4096).unwrap();
            let mut object = pool.attach(name).unwrap();
            *object.root_mut::<u64>().unwrap() = 1;
            object.psync().unwrap();
        }
        let reader = pool.attach_read("R").unwrap();
        let mut writer = pool.attach("W").unwrap();
        *writer.root_mut::<u64>().unwrap() = 2; // never psynced
        let mut copying = pool.attach("C").unwrap();
        *copying.root_mut::<u64>().unwrap() = 2;
        copying.psync().unwrap();
        let after = from_outside(world);
        let states = ["D", "R", "W", "C"].map(|name| after.stat(name).unwrap().state.letter());
        assert_eq!(states, ['D', 'D', 'W', 'C'], "a reader that is gone leaves nothing to do");
        drop((reader, writer, copying));
        drop(pool);
        let recovered = ["D", "R", "W", "C"].map(|name| {
            let object = after.attach(name).unwrap();
            *object.root::<u64>().unwrap()
        });
        assert_eq!(recovered, [1, 1, 1, 2]);
    });
}

#[test]
fn s0_27_the_processor_can_flush_its_caches() {
    let found = doctor(None);
    let flush = found.facilities.iter().find(|facility| facility.name == "flush instructions").unwrap();
    assert!(flush.found.contains("cl"), "clwb, clflushopt or clflush, not: {}", flush.found);
}

struct Deadly {
    left: AtomicU32,
    before: bool,
}

impl Deadly {
    fn die() -> ! {
        // SAFETY: ends this process, as a crash would.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        unreachable!("SIGKILL is not survived")
    }
}

impl Hook for Deadly {
    fn write_durable(&self, under: &dyn Device, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        let last = self.left.fetch_sub(1, Ordering::Relaxed) == 1;
        if last && self.before {
            Deadly::die();
        }
        let result = under.write_durable(offset, bytes);
        if last {
            Deadly::die();
        }
        result
    }
}

#[test]
#[ignore = "run by s0_28 as a process of its own"]
fn die_at_psync() {
    let Ok(path) = std::env::var("DIE_POOL") else { return };
    let world = std::env::var("DIE_WORLD").unwrap();
    let before = std::env::var("DIE_WHEN").unwrap() == "before";
    let options = support::options_of(&world);
    let real = options.open(path).unwrap();
    let (pool, deadly) = {
        let under = real.store().device().clone();
        let warm = options.on_device(under.clone(), false).unwrap();
        let mut a = warm.attach("a").unwrap();
        *a.root_mut::<u64>().unwrap() = 1;
        a.psync().unwrap();
        drop((a, warm));
        let deadly = Hooked::new(under, Deadly { left: AtomicU32::new(u32::MAX), before });
        (options.on_device(deadly.clone(), false).unwrap(), deadly)
    };
    let mut a = pool.attach("a").unwrap();
    deadly.left.store(1, Ordering::Relaxed);
    a.range_mut(0..4096).fill(2);
    let _ = a.psync();
    panic!("psync had to be the end");
}

// S0.28: killed before the batch is durable, and between that and the copy to the primary.
#[test]
fn s0_28_a_kill_before_persist_and_one_between_persist_and_copy() {
    everywhere(|world| {
        if world.ground == Ground::Simulated {
            return; // `crates/store/tests/crash_psync.rs` does every instant of it.
        }
        let pool = world.format();
        pool.create("a", 4096).unwrap();
        for (when, expected) in [("before", 1), ("after", 0x0202_0202_0202_0202)] {
            let status = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "paper::die_at_psync", "--ignored"])
                .env("DIE_POOL", world.path())
                .env("DIE_WORLD", format!("{:?} {:?} {}", world.ground, world.tracking, world.fault_in))
                .env("DIE_WHEN", when)
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap();
            assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "{status:?}");
            assert!(pool.stat("a").unwrap().needs_recovery);
            assert_eq!(*pool.attach_read("a").unwrap().root::<u64>().unwrap(), expected, "killed {when}");
        }
    });
}

#[derive(Plain)]
#[repr(C)]
struct Node {
    data: u64,
    next: *mut Node,
}

// S0.29: Listing 2, with plain pointers.
#[test]
fn s0_29_the_linked_list_of_the_paper() {
    everywhere(|world| {
        let values = [50_u64, 10, 40, 20, 30, 60, 5];
        let pool = world.format();
        pool.create("list", 4096).unwrap();
        for (i, data) in values.into_iter().enumerate() {
            let head =
                raw::attach(&pool, "list", raw::Permission::Write, b"").unwrap().cast::<Node>().as_ptr();
            world.mark(head.cast(), 4096);
            // SAFETY: the object is a page of nodes, the first of which is the head; no other code
            // has it.
            unsafe {
                let new_node = head.add(i + 1);
                (*new_node).data = data;
                let mut c = head;
                while !(*c).next.is_null() && (*(*c).next).data < data {
                    c = (*c).next;
                }
                (*new_node).next = (*c).next;
                (*c).next = new_node;
                raw::psync(head.cast()).unwrap();
            }
            raw::detach(head.cast()).unwrap();
        }
        drop(pool);
        let list = world.open().attach_read("list").unwrap();
        let mut found = Vec::new();
        let mut c = list.root::<Node>().unwrap().next;
        while !c.is_null() {
            // SAFETY: a node of the attached object.
            unsafe {
                found.push((*c).data);
                c = (*c).next;
            }
        }
        let mut sorted = values;
        sorted.sort_unstable();
        assert_eq!(found, sorted);
    });
}
