//! Rounds of a group commit: tickets taken during one durable write share the next.
//!
//! 1. A round is closed before its cut begins: a store made before a ticket was taken is in the cut
//!    of the ticket's round.
//! 2. One thread leads at a time, the first that waits. So cuts end in the order of their rounds,
//!    and one that succeeds has all stores of the rounds before it, even failed ones.
//! 3. A ticket waits only while a thread leads, and the end of a lead wakes it, also if the leader
//!    panics: then another leads; or while one thread of its round watches for the others that are
//!    [expected](indelible_store::company), no longer than these keep coming.

use crate::sys::sync::{Condvar, Mutex, MutexGuard, since, wait_for};
use indelible_store::company::Company;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Rounds<E: Clone> {
    state: Mutex<State<E>>,
    /// An even round ended, or an odd one. Threads of two rounds wait at a time.
    ended: [Condvar; 2],
}

#[derive(Debug)]
struct State<E> {
    joining: u64,
    led: bool,
    durable: u64,
    failed: Option<(u64, E)>,
    company: Company,
    wakers: Vec<Waker>,
    /// Threads that wait for the end of an even round, or of an odd one: without one, an end wakes
    /// none.
    sleeping: [usize; 2],
}

#[derive(Debug, Default)]
pub(super) struct Waiting {
    passed: bool,
    left: Option<(u64, Waker)>,
}

fn parity(round: u64) -> usize {
    (round % 2) as usize
}

impl<E: Clone> State<E> {
    fn outcome(&self, round: u64) -> Option<Result<(), E>> {
        if round < self.durable {
            return Some(Ok(()));
        }
        self.failed.as_ref().filter(|(failed, _)| round <= *failed).map(|(_, error)| Err(error.clone()))
    }
}

impl<E: Clone> Default for Rounds<E> {
    fn default() -> Self {
        Rounds::with_pace(Duration::ZERO)
    }
}

impl<E: Clone> Rounds<E> {
    pub(super) fn with_pace(pace: Duration) -> Self {
        let state = State {
            joining: 0,
            led: false,
            durable: 0,
            failed: None,
            company: Company::with_pace(pace),
            wakers: Vec::new(),
            sleeping: [0; 2],
        };
        Rounds { state: Mutex::new(state), ended: [Condvar::new(), Condvar::new()] }
    }

    fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn sleep<'r>(&'r self, mut state: MutexGuard<'r, State<E>>, round: u64) -> MutexGuard<'r, State<E>> {
        let parity = parity(round);
        state.sleeping[parity] += 1;
        let mut state = self.ended[parity].wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        state.sleeping[parity] -= 1;
        state
    }

    pub(super) fn join(&self) -> u64 {
        self.lock().joining
    }

    pub(super) fn outcome(&self, round: u64) -> Option<Result<(), E>> {
        self.lock().outcome(round)
    }

    /// `cut` is called if no other thread leads.
    pub(super) fn wait(&self, round: u64, cut: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        // Before the state is locked: its drop locks the state.
        let _waits = Waits::begin(self, round);
        let mut state = self.lock();
        loop {
            if let Some(outcome) = state.outcome(round) {
                return outcome;
            }
            if state.led {
                let awaited = round.max(state.joining - 1);
                state = self.sleep(state, awaited);
            } else if round < state.joining || state.company.is_complete() {
                return self.lead(state, cut);
            } else {
                state = self.gather(state, round);
            }
        }
    }

    fn gather<'r>(&'r self, mut state: MutexGuard<'r, State<E>>, round: u64) -> MutexGuard<'r, State<E>> {
        let Some(watch) = state.company.watch() else {
            return self.sleep(state, round);
        };
        let parity = parity(round);
        state.sleeping[parity] += 1;
        let (mut state, in_time) = wait_for(&self.ended[parity], &self.state, state, watch.patience);
        state.sleeping[parity] -= 1;
        state.company.end_watch(watch, in_time);
        state
    }

