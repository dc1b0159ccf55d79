//! The program of psyncs, and the judge of its states.

use crate::chain::{Course, parse};
use crate::counts::Counts;
use crate::kind::Kernel;
use crate::machine::{Cut, Outcome};
use fastrand::Rng;
use indelible_rig::model::Model;

const STEPS: u64 = 100_000;
const EVENTS: [(&str, u64); 2] = [("watch", 6_000), ("go", 30_000)];

pub(crate) struct Steps {
    kernel: Kernel,
    seed: u64,
    from: u64,
    to: u64,
    model: Model,
}

impl Steps {
    pub(crate) fn new(kernel: Kernel, seed: u64) -> Steps {
        Steps { kernel, seed, from: 0, to: 0, model: Model::new(seed) }
    }

    fn state(&mut self, text: &str, counts: &mut Counts) -> Result<(), String> {
        let (number, found) = text.split_once(' ').ok_or("no state")?;
        let number = parse(number)?;
        if !(self.from..=self.to).contains(&number) {
            return Err(format!("at step {number}, though {} was promised and {} begun", self.from, self.to));
        }
        self.model = self.model.clone().at(number);
        if self.model.fingerprint() != found {
            return Err(format!("step {number} is {found}, not {}", self.model.fingerprint()));
        }
        if self.to > self.from {
            let end = if number == self.to { "done" } else { "not done" };
            counts.add(&format!("cuts inside a step that is found {end}"), 1);
        }
        (self.from, self.to) = (number, number);
        Ok(())
    }
}

impl Course for Steps {
    fn words(&self, _rng: &mut Rng, last: bool) -> Vec<(&'static str, String)> {
        vec![
            ("task", "run".to_owned()),
            ("seed", self.seed.to_string()),
            ("from", self.from.to_string()),
            ("to", self.to.to_string()),
            ("steps", if last { 0 } else { STEPS }.to_string()),
        ]
    }

    fn cut(&mut self, rng: &mut Rng) -> Cut {
        let (after, events) = EVENTS[usize::from(rng.u8(..) >= 50)];
        Cut { after, event: rng.u64(1..=events), seed: rng.u64(..), failure: None }
    }

    fn line(&mut self, word: &str, rest: &str, counts: &mut Counts) -> Result<bool, String> {
        match word {
            "state" => self.state(rest, counts).map(|()| true),
            "rung" if rest != self.kernel.rung() => Err(format!("stores are tracked by {rest}")),
            "start" => {
                self.to = parse(rest)?;
                Ok(false)
            }
            "done" => {
                self.from = parse(rest)?;
                counts.add("steps promised and found", 1);
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    fn end(&mut self, _outcome: &Outcome, _counts: &mut Counts) -> Result<(), String> {
        Ok(())
    }
}
