use crate::support::{Ground, World, everywhere};
use indelible::collections::{PMutex, PString, PVec};
use indelible::{CreateOptions, ErrorKind, Heap, HeapOptions, Tracking};
use indelible_testing::{Choice, Fault, OpKind};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

const THREADS: usize = 4;

type Counts<'h> = PMutex<'h, PVec<'h, u64>>;

fn heap_of(world: &World, sparse: bool) -> Heap {
    let pool = world.format();
    pool.create_with("heap", &CreateOptions::new(2 << 20).sparse(sparse)).unwrap();
    let mut heap = Heap::format(pool.attach("heap").unwrap()).unwrap();
    heap.root_or_insert_with::<Counts, _>("counts", |place| {
        PMutex::new_in(PVec::from_slice_in(&[0; THREADS + 1], place), place)
    })
    .unwrap();
    heap.psync().unwrap();
    heap
}

fn count(counts: &Counts<'_>, thread: usize) -> u64 {
    let mut counts = counts.lock();
    counts[thread] += 1;
    counts[THREADS] += 1;
    counts[thread]
}

fn durable(pool: &indelible::Pool) -> Vec<u64> {
    let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
    assert_eq!(heap.check(), []);
    let counts = heap.root_ref::<Counts>("counts").unwrap().lock().to_vec();
    assert_eq!(counts[..THREADS].iter().sum::<u64>(), counts[THREADS], "half a section is durable");
    counts
}

#[test]
fn no_power_cut_loses_what_a_ticket_acknowledged() {
    for tracking in [Tracking::Auto, Tracking::Explicit] {
        let world = World::new(Ground::Simulated, tracking, false);
        let (heap, sim) = (heap_of(&world, false), world.sim().unwrap());
        let counts = heap.root_ref::<Counts>("counts").unwrap();
        let acknowledged: [AtomicU64; THREADS] = Default::default();
        let running = AtomicUsize::new(THREADS);
        let mut images = Vec::new();
        std::thread::scope(|scope| {
            for (thread, acknowledged) in acknowledged.iter().enumerate() {
                let (heap, running) = (&heap, &running);
                scope.spawn(move || {
                    for _ in 0..100 {
                        let counted = count(counts, thread);
                        heap.commit().wait().unwrap();
                        acknowledged.store(counted, SeqCst);
                    }
                    running.fetch_sub(1, SeqCst);
                });
            }
            let mut sum = 0;
            while running.load(SeqCst) > 0 && images.len() < 5 {
                let before: Vec<u64> = acknowledged.iter().map(|count| count.load(SeqCst)).collect();
                if before.iter().sum::<u64>() < sum {
                    std::thread::yield_now();
                    continue;
                }
                sum += 70;
                let seed = images.len() as u64;
                images.push((before, sim.power_cut(Choice::Random(seed)).medium()));
            }
        });
        drop(heap);
        assert!(images.len() > 2, "{tracking:?}: {} images", images.len());
        for (number, (before, image)) in images.into_iter().enumerate() {
            let pool = world.options().on_device(Arc::new(image), false).unwrap();
            let found = durable(&pool);
            let kept = before.iter().zip(&found).all(|(before, found)| before <= found);
            assert!(kept, "{tracking:?}, seed {number}: acknowledged {before:?}, durable {found:?}");
        }
        assert_eq!(durable(&world.open())[THREADS], 100 * THREADS as u64);
    }
}

