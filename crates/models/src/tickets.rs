use crate::rounds::Rounds;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

const THREADS: usize = 3;

/// Stores of each thread, and the durable ones. The atomics order nothing: rounds do.
#[derive(Default)]
struct Heap {
    rounds: Rounds<&'static str>,
    stored: [AtomicUsize; THREADS],
    durable: [AtomicUsize; THREADS],
    cuts: AtomicUsize,
}

impl Heap {
    fn cut(&self, failing: usize) -> Result<(), &'static str> {
        if self.cuts.fetch_add(1, Relaxed) < failing {
            return Err("full");
        }
        for (stored, durable) in self.stored.iter().zip(&self.durable) {
            durable.store(stored.load(Relaxed), Relaxed);
        }
        Ok(())
    }

    fn commit(&self, thread: usize, failing: usize) {
        self.stored[thread].store(1, Relaxed);
        let ticket = self.rounds.join();
        let waited = self.rounds.wait(ticket, || self.cut(failing));
        assert!(waited.is_ok() || failing > 0);
        if waited.is_ok() {
            assert_eq!(self.durable[thread].load(Relaxed), 1, "acknowledged, and not durable");
        }
    }
}

fn each_commits(failing: usize) -> Arc<Heap> {
    let heap = Arc::new(Heap::default());
    let threads: Vec<_> = (1..THREADS)
        .map(|thread| {
            let heap = heap.clone();
            thread::spawn(move || heap.commit(thread, failing))
        })
        .collect();
    heap.commit(0, failing);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    heap
}

pub(crate) fn a_ticket_that_was_waited_for_is_durable() {
    let heap = each_commits(0);
    assert!((1..=THREADS).contains(&heap.cuts.load(Relaxed)));
}

/// Each of two threads commits twice and is expected by the other: one closes each round.
pub(crate) fn who_is_expected_keeps_nobody_waiting() {
    let hour = std::time::Duration::from_secs(3600);
    let heap = Arc::new(Heap { rounds: Rounds::with_pace(hour), ..Heap::default() });
    let other = {
        let heap = heap.clone();
        thread::spawn(move || (0..2).for_each(|_| heap.commit(1, 0)))
    };
    (0..2).for_each(|_| heap.commit(0, 0));
    other.join().unwrap();
    assert!((2..=4).contains(&heap.cuts.load(Relaxed)));
}

pub(crate) fn a_ticket_of_a_failed_round_is_not_taken_for_durable() {
    let _ = each_commits(1);
}
