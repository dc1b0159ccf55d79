//! The loads on this project's transactional memory. `libitm.c` has the same.

use indelible_stm::{Abort, Direct, Stm, Thread, TxWord, Volatile};
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

#[derive(Clone, Copy)]
pub enum Load {
    Change,
    Move,
    Read,
    Mix,
}

impl Load {
    pub fn grows(self) -> u64 {
        match self {
            Load::Change => 1,
            Load::Move | Load::Read => 0,
            Load::Mix => 8,
        }
    }
}

pub const FIRST: u64 = 1000;

#[repr(align(64))]
struct Line(TxWord);

type Outcome<R> = Result<R, Abort<()>>;

pub fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random >> 11
}

fn further(at: u64) -> u64 {
    at.wrapping_mul(25_214_903_917).wrapping_add(11) >> 3
}

#[inline]
fn one(thread: &mut Thread, lines: &[Line], load: Load, seed: u64) -> u64 {
    let word = |at: u64| &lines[at as usize & (lines.len() - 1)].0;
    let done = match load {
        Load::Change => {
            let one = word(seed);
            thread.atomically(|tx| -> Outcome<u64> {
                let value = tx.get(one)?;
                tx.set(one, value + 1)?;
                Ok(0)
            })
        }
        Load::Move => {
            let (one, other) = (word(seed), word(seed >> 16));
            thread.atomically(|tx| -> Outcome<u64> {
                let value = tx.get(one)?;
                tx.set(one, value.wrapping_sub(1))?;
                let value = tx.get(other)?;
                tx.set(other, value.wrapping_add(1))?;
                Ok(0)
            })
        }
        Load::Read => thread.atomically(|tx| -> Outcome<u64> {
            let (mut at, mut sum) = (seed, 0_u64);
            for _ in 0..64 {
                sum = sum.wrapping_add(tx.get(word(at))?);
                at = further(at);
            }
            Ok(sum)
        }),
        Load::Mix => thread.atomically(|tx| -> Outcome<u64> {
            let (mut at, mut sum) = (seed, 0_u64);
            for i in 0..32 {
                let value = tx.get(word(at))?;
                sum = sum.wrapping_add(value);
                if i % 4 == 3 {
                    tx.set(word(at), value + 1)?;
                }
                at = further(at);
            }
            Ok(sum)
        }),
    };
    done.expect("nothing is cancelled").0
}

pub fn run(load: Load, threads: usize, rounds: usize, lines: usize) -> (f64, u64) {
    let lines: Vec<Line> = (0..lines).map(|_| Line(TxWord::new(FIRST))).collect();
    let (stm, ready) = (Stm::new(Direct, Volatile), Barrier::new(threads));
    let work = |number: usize| {
        let (mut thread, mut random, mut sum) = (stm.thread(), 0x9e37_79b9 + number as u64, 0_u64);
        ready.wait();
        let start = Instant::now();
        for _ in 0..rounds {
            let seed = next(&mut random);
            sum = black_box(sum.wrapping_add(one(&mut thread, &lines, load, seed)));
        }
        (start, Instant::now())
    };
    let times: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..threads).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("loads do not panic")).collect()
    });
    let (start, end) = (times.iter().map(|time| time.0).min(), times.iter().map(|time| time.1).max());
    let nanoseconds = start.zip(end).map_or(0, |(start, end)| (end - start).as_nanos());
    let sum = lines.into_iter().fold(0_u64, |sum, line| sum.wrapping_add(line.0.into_inner()));
    (nanoseconds as f64, sum)
}
