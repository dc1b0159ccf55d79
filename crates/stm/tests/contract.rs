//! Ends of transactions, and misuses by programs.

use crate::support::{
    Apart, PANIC_IN_ACKNOWLEDGEMENT, PANIC_IN_COMMIT, PANIC_IN_SKIPPED, PANIC_IN_STORED,
    REFUSE_ACKNOWLEDGEMENT, REFUSE_COMMIT, Remembering, Told, sound,
};
use indelible_stm::{
    Abort, BeginError, CommitError, Damaged, Direct, Error, Memory, Sink, Stm, Thread, Transaction, TxWord,
    Volatile,
};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

type Done = Result<(), Abort<&'static str>>;

fn value<S: Sink>(stm: &Arc<Stm<Direct, S>>, word: &TxWord) -> u64 {
    let read = |tx: &mut Transaction<'_, '_, Direct, S>| -> Result<u64, Abort<()>> { Ok(tx.get(word)?) };
    stm.thread().atomically(read).unwrap_or_else(|_| panic!("a reader is neither cancelled nor refused")).0
}

fn elsewhere<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(f).join().expect("no panic"))
}

fn is_free<S: Sink>(stm: &Arc<Stm<Direct, S>>, word: &TxWord) -> bool {
    elsewhere(|| {
        let mut thread = stm.thread();
        thread.begin().is_ok() && {
            let free = thread.running().expect("begun").get(word).is_ok();
            thread.abort(false);
            free
        }
    })
}

fn register<S: Sink>(tx: &mut Transaction<'_, '_, Direct, S>, ends: &Rc<RefCell<Vec<&'static str>>>) {
    let note = |name| {
        let ends = ends.clone();
        Box::new(move || ends.borrow_mut().push(name))
    };
    tx.on_commit(note("first"));
    tx.on_abort(note("undone"));
    tx.on_commit(note("second"));
    tx.on_abort(note("undone before"));
}

#[test]
fn an_error_undoes_all_and_actions_follow() {
    let (word, stm, ends) = (TxWord::new(5), sound(Volatile), Rc::default());
    let mut thread = stm.thread();
    let cancelled = thread.atomically(|tx| -> Done {
        register(tx, &ends);
        tx.set(&word, 6)?;
        assert_eq!(tx.get(&word)?, 6);
        Err(Abort::Cancel("enough"))
    });
    assert_eq!(cancelled, Err(Error::Cancelled("enough")));
    assert_eq!(ends.take(), ["undone before", "undone"]);
    assert_eq!((value(&stm, &word), is_free(&stm, &word)), (5, true));
    let done = thread.atomically(|tx| -> Done {
        register(tx, &ends);
        Ok(tx.set(&word, 7)?)
    });
    assert_eq!(done.unwrap().1.sequence(), Some(1));
    assert_eq!(ends.take(), ["first", "second"]);
    assert_eq!(value(&stm, &word), 7);
}

#[test]
fn a_panic_undoes_all_and_goes_on() {
    let (word, stm, ends) = (TxWord::new(5), sound(Volatile), Rc::default());
    let mut thread = stm.thread();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        thread.atomically(|tx| -> Done {
            register(tx, &ends);
            tx.on_abort(Box::new(|| panic!("an action that panics as well")));
            tx.set(&word, 6)?;
            panic!("in the middle")
        })
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"in the middle"));
    assert_eq!(ends.take(), ["undone before", "undone"]);
    assert_eq!((value(&stm, &word), is_free(&stm, &word)), (5, true));
    assert!(thread.atomically(|tx| -> Done { Ok(tx.set(&word, 7)?) }).is_ok());
    assert_eq!(value(&stm, &word), 7);
}

#[test]
fn an_action_that_panics_stops_no_other() {
    let (word, stm, ends) = (TxWord::new(0), sound(Volatile), Rc::default());
    let mut thread = stm.thread();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        thread.atomically(|tx| -> Done {
            tx.on_commit(Box::new(|| panic!("an action")));
            register(tx, &ends);
            Ok(tx.set(&word, 1)?)
        })
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"an action"));
    assert_eq!((ends.take(), value(&stm, &word)), (vec!["first", "second"], 1));
}