#[test]
fn tickets_are_taken_beside_growth() {
    everywhere(|world| {
        let pool = world.format();
        pool.create_with("heap", &CreateOptions::new(256 << 10).reach(4 << 20)).unwrap();
        let mut heap =
            Heap::format_with(pool.attach("heap").unwrap(), HeapOptions::new().grow(true)).unwrap();
        type Texts<'h> = PMutex<'h, PVec<'h, PString<'h>>>;
        heap.root_or_insert_with::<Texts, _>("texts", |place| PMutex::new_in(PVec::new(), place)).unwrap();
        let texts = heap.root_ref::<Texts>("texts").unwrap();
        let before = heap.size();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (heap, place) = (&heap, heap.heap_ref().unwrap());
                scope.spawn(move || {
                    for number in 0..30 {
                        let text = format!("{thread} {number} ").repeat(500);
                        texts.lock().push(PString::from_in(&text, place));
                        heap.commit().wait().unwrap();
                    }
                });
            }
        });
        assert!(heap.size() > before, "the heap did not grow");
        drop(heap);
        let mut heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
        assert_eq!(heap.check(), []);
        let texts = heap.root_ref::<Texts>("texts").unwrap().lock();
        let mut found: Vec<&str> = texts.iter().map(|text| &text[..text.len() / 500]).collect();
        found.sort();
        let mut expected: Vec<String> = (0..THREADS)
            .flat_map(|thread| (0..30).map(move |number| format!("{thread} {number} ")))
            .collect();
        expected.sort();
        assert_eq!(found, expected);
    });
}

#[test]
fn a_failed_write_is_the_error_of_each_of_its_tickets() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let (heap, sim) = (heap_of(&world, false), world.sim().unwrap());
    let counts = heap.root_ref::<Counts>("counts").unwrap();
    let tickets = [0, 1, 2].map(|thread| {
        count(counts, thread);
        heap.commit()
    });
    sim.fail_at(OpKind::WriteDurable, 0, Fault::Io);
    for ticket in tickets {
        assert!(!ticket.is_durable());
        let error = ticket.wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert_eq!(error.raw_os_error(), Some(5), "each has the system's own error");
    }
    let writes = sim.count(OpKind::WriteDurable);
    let ticket = heap.commit();
    assert!(!ticket.is_durable());
    assert_eq!(ticket.wait().unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(sim.count(OpKind::WriteDurable), writes, "a failed write is never retried");
    drop(heap);
    assert!([0, 3].contains(&durable(&world.open())[THREADS]), "all of the round, or nothing of it");
}

#[test]
fn a_round_without_space_is_tried_again() {
    let mut refused = 0;
    for nth in 0..4 {
        let world = World::new(Ground::Simulated, Tracking::Auto, false);
        let (mut heap, sim) = (heap_of(&world, true), world.sim().unwrap());
        heap.root_or_insert_with("more", |place| {
            PMutex::new_in(PVec::from_slice_in(&[7_u64; 40_000], place), place)
        })
        .unwrap();
        sim.fail_at(OpKind::Reserve, nth, Fault::NoSpace);
        let counts = heap.root_ref::<Counts>("counts").unwrap();
        count(counts, 0);
        let tickets = [heap.commit(), heap.commit()];
        let results = tickets.map(|ticket| ticket.wait().map_err(|error| error.kind()));
        if results[0].is_err() {
            refused += 1;
            assert_eq!(results, [Err(ErrorKind::NoSpace); 2]);
            count(counts, 1);
            heap.commit().wait().unwrap();
        }
        let expected = 1 + u64::from(results[0].is_err());
        drop(heap);
        assert_eq!(durable(&world.open())[THREADS], expected);
    }
    assert!(refused > 0, "no round was refused");
}

#[test]
fn a_ticket_is_not_waited_for_with_a_lock() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let heap = heap_of(&world, false);
    let counts = heap.root_ref::<Counts>("counts").unwrap();
    let guard = counts.lock();
    let mut ticket = pin!(heap.commit());
    let polled = ticket.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Err(error)) if error.kind() == ErrorKind::Busy));
    let error = heap.commit().wait().unwrap_err();
    assert!(error.kind() == ErrorKind::Busy && error.to_string().contains("give the lock back"), "{error}");
    drop(guard);
    heap.commit().wait().unwrap();
}

