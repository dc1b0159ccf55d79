//! Shared state of threads, run in every order of the memory model, within loom's limits.
//!
//! Sources of `crates/store` and `crates/indelible` are included by path. They take atomics,
//! mutexes and condition variables from a module `sync`, which this crate replaces by loom's.
#![allow(dead_code, missing_docs, unused_imports)]

#[path = "../../store/src/commit.rs"]
mod commit;
#[path = "../../store/src/company.rs"]
mod company;
#[path = "../../store/src/entropy.rs"]
mod entropy;
#[path = "../../store/src/error/mod.rs"]
mod error;
#[path = "../../store/src/format/mod.rs"]
mod format;
#[path = "../../store/src/lane/mod.rs"]
mod lane;
#[path = "../../store/src/medium/mod.rs"]
mod medium;
#[path = "../../store/src/mutant.rs"]
mod mutant;
#[path = "../../store/src/recovery/mod.rs"]
mod recovery;
#[path = "../../store/src/seal/mod.rs"]
mod seal;
#[path = "../../store/src/slices.rs"]
mod slices;
#[path = "../../store/src/space/mod.rs"]
mod space;
#[path = "../../store/src/store/mod.rs"]
mod store;
#[path = "../../store/src/table/mod.rs"]
mod table;

#[path = "../../indelible/src/dirty/bitmap.rs"]
mod bitmap;
#[path = "../../indelible/src/dirty/pages.rs"]
mod pages;
#[path = "../../indelible/src/dirty/turn.rs"]
mod turn;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

    /// All runs of a model must be alike.
    pub fn since(_: std::time::Instant) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    /// Loom has no time: the wait may end at any moment, before any notification.
    pub fn wait_for<'a, T>(
        _: &Condvar,
        mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
        _: std::time::Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        drop(guard);
        loom::thread::yield_now();
        (mutex.lock().unwrap(), false)
    }
}

#[path = "../../indelible/src/heap/allocation.rs"]
mod allocation;
#[path = "../../indelible/src/heap/cache.rs"]
mod cache;
#[path = "../../indelible/src/heap/gate.rs"]
mod gate;
#[path = "../../indelible/src/heap/leaked.rs"]
mod leaked;
#[path = "../../indelible/src/collections/lock_word.rs"]
mod lock_word;
#[path = "../../indelible/src/heap/rounds.rs"]
mod rounds;
#[path = "../../indelible/src/shared/slots.rs"]
mod slots;
#[path = "../../indelible/src/heap/span.rs"]
mod span;

/// Two classes, and spans of up to two words of blocks.
mod layout {
    pub(crate) const CLASSES: usize = 2;
    pub(crate) const SPAN_BLOCKS: usize = 128;
}

/// One parking lot for all locks, and one try before a thread waits.
mod parking {
    use crate::sys::sync::{Condvar, Mutex};
    use crate::sys::total::AtomicU64;

    pub(crate) struct ParkingLot {
        pub(crate) queue: Mutex<()>,
        pub(crate) wake: Condvar,
    }

    loom::lazy_static! {
        static ref LOT: ParkingLot = ParkingLot { queue: Mutex::new(()), wake: Condvar::new() };
    }

    pub(crate) const SPINS: usize = 1;

    pub(crate) fn parking_lot(_: &AtomicU64) -> &'static ParkingLot {
        &LOT
    }
}

mod sys {
    pub(crate) mod total {
        pub(crate) use crate::total::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
        pub(crate) use loom::sync::atomic::{Ordering, fence};
    }

    pub(crate) mod sync {
        pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
        pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
        pub(crate) use loom::thread_local;

        pub(crate) use crate::sync::{since, wait_for};

        pub(crate) fn zeroed(words: usize) -> Box<[AtomicU64]> {
            (0..words).map(|_| AtomicU64::new(0)).collect()
        }
    }
}

/// The transactional memory, whose modules name each other by `super`.
#[path = "../../stm/src"]
mod word_stm {
    pub(crate) mod sync {
        pub(crate) use loom::hint::spin_loop;
        pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
        pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
        pub(crate) use loom::thread::yield_now;
        pub(crate) use loom::thread_local;

        pub(crate) mod total {
            pub(crate) use crate::total::AtomicU64;
        }

        pub(crate) const SPINS: u32 = 1;
    }

    pub(crate) mod access;
    pub(crate) mod actions;
    pub(crate) mod clock;
    pub(crate) mod commit;
    pub(crate) mod contention;
    pub(crate) mod descriptor;
    pub(crate) mod error;
    pub(crate) mod gate;
    pub(crate) mod memory;
    pub(crate) mod mutant;
    pub(crate) mod sink;
    pub(crate) mod stm;
    pub(crate) mod stripes;
    pub(crate) mod thread;
    pub(crate) mod transaction;
    pub(crate) mod word;
    pub(crate) mod write_set;
}

mod blocks;
mod commits;
mod dirty;
mod durable;
mod holds;
mod locks;
mod queues;
mod shared;
mod tickets;
mod total;
mod transactions;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy)]
pub struct Model {
    pub name: &'static str,
    /// Preemptions per order; `None`: unlimited.
    pub preemptions: Option<usize>,
    body: fn(),
}

