//! yada: refines a mesh until no angle is too small (Ruppert). Medium transactions take most of the
//! time.

use super::arena::Arena;
use super::memory::{LINE, Outcome, WORDS, Words, Worker, ensure};
use super::mesh::{self, How, Judgement, Put, SIDE, Triangle};
use super::queue::Queue;
use super::{Kernel, Part};
use crate::pattern::Random;
use std::collections::BTreeSet;

const WORK: Queue = Queue(LINE);
const REFUSED: u64 = 2 * LINE;
const THREADS: u64 = REFUSED + 1;
/// A triangle of the last change by each thread and the loader, each on its own line.
const LAST: u64 = 3 * LINE;

pub struct Yada {
    points: usize,
}

impl Yada {
    fn arena(threads: usize) -> Arena {
        Arena::new(LAST + (threads as u64 + 1) * LINE, WORDS as u64, threads)
    }

    fn triangles<T: Words>(tx: &mut T, one: u64) -> Outcome<Vec<(u64, Triangle)>> {
        let (mut seen, mut next, mut all) = (BTreeSet::from([one]), vec![one], Vec::new());
        while let Some(at) = next.pop() {
            let triangle = Triangle::read(tx, at)?;
            next.extend(triangle.next.into_iter().filter(|next| *next != 0 && seen.insert(*next)));
            all.push((at, triangle));
        }
        Ok(all)
    }
}

impl Kernel for Yada {
    const NAME: &'static str = "yada";

    fn new(size: usize) -> Self {
        Yada { points: 8 * size }
    }

    fn load<W: Worker>(&self, worker: &mut W, threads: usize) -> Outcome<()> {
        let (arena, mut random) = (Yada::arena(threads), Random::new(1));
        arena.load(worker)?;
        let heap = arena.loader();
        let mut one = worker.atomically(|tx| mesh::square(tx, heap))?;
        for _ in 0..self.points {
            let mut inside = || 1 + random.below(SIDE as u64 - 1) as i64;
            let place = (inside(), inside());
            one = worker.atomically(|tx| {
                let at = mesh::locate(tx, one, place)?;
                match mesh::put(tx, heap, at, place, How::Given)? {
                    Put::In(new) => Ok(new[0]),
                    Put::Encroaches(..) | Put::Refused => Ok(at),
                }
            })?;
        }
        for (at, triangle) in worker.atomically(|tx| Yada::triangles(tx, one))? {
            if triangle.judge() != Judgement::Fine {
                worker.atomically(|tx| WORK.push(tx, heap, at))?;
            }
        }
        worker.atomically(|tx| {
            tx.set(THREADS, threads as u64)?;
            tx.set(LAST, one)
        })
    }

    fn work<W: Worker>(&self, worker: &mut W, part: &Part<'_>) -> Outcome<()> {
        let (heap, last) =
            (Yada::arena(part.threads).heap(part.number), LAST + (part.number as u64 + 1) * LINE);
        while let Some(at) = worker.atomically(|tx| WORK.pop(tx, heap))? {
            worker.atomically(|tx| {
                let (new, refined) = mesh::refine(tx, heap, at)?;
                if !refined {
                    tx.add(REFUSED, 1)?;
                }
                if let Some(first) = new.first() {
                    tx.set(last, *first)?;
                }
                for at in new {
                    if Triangle::alive(tx, at)?.is_some_and(|triangle| triangle.judge() != Judgement::Fine) {
                        WORK.push(tx, heap, at)?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn check<W: Worker>(&self, worker: &mut W) -> Outcome<()> {
        worker.atomically(|tx| {
            let mut one = None;
            for last in 0..=tx.get(THREADS)? {
                let at = tx.get(LAST + last * LINE)?;
                if at != 0 && Triangle::alive(tx, at)?.is_some() {
                    one = Some(at);
                }
            }
            let Some(one) = one else { return ensure(false, || "yada: there is no triangle".into()) };
            let (mut area, refused) = (0, tx.get(REFUSED)?);
            for (at, triangle) in Yada::triangles(tx, one)? {
                let [a, b, c] = triangle.places;
                let own = mesh::area(a, b, c);
                ensure(own > 0, || format!("yada: {triangle:?} is none"))?;
                area += own;
                let judgement = triangle.judge();
                ensure(judgement == Judgement::Fine, || format!("yada: {triangle:?} is {judgement:?}"))?;
                for next in triangle.next.into_iter().filter(|next| *next != 0) {
                    let other = Triangle::read(tx, next)?;
                    ensure(other.next.contains(&at), || {
                        format!("yada: {other:?} does not know {triangle:?}")
                    })?;
                    let inside =
                        other.places.into_iter().any(|place| mesh::in_circle(triangle.places, place));
                    ensure(!inside, || format!("yada: {other:?} is in the circle of {triangle:?}"))?;
                }
            }
            ensure(refused == 0 && area == 2 * i128::from(SIDE).pow(2), || {
                format!("yada: {refused} refused; the triangles have half of {area}")
            })
        })
    }
}