#[test]
fn a_doomed_transaction_reads_nothing_and_decides_nothing() {
    for (hidden, expected) in [(Ok(()), Ok(())), (Err(Abort::Cancel("torn")), Err(Error::Cancelled("torn")))]
    {
        let (word, stm, tries) = (TxWord::new(0), sound(Volatile), Cell::new(0));
        let untouched = TxWord::new(9);
        let result = stm.thread().atomically(|tx| -> Done {
            tries.set(tries.get() + 1);
            tx.get(&word)?;
            if tries.get() == 1 {
                elsewhere(|| stm.thread().atomically(|tx| -> Done { Ok(tx.set(&word, 1)?) }).unwrap());
                assert!(tx.get(&word).is_err() && tx.set(&word, 2).is_err() && tx.get(&untouched).is_err());
                assert!(tx.set(&untouched, 2).is_err() && tx.writes().is_empty());
            }
            hidden
        });
        assert_eq!((result.map(drop), tries.get()), (expected, 2));
        assert_eq!((word.into_inner(), untouched.into_inner()), (1, 9));
    }
}

#[test]
fn a_transaction_inside_of_one_is_an_error_or_a_part() {
    let (word, stm, other) = (TxWord::new(0), sound(Volatile), sound(Volatile));
    let done = stm.thread().atomically(|tx| -> Done {
        tx.set(&word, 1)?;
        for inner in [&stm, &other] {
            let nested = inner.thread().atomically(|tx| -> Done { Ok(tx.set(&word, 2)?) });
            assert_eq!(nested, Err(Error::Begin(BeginError::Nested)));
            assert!(matches!(inner.thread().alone(), Err(BeginError::Nested)));
        }
        Ok(())
    });
    assert!(done.is_ok());
    let mut thread = stm.thread();
    for aborted in [false, true] {
        thread.begin().unwrap();
        thread.begin().unwrap();
        set(&mut thread, &word, 3);
        if aborted {
            thread.abort(false);
            assert!(thread.running().is_none());
            continue;
        }
        assert_eq!(thread.commit(), Ok(None));
        assert_eq!(word_now(&word), 1);
        assert_eq!(thread.commit().unwrap().unwrap().sequence(), Some(2));
    }
    assert_eq!(value(&stm, &word), 3);
}

fn set<S: Sink>(thread: &mut Thread<Direct, S>, word: &TxWord, value: u64) {
    let at = (&raw const *word).cast::<u64>().cast_mut();
    // SAFETY: the word outlives the transaction in each of these tests.
    unsafe { thread.running().expect("a transaction").store(at, value) }.expect("no other transaction");
}

fn word_now(word: &TxWord) -> u64 {
    // SAFETY: the word exists; it is read as transactions do.
    unsafe { indelible_stm::Memory::load(&Direct, (&raw const *word).expose_provenance()) }.unwrap()
}

#[test]
#[should_panic(expected = "there is no transaction to commit")]
fn a_commit_of_nothing_panics() {
    let _ = sound(Volatile).thread().commit();
}

#[test]
fn a_refused_commit_leaves_nothing() {
    let (word, stm, ends) = (TxWord::new(0), sound(Remembering::default()), Rc::default());
    let mut thread = stm.thread();
    stm.sink().ask(REFUSE_COMMIT);
    let refused = thread.atomically(|tx| -> Done {
        register(tx, &ends);
        Ok(tx.set(&word, 1)?)
    });
    assert_eq!(refused, Err(Error::Refused("refused")));
    assert_eq!(
        (value(&stm, &word), is_free(&stm, &word), ends.take()),
        (0, true, vec!["undone before", "undone"])
    );
    thread.begin().unwrap();
    set(&mut thread, &word, 1);
    assert_eq!(thread.commit(), Err(CommitError::Refused("refused")));
    assert!(thread.running().is_none());
    stm.sink().ask(0);
    assert!(thread.atomically(|tx| -> Done { Ok(tx.set(&word, 2)?) }).is_ok());
    assert_eq!((value(&stm, &word), stm.sink().dense()), (2, 3));
}

