//! The STAMP applications (S1.21), written from their description (Cao Minh, Chung, Kozyrakis,
//! Olukotun: "STAMP: Stanford Transactional Applications for Multi-Processing", IISWC 2008).
//!
//! A kernel keeps shared data in words of a [`Memory`]; its input is constant. The same code runs
//! without transactions, in volatile ones and in those of objects. A wrong result is an error.

pub mod arena;
mod bayes;
mod genome;
mod intruder;
mod kmeans;
mod labyrinth;
mod list;
mod map;
mod meeting;
pub mod memory;
mod mesh;
mod network;
mod queue;
pub mod ring;
mod ssca2;
mod store;
#[cfg(test)]
mod tests;
mod vacation;
mod yada;

pub use bayes::Bayes;
pub use genome::Genome;
pub use intruder::Intruder;
pub use kmeans::Kmeans;
pub use labyrinth::Labyrinth;
pub use ssca2::Ssca2;
pub use store::Store;
pub use vacation::Vacation;
pub use yada::Yada;

use meeting::Meeting;
use memory::{Memory, Outcome, Stop, Worker};
use std::ops::Range;
use std::time::Instant;

pub trait Kernel: Sync + Sized {
    const NAME: &'static str;

    fn new(size: usize) -> Self;

    fn load<W: Worker>(&self, worker: &mut W, threads: usize) -> Outcome<()>;

    fn work<W: Worker>(&self, worker: &mut W, part: &Part<'_>) -> Outcome<()>;

    fn check<W: Worker>(&self, worker: &mut W) -> Outcome<()>;
}

pub struct Part<'m> {
    pub number: usize,
    pub threads: usize,
    meeting: &'m Meeting,
}

impl Part<'_> {
    pub fn share(&self, count: usize) -> Range<usize> {
        count * self.number / self.threads..count * (self.number + 1) / self.threads
    }

    pub fn meet(&self) -> Outcome<bool> {
        self.meeting.meet().map(|()| self.number == 0)
    }
}

pub fn run<K: Kernel, M: Memory>(kernel: &K, memory: &M, threads: usize) -> Outcome<f64> {
    kernel.load(&mut memory.worker(), threads)?;
    let meeting = Meeting::new(threads);
    let work = |number: usize| -> Outcome<(Instant, Instant)> {
        let (part, mut worker) = (Part { number, threads, meeting: &meeting }, memory.worker());
        let _leaves = meeting.attended();
        meeting.meet()?;
        let start = Instant::now();
        let done = kernel.work(&mut worker, &part);
        if done.is_err() {
            meeting.cancel();
        }
        done.map(|()| (start, Instant::now()))
    };
    let times: Vec<Outcome<(Instant, Instant)>> = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..threads).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("kernels do not panic")).collect()
    });
    // The cause precedes its effects on other threads.
    let (wrong, right): (Vec<_>, Vec<_>) = times.into_iter().partition(Result::is_err);
    let mut wrong: Vec<Stop> = wrong.into_iter().filter_map(Result::err).collect();
    wrong.sort_by_key(Stop::is_consequence);
    if let Some(first) = wrong.into_iter().next() {
        return Err(first);
    }
    let right: Vec<(Instant, Instant)> = right.into_iter().filter_map(Result::ok).collect();
    let (start, end) = (right.iter().map(|time| time.0).min(), right.iter().map(|time| time.1).max());
    kernel.check(&mut memory.worker())?;
    Ok(start.zip(end).map_or(0, |(start, end)| (end - start).as_nanos()) as f64)
}
