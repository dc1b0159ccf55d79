//! labyrinth: lays disjoint paths through a grid (Lee). Long transactions read the whole grid; a
//! way is sought in that copy, and laid if its cells are still free.

use super::memory::{LINE, Outcome, Words, Worker, ensure};
use super::{Kernel, Part};
use crate::pattern::Random;
use std::collections::VecDeque;

const NEXT: u64 = LINE;
const GRID: u64 = 2 * LINE;
const DEPTH: usize = 3;
const NO_WAY: u64 = u64::MAX;

pub struct Labyrinth {
    side: usize,
    paths: Vec<(usize, usize)>,
}

impl Labyrinth {
    fn cells(&self) -> usize {
        self.side * self.side * DEPTH
    }

    fn length(&self, path: usize) -> u64 {
        GRID + (self.cells() + path) as u64
    }

    fn mark(path: usize) -> u64 {
        path as u64 + 1
    }

    fn neighbours(&self, cell: usize) -> impl Iterator<Item = usize> + use<> {
        let (side, level) = (self.side, self.side * self.side);
        let (x, y, z) = (cell % side, cell / side % side, cell / level);
        let ways = [
            (x > 0, cell.wrapping_sub(1)),
            (x + 1 < side, cell + 1),
            (y > 0, cell.wrapping_sub(side)),
            (y + 1 < side, cell + side),
            (z > 0, cell.wrapping_sub(level)),
            (z + 1 < DEPTH, cell + level),
        ];
        ways.into_iter().filter_map(|(is_there, cell)| is_there.then_some(cell))
    }

    fn way(&self, grid: &[u64], (from, to): (usize, usize)) -> Option<Vec<usize>> {
        let mut before = vec![usize::MAX; grid.len()];
        before[from] = from;
        let mut next = VecDeque::from([from]);
        while let Some(cell) = next.pop_front() {
            if cell == to {
                let mut way = vec![to];
                while way[way.len() - 1] != from {
                    way.push(before[way[way.len() - 1]]);
                }
                return Some(way);
            }
            for near in self.neighbours(cell) {
                if before[near] == usize::MAX && (grid[near] == 0 || near == to) {
                    before[near] = cell;
                    next.push_back(near);
                }
            }
        }
        None
    }

    fn lay<W: Worker>(&self, worker: &mut W, path: usize, way: &[usize]) -> Outcome<bool> {
        worker.atomically(|tx| {
            let between = || way[1..way.len() - 1].iter().map(|cell| GRID + *cell as u64);
            for at in between() {
                if tx.get(at)? != 0 {
                    return Ok(false);
                }
            }
            between().try_for_each(|at| tx.set(at, Labyrinth::mark(path)))?;
            tx.set(self.length(path), way.len() as u64)?;
            Ok(true)
        })
    }
}

impl Kernel for Labyrinth {
    const NAME: &'static str = "labyrinth";

    fn new(size: usize) -> Self {
        let side = 8 + 2 * size;
        let mut cells: Vec<usize> = (0..side * side * DEPTH).collect();
        Random::new(1).shuffle(&mut cells);
        let paths = cells.chunks_exact(2).take(side).map(|ends| (ends[0], ends[1])).collect();
        Labyrinth { side, paths }
    }

    fn load<W: Worker>(&self, worker: &mut W, _threads: usize) -> Outcome<()> {
        for (path, (from, to)) in self.paths.iter().enumerate() {
            worker.atomically(|tx| {
                tx.set(GRID + *from as u64, Labyrinth::mark(path))?;
                tx.set(GRID + *to as u64, Labyrinth::mark(path))
            })?;
        }
        Ok(())
    }

    fn work<W: Worker>(&self, worker: &mut W, _part: &Part<'_>) -> Outcome<()> {
        loop {
            let path = worker.atomically(|tx| Ok(tx.add(NEXT, 1)? - 1))? as usize;
            let Some(ends) = self.paths.get(path) else { return Ok(()) };
            loop {
                let cells = GRID..GRID + self.cells() as u64;
                let grid = worker
                    .atomically(|tx| cells.clone().map(|at| tx.get(at)).collect::<Outcome<Vec<_>>>())?;
                let Some(way) = self.way(&grid, *ends) else {
                    worker.atomically(|tx| tx.set(self.length(path), NO_WAY))?;
                    break;
                };
                if self.lay(worker, path, &way)? {
                    break;
                }
            }
        }
    }

    fn check<W: Worker>(&self, worker: &mut W) -> Outcome<()> {
        let grid = worker.read(GRID..GRID + self.cells() as u64)?;
        let lengths = worker.read(self.length(0)..self.length(self.paths.len()))?;
        let mut laid = 0;
        for (path, ((from, to), length)) in self.paths.iter().zip(&lengths).enumerate() {
            let own = |cell: usize| grid[cell] == Labyrinth::mark(path);
            let count = (0..grid.len()).filter(|cell| own(*cell)).count() as u64;
            let picture: Vec<u64> = (0..grid.len()).map(|cell| u64::from(!own(cell))).collect();
            let way = self.way(&picture, (*from, *to)).map_or(0, |way| way.len() as u64);
            let right = if *length == NO_WAY { count == 2 } else { count == *length && way == *length };
            ensure(right, || {
                format!("labyrinth: path {path} has {count} cells, {way} in a row, of {length}")
            })?;
            laid += usize::from(*length != NO_WAY);
        }
        ensure(2 * laid >= self.paths.len(), || format!("labyrinth: {laid} paths of {}", self.paths.len()))
    }
}