impl Model {
    /// Runs it in every order; returns the number of orders.
    ///
    /// # Panics
    /// In the first order that breaks a promise.
    #[must_use]
    pub fn run(self) -> u64 {
        let orders = Arc::new(AtomicU64::new(0));
        let count = orders.clone();
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = self.preemptions;
        builder.max_branches = 100_000;
        builder.check(move || {
            count.fetch_add(1, Ordering::Relaxed);
            (self.body)();
        });
        orders.load(Ordering::Relaxed)
    }
}

pub const MODELS: &[Model] = &[
    whole("a bit set during a clear is found", dirty::a_bit_set_during_a_clear_is_found),
    whole(
        "a bit set during a clear of everything is found",
        dirty::a_bit_set_during_a_clear_of_everything_is_found,
    ),
    whole("bits set at once are found", dirty::bits_set_at_once_are_found),
    whole("a hold excludes handlers", dirty::a_hold_excludes_handlers),
    whole("a withdrawn range is left alone", dirty::a_withdrawn_range_is_left_alone),
    whole("a hold sees what handlers set", dirty::a_hold_sees_what_handlers_set),
    bounded(5, "commits of two threads are both kept", commits::commits_of_two_threads_are_both_kept),
    bounded(
        5,
        "a checkpoint beside a commit loses nothing",
        commits::a_checkpoint_beside_a_commit_loses_nothing,
    ),
    bounded(5, "a lane that runs full beside a commit", commits::a_lane_that_runs_full_beside_a_commit),
    bounded(
        2,
        "a failed write fails each batch that it carried",
        commits::a_failed_write_fails_each_batch_that_it_carried::<0>,
    ),
    bounded(2, "so does the second", commits::a_failed_write_fails_each_batch_that_it_carried::<1>),
    whole("a page is never writable without its bit", dirty::a_page_is_never_writable_without_its_bit),
    whole("a handler that waits is woken", dirty::a_handler_that_waits_is_woken),
    whole("a lock in an object has one holder", locks::a_lock_has_one_holder),
    whole("a lock is shared, or exclusive", locks::a_lock_is_shared_or_exclusive),
    whole("a cut holds whole sections", locks::a_cut_holds_whole_sections),
    bounded(2, "a cut beside two sections ends", locks::a_cut_beside_two_sections_ends),
    bounded(
        2,
        "a gate that opens beside a cut lets stores in, and no other cut",
        locks::a_gate_opens_beside_a_cut,
    ),
    bounded(3, "a ticket that was waited for is durable", tickets::a_ticket_that_was_waited_for_is_durable),
    bounded(3, "an expected thread keeps no other waiting", tickets::who_is_expected_keeps_nobody_waiting),
    bounded(3, "so it is where cuts fail", tickets::a_ticket_of_a_failed_round_is_not_taken_for_durable),
    whole("of two frees of a block one is refused", blocks::of_two_frees_one_is_refused),
    bounded(2, "blocks that others freed come back", blocks::blocks_that_others_freed_come_back),
    whole("a block freed while its owner looks comes back", blocks::a_block_freed_while_its_owner_looks),
    whole("a block freed as its owner ends comes back", blocks::a_block_freed_as_its_owner_ends),
    bounded(
        3,
        "what is held still beside a psync is whole, by a word",
        holds::a_held_object_is_whole::<true>,
    ),
    bounded(3, "so it is by locks", holds::a_held_object_is_whole::<false>),
    bounded(
        2,
        "transactions that were acknowledged are durable, in their order",
        durable::acknowledged_transactions_are_durable,
    ),
    bounded(2, "none is acknowledged after a failed write", durable::none_is_acknowledged_after_a_failure),
    bounded(3, "no publication waits for ever", durable::commits_of_those_that_are_expected_end),
    bounded(
        2,
        "a failed write of the second leaves the first",
        durable::the_first_may_be_there_without_the_second,
    ),
    bounded(4, "a transaction sees one state", transactions::a_transaction_sees_one_state),
    bounded(4, "a transaction sees one state in place", transactions::a_transaction_sees_one_state_in_place),
    bounded(4, "undone stores are never seen", transactions::undone_stores_are_never_seen),
    bounded(4, "of two that read what the other changes one is aborted", transactions::no_skew),
    bounded(4, "changes of two transactions are both kept", transactions::changes_are_kept),
    bounded(4, "numbers are in the order of what was read", transactions::numbers_follow_reads),
    bounded(4, "a thread that is alone meets no transaction", transactions::alone_is_alone),
    bounded(4, "an epoch has whole commits", transactions::an_epoch_has_whole_commits),
    bounded(
        2,
        "messages of two producers come once, and sleepers are woken",
        queues::messages_come_once_and_sleepers_are_woken,
    ),
    bounded(2, "a full queue has room again, and its producer is woken", queues::a_full_queue_has_room_again),
    bounded(3, "a slot of a dead producer is left out", queues::a_slot_of_a_dead_producer_is_left_out),
    whole("messages of one producer come in order", queues::messages_of_one_producer_come_in_order),
    bounded(5, "a lane given up while another takes one", commits::a_lane_given_up_while_another_takes_one),
];

const fn whole(name: &'static str, body: fn()) -> Model {
    Model { name, preemptions: None, body }
}

const fn bounded(preemptions: usize, name: &'static str, body: fn()) -> Model {
    Model { name, preemptions: Some(preemptions), body }
}
