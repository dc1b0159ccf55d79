//! genome: reassembles a gene from overlapping segments. Many short transactions on hash tables:
//! ends are matched with beginnings, the longest overlaps first.

use super::arena::Arena;
use super::list::List;
use super::memory::{LINE, Outcome, WORDS, Words, Worker, ensure};
use super::{Kernel, Part};
use crate::pattern::Random;
use std::collections::BTreeSet;

const SEGMENT: usize = 32;
/// The least overlap of adjacent segments. No stretch of this length repeats in a gene.
const LEAST: usize = 20;

const UNIQUE: u64 = LINE;
const FIRST: u64 = 2 * LINE;

pub struct Genome {
    gene: Vec<u8>,
    segments: Vec<u64>,
}

fn packed(nucleotides: &[u8]) -> u64 {
    nucleotides.iter().fold(0, |word, nucleotide| word << 2 | u64::from(*nucleotide))
}

fn first(segment: u64, length: usize) -> u64 {
    segment >> (2 * (SEGMENT - length))
}

fn last(segment: u64, length: usize) -> u64 {
    segment & ((1 << (2 * length)) - 1)
}

impl Genome {
    fn lists(&self) -> u64 {
        (self.gene.len() as u64).next_power_of_two()
    }

    fn list(&self, key: u64) -> List {
        List(FIRST + (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % self.lists())
    }

    /// Per segment: itself; its follower's number from 1, above the length of their overlap;
    /// whether it follows one.
    fn segment(&self, number: u64) -> u64 {
        FIRST + self.lists() + number
    }

    fn follower(&self, number: u64) -> u64 {
        self.segment(number) + self.gene.len() as u64
    }

    fn follows(&self, number: u64) -> u64 {
        self.follower(number) + self.gene.len() as u64
    }

    fn result(&self) -> u64 {
        self.follows(self.gene.len() as u64)
    }

    fn arena(&self, threads: usize) -> Arena {
        Arena::new(self.result() + 1 + self.gene.len() as u64 / 32 + 1, WORDS as u64, threads)
    }

    fn matched<W: Worker>(&self, worker: &mut W, part: &Part<'_>, length: usize) -> Outcome<()> {
        let heap = self.arena(part.threads).heap(part.number);
        let count = worker.atomically(|tx| tx.get(UNIQUE))?;
        let own = part.share(count as usize);
        for number in own.start as u64..own.end as u64 {
            let once = worker.atomically(|tx| {
                if tx.get(self.follows(number))? != 0 {
                    return Ok(true);
                }
                let key = first(tx.get(self.segment(number))?, length);
                self.list(key).insert(tx, heap, key, number)
            })?;
            ensure(once, || format!("genome: two segments begin with the same {length}"))?;
        }
        part.meet()?;
        for number in own.start as u64..own.end as u64 {
            worker.atomically(|tx| {
                if tx.get(self.follower(number))? != 0 {
                    return Ok(());
                }
                let key = last(tx.get(self.segment(number))?, length);
                let Some(next) = self.list(key).find(tx, key)? else { return Ok(()) };
                if next == number || tx.get(self.follows(next))? != 0 {
                    return Ok(());
                }
                tx.set(self.follows(next), 1)?;
                tx.set(self.follower(number), (length as u64) << 32 | (next + 1))
            })?;
        }
        part.meet()?;
        for list in part.share(self.lists() as usize) {
            worker.atomically(|tx| List(FIRST + list as u64).clear(tx, heap))?;
        }
        part.meet().map(drop)
    }

    fn put_together<W: Worker>(&self, worker: &mut W) -> Outcome<()> {
        let count = worker.atomically(|tx| tx.get(UNIQUE))?;
        let segments = worker.read(self.segment(0)..self.segment(count))?;
        let followers = worker.read(self.follower(0)..self.follower(count))?;
        let follows = worker.read(self.follows(0)..self.follows(count))?;
        let nucleotides = |segment: u64, from: usize| {
            (from..SEGMENT).map(move |at| (segment >> (2 * (SEGMENT - 1 - at))) as u8 & 3)
        };
        let mut gene = Vec::new();
        for begin in (0..count as usize).filter(|number| follows[*number] == 0) {
            gene.extend(nucleotides(segments[begin], 0));
            let mut follower = followers[begin];
            while follower != 0 && gene.len() <= self.gene.len() {
                let next = (follower & 0xffff_ffff) as usize - 1;
                gene.extend(nucleotides(segments[next], (follower >> 32) as usize));
                follower = followers[next];
            }
        }
        gene.truncate(self.gene.len());
        let words: Vec<u64> = [gene.len() as u64].into_iter().chain(gene.chunks(32).map(packed)).collect();
        worker.write(self.result(), &words)
    }
}

impl Kernel for Genome {
    const NAME: &'static str = "genome";

    fn new(size: usize) -> Self {
        let length = 128 * size;
        let gene = (1..)
            .map(|seed| {
                let mut random = Random::new(seed);
                (0..length).map(|_| random.below(4) as u8).collect::<Vec<u8>>()
            })
            .find(|gene| {
                let stretches: BTreeSet<u64> = gene.windows(LEAST).map(packed).collect();
                stretches.len() == gene.len() + 1 - LEAST
            })
            .unwrap_or_default();
        let (mut random, end) = (Random::new(1), length - SEGMENT);
        let mut starts: Vec<usize> = (0..4 * length).map(|_| random.below(end as u64 + 1) as usize).collect();
        starts.extend((0..=end).step_by(SEGMENT - LEAST).chain([end]));
        random.shuffle(&mut starts);
        let segments = starts.iter().map(|start| packed(&gene[*start..start + SEGMENT])).collect();
        Genome { gene, segments }
    }

    fn load<W: Worker>(&self, worker: &mut W, threads: usize) -> Outcome<()> {
        self.arena(threads).load(worker)
    }

    fn work<W: Worker>(&self, worker: &mut W, part: &Part<'_>) -> Outcome<()> {
        let heap = self.arena(part.threads).heap(part.number);
        for number in part.share(self.segments.len()) {
            let segment = self.segments[number];
            worker.atomically(|tx| self.list(segment).insert(tx, heap, segment, 0))?;
        }
        if part.meet()? {
            let mut count = 0;
            for list in 0..self.lists() {
                count = worker.atomically(|tx| {
                    let mut count = count;
                    for (segment, _) in List(FIRST + list).entries(tx)? {
                        tx.set(self.segment(count), segment)?;
                        count += 1;
                    }
                    List(FIRST + list).clear(tx, heap)?;
                    Ok(count)
                })?;
            }
            worker.atomically(|tx| tx.set(UNIQUE, count))?;
        }
        part.meet()?;
        for length in (LEAST..SEGMENT).rev() {
            self.matched(worker, part, length)?;
        }
        if part.number == 0 { self.put_together(worker) } else { Ok(()) }
    }

    fn check<W: Worker>(&self, worker: &mut W) -> Outcome<()> {
        let words: Vec<u64> = self.gene.chunks(32).map(packed).collect();
        let found = worker.read(self.result()..self.result() + 1 + words.len() as u64)?;
        let right = found[0] == self.gene.len() as u64 && found[1..] == words;
        ensure(right, || format!("genome: {} nucleotides, and not the gene of {}", found[0], self.gene.len()))
    }
}