#[test]
fn a_commit_that_is_not_acknowledged_is_in_memory() {
    let (word, stm, ends) = (TxWord::new(0), sound(Remembering::default()), Rc::default());
    stm.sink().ask(REFUSE_ACKNOWLEDGEMENT);
    let failed = stm.thread().atomically(|tx| -> Done {
        register(tx, &ends);
        Ok(tx.set(&word, 1)?)
    });
    assert_eq!((failed, ends.take()), (Err(Error::Unacknowledged("the disk failed")), vec![]));
    stm.sink().ask(0);
    assert_eq!((value(&stm, &word), is_free(&stm, &word)), (1, true));
    let (_, receipt) =
        stm.thread().atomically(|tx| -> Result<u64, Abort<()>> { Ok(tx.get(&word)?) }).unwrap();
    assert_eq!((receipt.sequence(), receipt.newest_read(), receipt.durable_from()), (None, 1, 1));
    let unused = TxWord::new(0);
    let (_, receipt) =
        stm.thread().atomically(|tx| -> Result<u64, Abort<()>> { Ok(tx.get(&unused)?) }).unwrap();
    assert_eq!(receipt.durable_from(), 0);
    assert_eq!(stm.sink().acknowledged.lock().unwrap()[..], [Some(1), None, None, None]);
}

#[test]
fn a_sink_that_panics_leaves_all_or_nothing() {
    let (word, stm) = (TxWord::new(0), sound(Remembering::default()));
    for (request, stored) in [(PANIC_IN_COMMIT, 0), (PANIC_IN_STORED, 2)] {
        stm.sink().ask(request);
        let mut thread = stm.thread();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            thread.atomically(|tx| -> Done { Ok(tx.set(&word, request / 2)?) })
        }));
        assert!(panicked.is_err());
        stm.sink().ask(0);
        assert_eq!((value(&stm, &word), is_free(&stm, &word)), (stored, true));
        assert!(thread.atomically(|tx| -> Done { tx.get(&word).map(drop).map_err(Abort::from) }).is_ok());
    }
    assert_eq!(stm.sink().dense(), 2);
    assert_eq!(stm.sink().told.lock().unwrap()[&1], Told::Skipped);
}

#[test]
fn actions_of_a_commit_whose_acknowledgement_panicked_are_not_those_of_the_next() {
    let (word, stm, ends) = (TxWord::new(0), sound(Remembering::default()), Rc::default());
    let mut thread = stm.thread();
    stm.sink().ask(PANIC_IN_ACKNOWLEDGEMENT);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        thread.atomically(|tx| -> Done {
            register(tx, &ends);
            Ok(tx.set(&word, 1)?)
        })
    }));
    assert!(panicked.is_err());
    stm.sink().ask(0);
    assert!(thread.atomically(|tx| -> Done { Ok(tx.set(&word, 2)?) }).is_ok());
    assert_eq!((ends.take(), value(&stm, &word)), (vec![], 2));
}

#[test]
fn a_sink_that_panics_over_an_abort_leaves_nothing_owned() {
    let (Apart(one), Apart(other)) = &(Apart::default(), Apart::default());
    let stm = &sound(Remembering::default());
    let mut thread = stm.thread();
    stm.sink().ask(PANIC_IN_SKIPPED);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        thread.atomically(|tx| -> Done {
            tx.get(other)?;
            elsewhere(|| stm.thread().atomically(|tx| -> Done { Ok(tx.set(other, 1)?) }).unwrap());
            Ok(tx.set(one, 1)?)
        })
    }));
    assert!(panicked.is_err());
    stm.sink().ask(0);
    assert_eq!((value(stm, one), is_free(stm, one)), (0, true));
    assert!(thread.atomically(|tx| -> Done { Ok(tx.set(one, 2)?) }).is_ok());
    assert_eq!(stm.sink().dense(), 3);
}

#[test]
fn a_number_whose_transaction_is_not_valid_is_told_as_skipped() {
    let (Apart(one), Apart(other)) = &(Apart::default(), Apart::default());
    let stm = sound(Remembering::default());
    let tries = Cell::new(0);
    let done = stm.thread().atomically(|tx| -> Done {
        tries.set(tries.get() + 1);
        tx.get(other)?;
        if tries.get() == 1 {
            elsewhere(|| stm.thread().atomically(|tx| -> Done { Ok(tx.set(other, 1)?) }).unwrap());
        }
        Ok(tx.set(one, 1)?)
    });
    assert_eq!(done.unwrap().1.sequence(), Some(3));
    assert_eq!(stm.sink().dense(), 3);
    assert_eq!(stm.sink().told.lock().unwrap()[&2], Told::Skipped);
    assert_eq!(stm.sink().stored.load(Ordering::Relaxed), 2);
}