    /// Before leading, lets all ready tasks join its round.
    pub(super) fn poll(
        &self,
        round: u64,
        waiting: &mut Waiting,
        context: &mut Context<'_>,
        cut: impl FnOnce() -> Result<(), E>,
    ) -> Poll<Result<(), E>> {
        let mut state = self.lock();
        if let Some(outcome) = state.outcome(round) {
            return Poll::Ready(outcome);
        }
        let waker = context.waker();
        let passed = std::mem::replace(&mut waiting.passed, true);
        if state.led {
            let led = state.joining - 1;
            let known = |(during, left): &(u64, Waker)| *during == led && left.will_wake(waker);
            if !waiting.left.as_ref().is_some_and(known) {
                state.wakers.push(waker.clone());
                waiting.left = Some((led, waker.clone()));
            }
            return Poll::Pending;
        }
        if !passed {
            drop(state);
            waker.wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.lead(state, cut))
    }

    fn lead(
        &self,
        mut state: MutexGuard<'_, State<E>>,
        cut: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let round = state.joining;
        state.joining += 1;
        state.led = true;
        state.company.close();
        let begin = (state.company.waiting() > 1).then(Instant::now);
        drop(state);
        let mut lead = Lead { rounds: self, round, begin, outcome: None };
        let outcome = cut();
        lead.outcome = Some(outcome.clone());
        drop(lead);
        outcome
    }
}

struct Waits<'r, E: Clone>(&'r Rounds<E>);

impl<'r, E: Clone> Waits<'r, E> {
    fn begin(rounds: &'r Rounds<E>, round: u64) -> Self {
        let mut state = rounds.lock();
        let joins = round == state.joining;
        state.company.arrive(joins);
        drop(state);
        Waits(rounds)
    }
}

impl<E: Clone> Drop for Waits<'_, E> {
    fn drop(&mut self) {
        self.0.lock().company.leave();
    }
}

struct Lead<'r, E: Clone> {
    rounds: &'r Rounds<E>,
    round: u64,
    begin: Option<Instant>,
    outcome: Option<Result<(), E>>,
}

