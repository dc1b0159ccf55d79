use crate::commits::{attach, begin_on_disk, recovered, spawn};
use crate::error::StoreError;
use crate::store::{ChangedLine, Commits};
use std::sync::Arc;
use std::time::Duration;

/// Two threads commit to their own objects as numbers 1 and 2. `WRITES`: durable writes that
/// succeed.
fn two_commits<const WRITES: u32>() {
    spawn(|| {
        let (medium, disk, store) = begin_on_disk();
        let (a, b) = (attach(&store, "a"), attach(&store, "b"));
        let slots = [a.object().offset, b.object().offset];
        let commits = Arc::new(Commits::default());
        commits.join(a).unwrap();
        commits.join(b).unwrap();
        if WRITES < 2 {
            disk.fail_after(WRITES);
        }
        let commit = move |commits: &Commits, number: u64| {
            let object = slots[number as usize - 1];
            let line = ChangedLine { object, offset: 64, bytes: [number as u8; 64] };
            match commits.tell(number, vec![line]) {
                Ok(()) => commits.wait(number),
                Err(error) => {
                    commits.skip(number);
                    Err(error)
                }
            }
        };
        let others = commits.clone();
        let thread = spawn(move || commit(&others, 2).is_ok());
        let first = commit(&commits, 1).is_ok();
        let done = [first, thread.join().unwrap()];
        let failed = done.contains(&false);
        assert_eq!(failed, matches!(commits.check(), Err(StoreError::Poisoned)));
        assert!(failed || commits.flush().is_ok());
        assert!(WRITES > 0 || failed);
        std::mem::forget(commits);
        // A failed write leaves nothing. The commits found are a prefix with all acknowledged ones.
        let found = [recovered(&medium, "a", 1) == 1, recovered(&medium, "b", 1) == 2];
        assert_eq!(found, done);
        assert!(found[0] || !found[1], "the second is there without the first");
    })
    .join()
    .unwrap();
}

/// No publication waits for ever, even for a thread that has not noticed its last commit's
/// durability.
pub(crate) fn commits_of_those_that_are_expected_end() {
    spawn(|| {
        let (medium, _, store) = begin_on_disk();
        let writer = attach(&store, "a");
        let object = writer.object().offset;
        let commits = Arc::new(Commits::with_pace(Duration::from_secs(3600)));
        commits.join(writer).unwrap();
        let commit = move |commits: &Commits, number: u64| {
            let line = ChangedLine { object, offset: 64, bytes: [number as u8; 64] };
            commits.tell(number, vec![line]).unwrap();
            commits.wait(number).unwrap();
        };
        let others = commits.clone();
        let thread = spawn(move || [2, 4, 5].into_iter().for_each(|number| commit(&others, number)));
        [1, 3].into_iter().for_each(|number| commit(&commits, number));
        thread.join().unwrap();
        std::mem::forget(commits);
        assert_eq!(recovered(&medium, "a", 1), 5, "the newest was acknowledged");
    })
    .join()
    .unwrap();
}

pub(crate) fn acknowledged_transactions_are_durable() {
    two_commits::<2>();
}

pub(crate) fn none_is_acknowledged_after_a_failure() {
    two_commits::<0>();
}

pub(crate) fn the_first_may_be_there_without_the_second() {
    two_commits::<1>();
}
