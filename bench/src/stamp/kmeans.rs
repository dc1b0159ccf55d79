//! kmeans: clusters points. Most time is outside of transactions, which add a point to its
//! cluster's sums.
//!
//! Integer coordinates make sums, and the result, independent of the order.

use super::memory::{LINE, Outcome, Words, Worker, ensure};
use super::{Kernel, Part};
use crate::pattern::Random;

const DIMENSIONS: usize = 16;
const CLUSTERS: usize = 15;
const CHUNK: u64 = 4;
const MOST_ROUNDS: u64 = 50;

/// Next point; moved points; finished rounds; whether it is over.
const NEXT: u64 = LINE;
const MOVED: u64 = 2 * LINE;
const ROUNDS: u64 = 3 * LINE;
const OVER: u64 = 4 * LINE;
/// Coordinates of the centers; each cluster's points and sums; each point's cluster, from 1.
const CENTERS: u64 = 5 * LINE;
const SUMS: u64 = CENTERS + (CLUSTERS * DIMENSIONS) as u64;
const SUM: u64 = (1 + DIMENSIONS as u64).next_multiple_of(LINE);
const MEMBERS: u64 = SUMS + CLUSTERS as u64 * SUM;

type Point = [u64; DIMENSIONS];

pub struct Kmeans(Vec<Point>);

fn distance(a: &[u64], b: &[u64]) -> u64 {
    a.iter().zip(b).map(|(a, b)| a.abs_diff(*b).pow(2)).sum()
}

fn nearest(point: &Point, centers: &[u64]) -> usize {
    let centers = centers.chunks_exact(DIMENSIONS).map(|center| distance(point, center));
    centers.enumerate().min_by_key(|(_, distance)| *distance).map_or(0, |(cluster, _)| cluster)
}

impl Kmeans {
    fn is_over(&self, moved: u64, rounds: u64) -> bool {
        moved * 1000 <= self.0.len() as u64 || rounds >= MOST_ROUNDS
    }

    fn add<W: Worker>(&self, worker: &mut W, number: u64, cluster: usize) -> Outcome<bool> {
        let (point, sum) = (&self.0[number as usize], SUMS + cluster as u64 * SUM);
        worker.atomically(|tx| {
            tx.add(sum, 1)?;
            for (at, coordinate) in (sum + 1..).zip(point) {
                tx.add(at, *coordinate)?;
            }
            let moved = tx.get(MEMBERS + number)? != cluster as u64 + 1;
            if moved {
                tx.set(MEMBERS + number, cluster as u64 + 1)?;
            }
            Ok(moved)
        })
    }

    fn settle<W: Worker>(&self, worker: &mut W) -> Outcome<()> {
        worker.atomically(|tx| {
            for cluster in 0..CLUSTERS as u64 {
                let (sum, center) = (SUMS + cluster * SUM, CENTERS + cluster * DIMENSIONS as u64);
                let count = tx.get(sum)?;
                tx.set(sum, 0)?;
                for dimension in 0..DIMENSIONS as u64 {
                    let total = tx.get(sum + 1 + dimension)?;
                    tx.set(sum + 1 + dimension, 0)?;
                    if let Some(mean) = total.checked_div(count) {
                        tx.set(center + dimension, mean)?;
                    }
                }
            }
            let (moved, rounds) = (tx.get(MOVED)?, tx.add(ROUNDS, 1)?);
            tx.set(MOVED, 0)?;
            tx.set(NEXT, 0)?;
            tx.set(OVER, u64::from(self.is_over(moved, rounds)))
        })
    }

    fn expected(&self) -> (Vec<u64>, u64) {
        let mut centers: Vec<u64> = self.0[..CLUSTERS].concat();
        let (mut members, mut rounds) = (vec![0; self.0.len()], 0);
        loop {
            let (mut sums, mut counts, mut moved) = ([[0; DIMENSIONS]; CLUSTERS], [0; CLUSTERS], 0);
            for (point, member) in self.0.iter().zip(&mut members) {
                let cluster = nearest(point, &centers);
                moved += u64::from(*member != cluster + 1);
                *member = cluster + 1;
                counts[cluster] += 1;
                sums[cluster].iter_mut().zip(point).for_each(|(sum, coordinate)| *sum += coordinate);
            }
            for (center, (sum, count)) in centers.chunks_exact_mut(DIMENSIONS).zip(sums.iter().zip(counts)) {
                if count > 0 {
                    center.iter_mut().zip(sum).for_each(|(center, sum)| *center = sum / count);
                }
            }
            rounds += 1;
            if self.is_over(moved, rounds) {
                return (centers, rounds);
            }
        }
    }
}

impl Kernel for Kmeans {
    const NAME: &'static str = "kmeans";

    fn new(size: usize) -> Self {
        let mut random = Random::new(1);
        let middles: Vec<Point> =
            (0..CLUSTERS).map(|_| std::array::from_fn(|_| 3000 + random.below(60_000))).collect();
        let near = |_| {
            let middle = middles[random.below(CLUSTERS as u64) as usize];
            middle.map(|coordinate| coordinate - 3000 + random.below(3000) + random.below(3000))
        };
        Kmeans((0..64 * size).map(near).collect())
    }

    fn load<W: Worker>(&self, worker: &mut W, _threads: usize) -> Outcome<()> {
        worker.write(CENTERS, &self.0[..CLUSTERS].concat())
    }

    fn work<W: Worker>(&self, worker: &mut W, part: &Part<'_>) -> Outcome<()> {
        loop {
            let centers = worker.read(CENTERS..SUMS)?;
            let mut moved = 0;
            loop {
                let first = worker.atomically(|tx| Ok(tx.add(NEXT, CHUNK)? - CHUNK))?;
                let points = first..(first + CHUNK).min(self.0.len() as u64);
                if points.is_empty() {
                    break;
                }
                for number in points {
                    let cluster = nearest(&self.0[number as usize], &centers);
                    moved += u64::from(self.add(worker, number, cluster)?);
                }
            }
            worker.atomically(|tx| tx.add(MOVED, moved).map(drop))?;
            if part.meet()? {
                self.settle(worker)?;
            }
            part.meet()?;
            if worker.atomically(|tx| tx.get(OVER))? != 0 {
                return Ok(());
            }
        }
    }

    fn check<W: Worker>(&self, worker: &mut W) -> Outcome<()> {
        let (centers, rounds) = self.expected();
        let (found, after) = (worker.read(CENTERS..SUMS)?, worker.atomically(|tx| tx.get(ROUNDS))?);
        ensure(found == centers && after == rounds, || {
            format!("kmeans: other centers after {after} rounds than after {rounds} by one thread")
        })
    }
}