/// Atomics are stored to without a lock. The first equals the last, or is one ahead in each cut.
#[test]
fn cuts_beside_atomics_are_of_one_moment() {
    const COUNT: usize = 2048;
    for tracking in [Tracking::WpAsync, Tracking::Mprotect, Tracking::Explicit] {
        if !tracking.is_available() {
            indelible_testing::not_tested(format_args!("cuts beside atomics with tracking by {tracking:?}"));
            continue;
        }
        let world = World::new(Ground::Memory, tracking, false);
        let mut heap = heap_of(&world, false);
        heap.root_or_insert_with::<PVec<AtomicU64>, _>("atomics", |place| {
            PVec::from_in((0..COUNT).map(|_| AtomicU64::new(0)), place)
        })
        .unwrap();
        heap.psync().unwrap();
        drop(heap);
        let (mut moved, mut before) = (0, 0);
        for round in 0..20 {
            let heap = Heap::open(world.open().attach("heap").unwrap()).unwrap();
            let (stop, begun) = (AtomicBool::new(false), AtomicBool::new(false));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let atomics = heap.root_ref::<PVec<AtomicU64>>("atomics").unwrap().as_slice();
                    while !stop.load(SeqCst) {
                        atomics[0].fetch_add(1, SeqCst);
                        atomics[COUNT - 1].fetch_add(1, SeqCst);
                        begun.store(true, SeqCst);
                    }
                });
                while round % 4 > 0 && !begun.load(SeqCst) {
                    std::thread::yield_now();
                }
                (0..3).for_each(|_| heap.commit().wait().unwrap());
                stop.store(true, SeqCst);
            });
            drop(heap);
            let heap = Heap::open(world.open().attach("heap").unwrap()).unwrap();
            let atomics = heap.root_ref::<PVec<AtomicU64>>("atomics").unwrap();
            let [first, last] = [0, COUNT - 1].map(|at| atomics[at].load(SeqCst));
            assert!(first == last || first == last + 1, "{tracking:?}, round {round}: {first}, {last}");
            moved += u64::from(first != before);
            before = first;
            atomics[COUNT - 1].store(first, SeqCst);
            heap.commit().wait().unwrap();
        }
        assert!(moved > 10, "{tracking:?}: the cuts had no stores");
    }
}

#[test]
fn a_dropped_ticket_loses_nothing() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let heap = heap_of(&world, false);
    let counts = heap.root_ref::<Counts>("counts").unwrap();
    count(counts, 0);
    drop(heap.commit());
    count(counts, 1);
    heap.commit().wait().unwrap();
    drop(heap);
    assert_eq!(durable(&world.open()), [1, 1, 0, 0, 2]);
}

#[derive(Default)]
struct Ready(AtomicUsize);

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn tasks_that_await_share_a_write() {
    fn sent(_: &impl Send) {}
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let (heap, sim) = (heap_of(&world, false), world.sim().unwrap());
    let counts = heap.root_ref::<Counts>("counts").unwrap();
    let task = |thread| {
        let heap = &heap;
        Box::pin(async move {
            count(counts, thread);
            heap.commit().await
        })
    };
    let mut tasks: Vec<_> = (0..THREADS).map(task).collect();
    sent(&tasks[0]);
    let ready = Arc::new(Ready::default());
    let waker = Waker::from(ready.clone());
    let mut context = Context::from_waker(&waker);
    let writes = sim.count(OpKind::WriteDurable);
    let mut polls = 0;
    while !tasks.is_empty() {
        assert!(polls == 0 || ready.0.swap(0, SeqCst) > 0, "no task is ready");
        tasks.retain_mut(|task| match task.as_mut().poll(&mut context) {
            Poll::Ready(result) => {
                result.unwrap();
                false
            }
            Poll::Pending => true,
        });
        polls += 1;
    }
    assert_eq!(sim.count(OpKind::WriteDurable) - writes, 1, "one write for all tasks");
    drop(tasks);
    drop(heap);
    assert_eq!(durable(&world.open())[THREADS], THREADS as u64);
}