#[test]
fn a_thread_that_ends_in_a_transaction_aborts_it() {
    thread_local!(static KEPT: RefCell<Option<Thread>> = const { RefCell::new(None) });
    let (word, stm) = (TxWord::new(0), sound(Volatile));
    // Not a scoped thread, which may be joined before its variables are dropped.
    let (leaked, memory): (&'static TxWord, _) = (Box::leak(Box::new(word)), stm.clone());
    std::thread::spawn(move || {
        let mut thread = memory.thread();
        thread.begin().unwrap();
        set(&mut thread, leaked, 1);
        KEPT.set(Some(thread));
    })
    .join()
    .unwrap();
    assert_eq!((value(&stm, leaked), is_free(&stm, leaked)), (0, true));
    drop(stm.thread().alone().unwrap());
}

#[test]
fn a_child_of_a_fork_commits_nothing() {
    let (word, stm) = (TxWord::new(0), sound(Volatile));
    let (mut thread, mut child) = (stm.thread(), -1);
    let result = thread.atomically(|tx| -> Done {
        tx.set(&word, 1)?;
        // SAFETY: the child goes on in this thread, and ends below.
        child = unsafe { libc::fork() };
        if child == 0 {
            stm.forked();
        }
        Ok(())
    });
    if child == 0 {
        let refused = result == Err(Error::Forked) && word_now(&word) == 0;
        let again = thread.begin() == Err(BeginError::Forked) && thread.alone().is_err();
        let anew = stm.thread().begin() == Err(BeginError::Forked);
        // SAFETY: ends the process at once, without the test's other threads.
        unsafe { libc::_exit(i32::from(!(refused && again && anew))) };
    }
    let mut status = -1;
    // SAFETY: waits for the child above.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0));
    assert!(result.is_ok());
    assert_eq!(value(&stm, &word), 1);
}

#[test]
fn nobody_runs_beside_a_thread_that_is_alone() {
    let (word, stm) = (TxWord::new(0), sound(Remembering::default()));
    let over = AtomicBool::new(false);
    let mut thread = stm.thread();
    std::thread::scope(|scope| {
        let mut alone = thread.alone().unwrap();
        let others: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    value(&stm, &word);
                    assert!(over.load(Ordering::Relaxed), "a transaction ran beside it");
                })
            })
            .collect();
        for expected in 1..=2 {
            assert_eq!(alone.sequence(), expected);
            std::thread::yield_now();
        }
        over.store(true, Ordering::Relaxed);
        drop(alone);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
    let (_, receipt) = thread.atomically(|tx| -> Result<u64, Abort<()>> { Ok(tx.get(&word)?) }).unwrap();
    assert_eq!((receipt.newest_read(), stm.now()), (2, 2));
}

#[test]
fn a_try_that_asks_for_it_is_alone() {
    let (word, stm, tries) = (TxWord::new(0), sound(Volatile), Cell::new(0));
    let mut thread = stm.thread();
    let done = thread.atomically(|tx| -> Done {
        tries.set(tries.get() + 1);
        tx.set(&word, tries.get())?;
        if !tx.is_alone() {
            return Err(tx.restart_alone().into());
        }
        Ok(())
    });
    assert!(done.is_ok());
    assert_eq!((tries.get(), value(&stm, &word)), (2, 2));
    assert!(!thread.atomically(|tx| -> Result<bool, Abort<()>> { Ok(tx.is_alone()) }).unwrap().0);
}

#[test]
fn quiescence_waits_for_older_snapshots_alone() {
    quiescence(|stm| stm.quiesce(1));
    quiescence(|stm| stm.thread().quiesce(1));
}

#[test]
fn a_thread_that_waited_before_waits_for_new_threads_too() {
    let (stm, over, knows, begun) =
        (&sound(Volatile), &AtomicBool::new(false), &Barrier::new(2), &Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut waits = stm.thread();
            waits.quiesce(1);
            knows.wait();
            begun.wait();
            waits.quiesce(1);
            assert!(over.load(Ordering::Relaxed), "it did not wait for a thread that it did not know");
        });
        knows.wait();
        let mut newer = stm.thread();
        newer.begin().unwrap();
        begun.wait();
        (0..1000).for_each(|_| std::thread::yield_now());
        over.store(true, Ordering::Relaxed);
        newer.abort(false);
    });
}

