//! Parallel work with ordered results.
//!
//! The calling thread makes the pieces and takes the results. At most [`AHEAD`] pieces a thread are
//! in between, which bounds the memory.

use crate::error::Result;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, Scope, available_parallelism, scope};

/// More would wait for the disk.
const MOST: usize = 8;
/// A thread's pieces whose results are not taken yet.
const AHEAD: usize = 4;

/// Applies `work` to the pieces, on a thread for each core. `take` gets the results in order.
///
/// # Errors
/// The first of `take`; it gets no later result.
pub(crate) fn in_order<P: Send, R: Send>(
    pieces: impl Iterator<Item = P>,
    work: impl Fn(P) -> R + Sync,
    mut take: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let threads = available_parallelism().map_or(1, usize::from).min(MOST);
    if threads == 1 {
        return pieces.map(work).try_for_each(take);
    }
    scope(|scope| {
        let begun: io::Result<Vec<_>> = (0..threads).map(|_| begin(scope, &work)).collect();
        match begun {
            Ok(workers) => share(pieces, &workers, &mut take),
            // The system refuses a thread.
            Err(_) => pieces.map(&work).try_for_each(&mut take),
        }
    })
}

/// New ones cost a fault for each page.
#[derive(Default)]
pub(crate) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// `len` bytes of any content.
    pub(crate) fn take(&self, len: usize) -> Vec<u8> {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        buffer.resize(len, 0);
        buffer
    }

    pub(crate) fn give(&self, buffer: Vec<u8>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

type Worker<P, R> = (SyncSender<P>, Receiver<R>);

/// Ends with the pieces, or when results are no longer taken.
fn begin<'s, P: Send + 's, R: Send + 's>(
    scope: &'s Scope<'s, '_>,
    work: &'s (impl Fn(P) -> R + Sync),
) -> io::Result<Worker<P, R>> {
    let (pieces, own) = sync_channel(AHEAD);
    let (done, results) = sync_channel(AHEAD);
    let run = move || {
        for piece in own {
            if done.send(work(piece)).is_err() {
                return;
            }
        }
    };
    Builder::new().spawn_scoped(scope, run)?;
    Ok((pieces, results))
}

/// If a worker panics, this ends early, and the scope panics.
fn share<P, R>(
    pieces: impl Iterator<Item = P>,
    workers: &[Worker<P, R>],
    take: &mut dyn FnMut(R) -> Result<()>,
) -> Result<()> {
    let (mut given, mut taken) = (0, 0);
    let worker = |number: usize| &workers[number % workers.len()];
    for piece in pieces {
        if given - taken == workers.len() * AHEAD {
            let Ok(result) = worker(taken).1.recv() else { return Ok(()) };
            take(result)?;
            taken += 1;
        }
        if worker(given).0.send(piece).is_err() {
            return Ok(());
        }
        given += 1;
    }
    for number in taken..given {
        let Ok(result) = worker(number).1.recv() else { return Ok(()) };
        take(result)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::BackupError;

    fn on_three<R: Send>(
        count: u32,
        work: impl Fn(u32) -> R + Sync,
        mut take: impl FnMut(R) -> Result<()>,
    ) -> Result<()> {
        scope(|scope| {
            let workers: Vec<_> = (0..3).map(|_| begin(scope, &work).unwrap()).collect();
            share(0..count, &workers, &mut take)
        })
    }

    #[test]
    fn results_come_in_order() {
        for count in [0, 1, 2, 12, 13, 1000] {
            let mut taken = Vec::new();
            let done = on_three(
                count,
                |n| n * 3,
                |n| {
                    taken.push(n);
                    Ok(())
                },
            );
            assert!(done.is_ok() && taken.into_iter().eq((0..count).map(|n| n * 3)), "{count}");
        }
    }

    #[test]
    fn an_error_of_a_worker_is_the_error_of_the_call_and_nothing_is_taken_after_it() {
        let mut taken = 0;
        let work = |n: u32| if n == 500 { Err(BackupError::NoObject(n.to_string())) } else { Ok(()) };
        let done = on_three(1000, work, |result: Result<()>| {
            taken += 1;
            result
        });
        assert!(matches!(done, Err(BackupError::NoObject(piece)) if piece == "500"));
        assert_eq!(taken, 501);
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_is_not_taken_for_the_end() {
        let _ = on_three(100, |n| assert!(n < 50), Ok);
    }
}
