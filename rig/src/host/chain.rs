//! A pool through one power cut after the other, and the judge of what each leaves.

use crate::environment::Environment;
use crate::kind::Kind;
use crate::machine::{self, Cut, Order, Outcome, SIZE, Slot};
use anyhow::{Context, Result, bail};
use fastrand::Rng;
use indelible_rig::model::Model;
use std::fs;
use std::path::{Path, PathBuf};

/// Steps that no machine gets to the end of.
const STEPS: u64 = 100_000;
/// Events of a run: up to so many are waited for.
const EVENTS: [(&str, u64); 2] = [("watch", 6_000), ("go", 30_000)];

/// Cuts by where they fell, and what was found afterwards.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Cuts whose image a later machine recovered, or that found a violation.
    pub(crate) cuts: u64,
    /// Of these: before the pool was recovered from the cut before.
    pub(crate) recovering: u64,
    /// Of these: inside a step, that is found done.
    pub(crate) done: u64,
    /// Of these: inside a step, that is found not done.
    pub(crate) undone: u64,
    /// Steps that were promised and found.
    pub(crate) steps: u64,
    /// Lines that might or might not have reached the medium, over all cuts.
    pub(crate) undecided: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Counts) {
        self.cuts += other.cuts;
        self.recovering += other.recovering;
        self.done += other.done;
        self.undone += other.undone;
        self.steps += other.steps;
        self.undecided += other.undecided;
    }
}

/// The promise did not hold.
#[derive(Debug)]
pub(crate) struct Violation {
    /// The state found instead.
    pub(crate) what: String,
    /// Folder of the images and the logs.
    pub(crate) kept: Option<PathBuf>,
}

/// The first image of chains of a kind.
pub(crate) struct Template {
    pub(crate) kind: Kind,
    /// The saved machine.
    state: PathBuf,
    /// With a pool on it.
    medium: PathBuf,
}

/// Makes the medium and the pool that chains begin with.
pub(crate) fn make(environment: &Environment, folder: &Path, kind: Kind, state: &Path) -> Result<Template> {
    let slot = Slot::new(folder, &format!("make-{}-{}", kind.kernel.word(), kind.medium.word()));
    fs::File::create(&slot.live)?.set_len(SIZE)?;
    let order = Order { kind, state: state.to_owned(), words: vec![("task", "make".into())], cut: None };
    let outcome = machine::run(environment, &slot, &order)?;
    if outcome.said.last().is_none_or(|line| line != "made") {
        bail!("cannot make a pool on {kind}: {:?}", outcome.said);
    }
    Ok(Template { kind, state: state.to_owned(), medium: slot.live })
}

/// One pool, from its first step on.
pub(crate) struct Chain<'a> {
    environment: &'a Environment,
    slot: &'a Slot,
    template: &'a Template,
    mutant: Option<&'static str>,
    /// Of the program.
    seed: u64,
    rng: Rng,
    /// The steps that the pool may be at: promised, and begun.
    from: u64,
    to: u64,
    model: Model,
    counts: Counts,
    /// Cuts that no machine has judged yet.
    open: u64,
}

impl<'a> Chain<'a> {
    pub(crate) fn new(
        environment: &'a Environment,
        slot: &'a Slot,
        template: &'a Template,
        mutant: Option<&'static str>,
        seed: u64,
    ) -> Result<Self> {
        fs::copy(&template.medium, &slot.live)?;
        Ok(Chain {
            environment,
            slot,
            template,
            mutant,
            seed,
            rng: Rng::with_seed(seed),
            from: 0,
            to: 0,
            model: Model::new(seed),
            counts: Counts::default(),
            open: 0,
        })
    }

    /// Cuts the power `cuts` times, each time but the first after the machine has looked at what the cut before
    /// left; then looks once more.
    pub(crate) fn run(
        mut self,
        cuts: u64,
        each: &dyn Fn(),
    ) -> Result<std::result::Result<Counts, Violation>> {
        for _ in 0..cuts {
            let (after, events) = EVENTS[usize::from(self.rng.u8(..) >= 50)];
            let cut = Cut { after, event: self.rng.u64(1..=events), seed: self.rng.u64(..) };
            if let Some(violation) = self.cycle(cut, STEPS)? {
                return Ok(Err(violation));
            }
            each();
        }
        let last = Cut { after: "go", event: 0, seed: 0 };
        let violation = self.cycle(last, 0)?;
        if violation.is_none() && self.open > 0 {
            bail!("the last machine judged nothing");
        }
        Ok(violation.map_or(Ok(self.counts), Err))
    }

    fn cycle(&mut self, cut: Cut, steps: u64) -> Result<Option<Violation>> {
        fs::copy(&self.slot.live, &self.slot.durable)?;
        let mut words = vec![
            ("task", "run".to_owned()),
            ("seed", self.seed.to_string()),
            ("from", self.from.to_string()),
            ("to", self.to.to_string()),
            ("steps", steps.to_string()),
        ];
        words.extend(self.mutant.map(|mutant| ("mutant", mutant.to_owned())));
        let kind = self.template.kind;
        let order = Order { kind, state: self.template.state.clone(), words, cut: Some(cut) };
        let outcome =
            machine::run(self.environment, self.slot, &order).with_context(|| format!("{order:?}"))?;
        if let Err(what) = self.judge(&outcome, steps) {
            let name = format!("{}-{}", kind.to_string().replace(' ', "-"), self.seed);
            let kept = self.mutant.is_none().then(|| self.environment.violations().join(name));
            if let Some(folder) = &kept {
                self.slot.keep(folder, &order)?;
            }
            return Ok(Some(Violation { what: format!("{kind}, seed {}: {what}", self.seed), kept }));
        }
        if outcome.cut {
            self.open += 1;
            self.counts.undecided += outcome.undecided;
        }
        fs::rename(&self.slot.durable, &self.slot.live)?;
        Ok(None)
    }

    /// Compares what the machine said with what was promised, and notes what it promised.
    fn judge(&mut self, outcome: &Outcome, steps: u64) -> std::result::Result<(), String> {
        let mut judged = false;
        for line in &outcome.said {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "state" => {
                    self.state(rest)?;
                    judged = true;
                }
                "rung" if rest != self.template.kind.kernel.rung() => {
                    return Err(format!("stores are tracked by {rest}"));
                }
                "start" => self.to = parse(rest)?,
                "done" => {
                    self.from = parse(rest)?;
                    self.counts.steps += 1;
                }
                "violation" | "error" => return Err(line.clone()),
                _ => {}
            }
        }
        let ended = outcome.said.last().is_some_and(|line| line == "end");
        if !outcome.cut && !ended {
            return Err(format!("the machine went off by itself; it said {:?}", outcome.said));
        }
        if outcome.cut && !judged {
            self.counts.recovering += 1;
        }
        if !outcome.cut && steps > 0 {
            return Err("the writer came to its end".into());
        }
        Ok(())
    }

    fn state(&mut self, text: &str) -> std::result::Result<(), String> {
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
            if number == self.to { self.counts.done += 1 } else { self.counts.undone += 1 }
        }
        self.counts.cuts += std::mem::take(&mut self.open);
        (self.from, self.to) = (number, number);
        Ok(())
    }
}

fn parse(text: &str) -> std::result::Result<u64, String> {
    text.trim().parse().map_err(|_| format!("what is step {text}?"))
}
