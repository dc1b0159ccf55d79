//! bayes: learns a Bayesian network from records by hill climbing. Most time is outside of
//! transactions. Records are counted by words of bits, not a tree of counts.

use super::arena::{Arena, Heap};
use super::list::List;
use super::memory::{LINE, Outcome, WORDS, Words, Worker, ensure};
use super::network::{PARENTS, Records};
use super::{Kernel, Part};

/// Changes to make, the best first: gain and variable, parent.
const TASKS: List = List(LINE);
/// Per variable, on its own line: parents as bits, and score.
const VARIABLES: u64 = 2 * LINE;
const VARIABLE: u64 = LINE;
const NUMBER: u64 = 63;

pub struct Bayes(Records);

fn parents(variable: usize) -> u64 {
    VARIABLES + variable as u64 * VARIABLE
}

fn depends(network: &[u64], on: usize, variable: usize) -> bool {
    let (mut seen, mut next) = (1_u64 << variable, 1_u64 << variable);
    while next != 0 {
        let one = next.trailing_zeros() as usize;
        next &= next - 1;
        next |= network[one] & !seen;
        seen |= network[one];
    }
    seen >> on & 1 == 1
}

impl Bayes {
    fn arena(&self, threads: usize) -> Arena {
        Arena::new(parents(self.0.variables()), WORDS as u64, threads)
    }

    fn network<T: Words>(&self, tx: &mut T) -> Outcome<Vec<u64>> {
        (0..self.0.variables()).map(|variable| tx.get(parents(variable))).collect()
    }

    fn best(&self, network: &[u64], variable: usize, score: f64) -> Option<(usize, f64)> {
        if network[variable].count_ones() >= PARENTS {
            return None;
        }
        let may =
            |parent: &usize| network[variable] >> parent & 1 == 0 && !depends(network, variable, *parent);
        let gains = (0..self.0.variables())
            .filter(may)
            .map(|parent| (parent, self.0.score(variable, network[variable] | 1 << parent) - score));
        gains.filter(|(_, gain)| *gain > 0.0).max_by(|one, other| one.1.total_cmp(&other.1))
    }

    fn seek<W: Worker>(&self, worker: &mut W, heap: Heap, variable: usize) -> Outcome<()> {
        let (network, score) = worker
            .atomically(|tx| Ok((self.network(tx)?, f64::from_bits(tx.get(parents(variable) + 1)?))))?;
        let Some((parent, gain)) = self.best(&network, variable, score) else { return Ok(()) };
        let key = !gain.to_bits() & !NUMBER | variable as u64;
        worker.atomically(|tx| TASKS.insert(tx, heap, key, parent as u64).map(drop))
    }
}

impl Kernel for Bayes {
    const NAME: &'static str = "bayes";

    fn new(size: usize) -> Self {
        Bayes(Records::make((8 + size).min(60), 64 * (8 + size)))
    }

    fn load<W: Worker>(&self, worker: &mut W, threads: usize) -> Outcome<()> {
        self.arena(threads).load(worker)
    }

    fn work<W: Worker>(&self, worker: &mut W, part: &Part<'_>) -> Outcome<()> {
        let heap = self.arena(part.threads).heap(part.number);
        for variable in part.share(self.0.variables()) {
            let score = self.0.score(variable, 0);
            worker.atomically(|tx| tx.set(parents(variable) + 1, score.to_bits()))?;
            self.seek(worker, heap, variable)?;
        }
        part.meet()?;
        while let Some((key, parent)) = worker.atomically(|tx| TASKS.pop(tx, heap))? {
            let (variable, parent) = ((key & NUMBER) as usize, parent as usize);
            let own = worker.atomically(|tx| tx.get(parents(variable)))? | 1 << parent;
            let score = self.0.score(variable, own);
            worker.atomically(|tx| {
                let network = self.network(tx)?;
                if depends(&network, variable, parent) {
                    return Ok(());
                }
                tx.set(parents(variable), own)?;
                tx.set(parents(variable) + 1, score.to_bits())
            })?;
            self.seek(worker, heap, variable)?;
        }
        Ok(())
    }

    fn check<W: Worker>(&self, worker: &mut W) -> Outcome<()> {
        let variables = 0..self.0.variables();
        let (network, scores) = worker.atomically(|tx| {
            let scores = variables.clone().map(|variable| tx.get(parents(variable) + 1));
            let scores = scores.collect::<Outcome<Vec<_>>>()?;
            Ok((self.network(tx)?, scores))
        })?;
        ensure(network.iter().any(|parents| *parents != 0), || "bayes: nothing was learned".into())?;
        for variable in variables {
            let score = self.0.score(variable, network[variable]);
            ensure(score.to_bits() == scores[variable], || {
                format!("bayes: the score of {variable} is another")
            })?;
            let above = (0..self.0.variables())
                .find(|parent| network[variable] >> parent & 1 == 1 && depends(&network, variable, *parent));
            ensure(above.is_none(), || format!("bayes: {variable} depends on itself by {above:?}"))?;
            let better = self.best(&network, variable, score);
            ensure(better.is_none(), || format!("bayes: {variable} would be better with {better:?}"))?;
        }
        Ok(())
    }
}
