//! A network of dependent variables: records made by one, and the score of a variable's parents.

use crate::pattern::Random;

pub const PARENTS: u32 = 4;
const MADE: u64 = 3;

pub struct Records {
    variables: Vec<Vec<u64>>,
    count: usize,
}

impl Records {
    pub fn make(variables: usize, count: usize) -> Self {
        let mut random = Random::new(1);
        let network: Vec<(Vec<usize>, Vec<u64>)> = (0..variables)
            .map(|variable| {
                let parents = if variable == 0 { 0 } else { random.below(MADE + 1) };
                let parents: Vec<usize> =
                    (0..parents).map(|_| random.below(variable as u64) as usize).collect();
                // Percent of yes, by state of the parents.
                let odds = (0..1 << parents.len()).map(|_| 5 + random.below(91)).collect();
                (parents, odds)
            })
            .collect();
        let mut bits = vec![vec![0; count / 64]; variables];
        for record in 0..count {
            for (variable, (parents, odds)) in network.iter().enumerate() {
                let is =
                    |bits: &[Vec<u64>], variable: usize| bits[variable][record / 64] >> (record % 64) & 1;
                let state = parents.iter().fold(0, |state, parent| state << 1 | is(&bits, *parent) as usize);
                bits[variable][record / 64] |= u64::from(random.below(100) < odds[state]) << (record % 64);
            }
        }
        Records { variables: bits, count }
    }

    pub fn variables(&self) -> usize {
        self.variables.len()
    }

    pub fn score(&self, variable: usize, parents: u64) -> f64 {
        let parents: Vec<&[u64]> = (0..self.variables())
            .filter(|parent| parents >> parent & 1 == 1)
            .map(|parent| &*self.variables[parent])
            .collect();
        let states = 1_usize << parents.len();
        let mut counts = vec![[0_u32; 2]; states];
        for (word, yes) in self.variables[variable].iter().enumerate() {
            for (state, count) in counts.iter_mut().enumerate() {
                let chosen = parents.iter().enumerate().fold(u64::MAX, |chosen, (nth, parent)| {
                    chosen & if state >> nth & 1 == 1 { parent[word] } else { !parent[word] }
                });
                count[0] += (chosen & !yes).count_ones();
                count[1] += (chosen & yes).count_ones();
            }
        }
        let likely = |count: u32, all: u32| match count {
            0 => 0.0,
            count => f64::from(count) * (f64::from(count) / f64::from(all)).ln(),
        };
        let all: f64 = counts.iter().map(|[no, yes]| likely(*no, no + yes) + likely(*yes, no + yes)).sum();
        all - states as f64 * (self.count as f64).ln() / 2.0
    }
}