#[test]
fn a_transaction_goes_back_to_a_checkpoint() {
    let (Apart(first), Apart(second), stm) = &(Apart::default(), Apart::default(), sound(Volatile));
    let mut thread = stm.thread();
    let done = thread.atomically(|tx| -> Result<_, Abort<()>> {
        tx.set(first, 1)?;
        let checkpoint = tx.checkpoint();
        for _ in 0..2 {
            tx.set(first, 2)?;
            tx.set(second, 2)?;
            tx.restore(&checkpoint);
            if (tx.get(first)?, tx.get(second)?) != (1, 0) {
                return Ok(false);
            }
        }
        Ok(true)
    });
    assert!(done.unwrap().0);
    assert_eq!((value(stm, first), value(stm, second)), (1, 0));
}

fn quiescence(quiesce: impl Fn(&std::sync::Arc<Stm>) + Copy + Send + Sync) {
    let (Apart(word), Apart(other), stm) = &(Apart::default(), Apart::default(), sound(Volatile));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut waiting = None;
        let done = stm.thread().atomically(|tx| -> Done {
            tx.get(other)?;
            elsewhere(|| stm.thread().atomically(|tx| -> Done { Ok(tx.set(word, 1)?) }).unwrap());
            let over = &over;
            waiting = Some(scope.spawn(move || {
                quiesce(stm);
                assert!(over.load(Ordering::Relaxed), "it did not wait for a transaction that began before");
            }));
            (0..100).for_each(|_| std::thread::yield_now());
            over.store(true, Ordering::Relaxed);
            tx.get(word)?;
            assert_eq!(tx.snapshot(), 1);
            elsewhere(|| quiesce(stm));
            Ok(())
        });
        assert!(done.is_ok());
        waiting.unwrap().join().unwrap();
    });
}

struct Beside;

// SAFETY: as `Direct`.
unsafe impl Memory for Beside {
    const BESIDE_OTHERS: bool = true;

    unsafe fn load(&self, address: usize) -> Result<u64, Damaged> {
        // SAFETY: the caller's promise.
        unsafe { Direct.load(address) }
    }

    unsafe fn store(&self, address: usize, value: u64, bits: u64) {
        // SAFETY: the caller's promise.
        unsafe { Direct.store(address, value, bits) };
    }
}

#[test]
fn a_thread_may_be_in_transactions_of_a_memory_beside_others_and_of_another_one() {
    let (word, beside, stm) = (TxWord::new(0), Stm::new(Beside, Volatile), sound(Volatile));
    let refused = || {
        let nested = stm.thread().atomically(|tx| -> Done { Ok(tx.set(&word, 9)?) });
        assert_eq!(nested, Err(Error::Begin(BeginError::Nested)));
    };
    let done = beside.thread().atomically(|_| -> Done {
        assert!(stm.thread().alone().is_ok());
        let inner = stm.thread().atomically(|tx| -> Done {
            refused();
            Ok(tx.set(&word, 1)?)
        });
        assert!(inner.is_ok());
        Ok(())
    });
    assert!(done.is_ok());
    let done = stm.thread().atomically(|tx| -> Done {
        assert!(beside.thread().atomically(|_| -> Done { Ok(()) }).is_ok());
        refused();
        let before = tx.get(&word)?;
        Ok(tx.set(&word, before + 1)?)
    });
    assert!(done.is_ok());
    assert_eq!(value(&stm, &word), 2);
}

#[test]
#[should_panic(expected = "30 is the most")]
fn too_many_stripes_are_refused() {
    let _ = Stm::with_stripes(31, Direct, Volatile);
}

#[test]
fn errors_say_what_to_do() {
    let errors: [(&dyn std::error::Error, &str); 5] = [
        (&Error::<std::fmt::Error, std::fmt::Error>::Begin(BeginError::Nested), "passing it to the function"),
        (&Error::<std::fmt::Error, std::fmt::Error>::Begin(BeginError::Forked), "attach the objects anew"),
        (&Error::<std::fmt::Error, std::fmt::Error>::Forked, "in its parent alone"),
        (&CommitError::<std::fmt::Error>::Forked, "in its parent alone"),
        (&CommitError::<std::fmt::Error>::Refused(std::fmt::Error), "nothing of the transaction is left"),
    ];
    for (error, says) in errors {
        assert!(error.to_string().contains(says), "{error}");
    }
}
