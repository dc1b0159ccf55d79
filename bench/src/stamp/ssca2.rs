//! ssca2: builds adjacency arrays of a directed graph, the benchmark's first kernel. Very short
//! transactions with few conflicts.

use super::memory::{LINE, Outcome, Words, Worker, ensure};
use super::{Kernel, Part};
use crate::pattern::Random;

const DEGREE: usize = 8;
/// Nodes of a group, which half of the edges stay in.
const GROUP: u64 = 16;
const FIRST: u64 = LINE;

pub struct Ssca2 {
    nodes: usize,
    edges: Vec<[u64; 2]>,
}

/// The arrays of one direction: degrees, starts of the nodes' parts, filled counts, and neighbours.
#[derive(Clone, Copy)]
struct Arrays {
    at: u64,
    nodes: u64,
}

impl Arrays {
    fn count(self, node: u64) -> u64 {
        self.at + node
    }

    fn begin(self, node: u64) -> u64 {
        self.at + self.nodes + node
    }

    fn filled(self, node: u64) -> u64 {
        self.at + 2 * self.nodes + node
    }

    fn array(self) -> u64 {
        self.at + 3 * self.nodes
    }
}

impl Ssca2 {
    fn arrays(&self) -> [Arrays; 2] {
        let (nodes, edges) = (self.nodes as u64, self.edges.len() as u64);
        [FIRST, FIRST + (3 * nodes + edges).next_multiple_of(LINE)].map(|at| Arrays { at, nodes })
    }

    fn begin<W: Worker>(&self, worker: &mut W, arrays: Arrays) -> Outcome<()> {
        let counts = worker.read(arrays.count(0)..arrays.count(self.nodes as u64))?;
        let begins = counts.iter().scan(0, |next, count| {
            let begin = *next;
            *next += count;
            Some(begin)
        });
        let begins: Vec<u64> = begins.collect();
        worker.write(arrays.begin(0), &begins)
    }
}

impl Kernel for Ssca2 {
    const NAME: &'static str = "ssca2";

    fn new(size: usize) -> Self {
        let (nodes, mut random) = (32 * size, Random::new(1));
        let edge = |number: usize| {
            let from = random.below(nodes as u64);
            let to = match number % 2 {
                0 => from / GROUP * GROUP + random.below(GROUP),
                _ => random.below(nodes as u64),
            };
            [from, to]
        };
        Ssca2 { nodes, edges: (0..DEGREE * nodes).map(edge).collect() }
    }

    fn load<W: Worker>(&self, _worker: &mut W, _threads: usize) -> Outcome<()> {
        Ok(())
    }

    fn work<W: Worker>(&self, worker: &mut W, part: &Part<'_>) -> Outcome<()> {
        let (directions, own) = (self.arrays(), part.share(self.edges.len()));
        for edge in &self.edges[own.clone()] {
            for (arrays, node) in directions.iter().zip(edge) {
                worker.atomically(|tx| tx.add(arrays.count(*node), 1).map(drop))?;
            }
        }
        if part.meet()? {
            directions.iter().try_for_each(|arrays| self.begin(worker, *arrays))?;
        }
        part.meet()?;
        for edge in &self.edges[own] {
            for (arrays, (node, other)) in directions.iter().zip([(edge[0], edge[1]), (edge[1], edge[0])]) {
                worker.atomically(|tx| {
                    let place = tx.get(arrays.begin(node))? + tx.add(arrays.filled(node), 1)? - 1;
                    tx.set(arrays.array() + place, other + 1)
                })?;
            }
        }
        Ok(())
    }

    fn check<W: Worker>(&self, worker: &mut W) -> Outcome<()> {
        for (direction, arrays) in self.arrays().into_iter().enumerate() {
            let array = worker.read(arrays.array()..arrays.array() + self.edges.len() as u64)?;
            let counts = worker.read(arrays.count(0)..arrays.count(self.nodes as u64))?;
            let nodes = counts
                .iter()
                .enumerate()
                .flat_map(|(node, count)| std::iter::repeat_n(node as u64, *count as usize));
            let mut found: Vec<[u64; 2]> =
                nodes.zip(array).map(|(node, other)| [node, other.wrapping_sub(1)]).collect();
            let mut edges: Vec<[u64; 2]> =
                self.edges.iter().map(|edge| [edge[direction], edge[1 - direction]]).collect();
            found.sort_unstable();
            edges.sort_unstable();
            ensure(found == edges, || format!("ssca2: other edges in direction {direction}"))?;
        }
        Ok(())
    }
}