impl<E: Clone> Drop for Lead<'_, E> {
    fn drop(&mut self) {
        let Lead { rounds, round, begin, outcome } = self;
        let took = begin.map(since);
        let mut state = rounds.lock();
        state.led = false;
        state.company.expect_again(took);
        match outcome.take() {
            Some(Ok(())) => (state.durable, state.failed) = (*round + 1, None),
            Some(Err(error)) => state.failed = Some((*round, error)),
            None => {}
        }
        let wakers = std::mem::take(&mut state.wakers);
        let sleeping = state.sleeping;
        drop(state);
        // One thread of the next round leads, or watches for others; it writes beside those that
        // only go on.
        let (own, next) = (parity(*round), parity(*round + 1));
        if sleeping[next] > 0 {
            rounds.ended[next].notify_one();
        }
        if sleeping[own] > 0 {
            rounds.ended[own].notify_all();
        }
        wakers.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::task::Wake;

    type Tested = Rounds<&'static str>;

    fn never() -> Result<(), &'static str> {
        panic!("no thread leads this round")
    }

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn tickets_taken_before_a_round_is_closed_share_its_cut() {
        let rounds = Tested::default();
        let (first, second) = (rounds.join(), rounds.join());
        let mut during = None;
        let cut = || {
            during = Some(rounds.join());
            Ok(())
        };
        rounds.wait(first, cut).unwrap();
        rounds.wait(second, never).unwrap();
        let during = during.unwrap();
        assert!(during > second, "a ticket that was taken beside the cut is not in its round");
        assert_eq!(rounds.outcome(during), None);
        rounds.wait(during, || Ok(())).unwrap();
    }

    #[test]
    fn a_failed_round_fails_each_of_its_tickets_and_no_later_one() {
        let rounds = Tested::default();
        let [a, b, c] = [rounds.join(), rounds.join(), rounds.join()];
        assert_eq!(rounds.wait(a, || Err("full")), Err("full"));
        assert_eq!(rounds.wait(b, never), Err("full"));
        rounds.wait(rounds.join(), || Ok(())).unwrap();
        rounds.wait(c, never).unwrap();
    }

    #[test]
    fn a_leader_that_panics_leaves_nobody_waiting() {
        let rounds = Tested::default();
        let (cuts, waits) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                let own = rounds.join();
                let others = [own, own, own];
                rounds.wait(own, || {
                    for ticket in others.into_iter().chain([rounds.join(); 3]) {
                        let (rounds, cuts, waits) = (&rounds, &cuts, &waits);
                        scope.spawn(move || {
                            waits.fetch_add(1, SeqCst);
                            rounds.wait(ticket, || {
                                cuts.fetch_add(1, SeqCst);
                                Ok(())
                            })
                        });
                    }
                    while waits.load(SeqCst) < 6 {
                        std::thread::yield_now();
                    }
                    panic!("on purpose")
                })
            }));
            assert!(panicked.is_err());
        });
        assert_eq!(cuts.into_inner(), 1, "one lead is enough for all of them");
    }

    #[test]
    fn a_round_is_closed_when_those_who_waited_before_are_there() {
        let rounds = Tested::with_pace(Duration::from_secs(3600));
        let cuts = AtomicUsize::new(0);
        let cut = || {
            cuts.fetch_add(1, SeqCst);
            Ok(())
        };
        std::thread::scope(|scope| {
            rounds
                .wait(rounds.join(), || {
                    scope.spawn(|| rounds.wait(rounds.join(), cut));
                    while rounds.lock().company.waiting() < 2 {
                        std::thread::yield_now();
                    }
                    cut()
                })
                .unwrap();
            rounds.wait(rounds.join(), cut).unwrap();
        });
        assert_eq!(cuts.load(SeqCst), 2);
    }

    #[test]
    fn a_round_is_closed_without_those_who_do_not_come() {
        let rounds = Tested::with_pace(Duration::from_millis(4));
        std::thread::scope(|scope| {
            rounds
                .wait(rounds.join(), || {
                    scope.spawn(|| rounds.wait(rounds.join(), || Ok(())));
                    while rounds.lock().company.waiting() < 2 {
                        std::thread::yield_now();
                    }
                    Ok(())
                })
                .unwrap();
        });
        rounds.wait(rounds.join(), || Ok(())).unwrap();
    }

    #[test]
    fn threads_and_tasks_that_panicked_are_not_expected() {
        let rounds = Tested::with_pace(Duration::from_secs(3600));
        let panicking = || -> Result<(), &'static str> { panic!("on purpose") };
        assert!(catch_unwind(AssertUnwindSafe(|| rounds.wait(rounds.join(), panicking))).is_err());
        let waker = Waker::from(Arc::new(Count::default()));
        let mut context = Context::from_waker(&waker);
        let (round, mut waiting) = (rounds.join(), Waiting::default());
        assert!(rounds.poll(round, &mut waiting, &mut context, never).is_pending());
        let task = AssertUnwindSafe(|| rounds.poll(round, &mut waiting, &mut context, panicking));
        assert!(catch_unwind(task).is_err());
        assert_eq!(rounds.lock().company.waiting(), 0);
        (0..2).for_each(|_| rounds.wait(rounds.join(), || Ok(())).unwrap());
    }

    #[test]
    fn tasks_of_one_thread_share_a_cut() {
        let rounds = Tested::default();
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let mut context = Context::from_waker(&waker);
        let mut tasks = [(); 3].map(|()| (rounds.join(), Waiting::default()));
        for (round, waiting) in &mut tasks {
            assert!(rounds.poll(*round, waiting, &mut context, never).is_pending());
        }
        assert_eq!(count.0.load(SeqCst), 3, "a task that only lets others pass is ready at once");
        let mut cuts = 0;
        for (round, waiting) in &mut tasks {
            let polled = rounds.poll(*round, waiting, &mut context, || {
                cuts += 1;
                Ok(())
            });
            assert_eq!(polled, Poll::Ready(Ok(())));
        }
        assert_eq!(cuts, 1);
    }

    #[test]
    fn a_task_that_waits_is_woken_by_the_end_of_the_round() {
        let rounds = Tested::default();
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let mut context = Context::from_waker(&waker);
        let round = rounds.join();
        let (mut waiting, mut gone) = (Waiting::default(), Waiting::default());
        rounds
            .wait(round, || {
                for _ in 0..2 {
                    assert!(rounds.poll(round, &mut waiting, &mut context, never).is_pending());
                }
                assert!(rounds.poll(round, &mut gone, &mut context, never).is_pending());
                assert_eq!(count.0.load(SeqCst), 0);
                Ok(())
            })
            .unwrap();
        assert_eq!(count.0.load(SeqCst), 2, "each task is woken once");
        assert_eq!(rounds.poll(round, &mut waiting, &mut context, never), Poll::Ready(Ok(())));
    }
}
