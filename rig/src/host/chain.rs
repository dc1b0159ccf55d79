//! A pool through successive power cuts, and the judge of its states.

use crate::counts::Counts;
use crate::environment::Environment;
use crate::kind::Kind;
use crate::machine::{self, Cut, Order, Outcome, SIZE, Slot};
use anyhow::{Context, Result, bail};
use fastrand::Rng;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Violation {
    pub(crate) what: String,
    pub(crate) kept: Option<PathBuf>,
}

pub(crate) struct Template {
    pub(crate) kind: Kind,
    state: PathBuf,
    medium: PathBuf,
}

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

/// A program for successive machines on one pool, and its promises.
pub(crate) trait Course {
    /// Words of a machine's order. The last one only looks.
    fn words(&self, rng: &mut Rng, last: bool) -> Vec<(&'static str, String)>;

    fn cut(&mut self, rng: &mut Rng) -> Cut;

    /// A machine's line, by its first word: notes promises and judges findings. Returns whether the
    /// whole state after the last cut is judged now.
    ///
    /// # Errors
    /// A promise was broken.
    fn line(&mut self, word: &str, rest: &str, counts: &mut Counts) -> std::result::Result<bool, String>;

    fn end(&mut self, outcome: &Outcome, counts: &mut Counts) -> std::result::Result<(), String>;
}

pub(crate) struct Chain<'a> {
    environment: &'a Environment,
    slot: &'a Slot,
    template: &'a Template,
    mutant: Option<&'static str>,
    course: Box<dyn Course>,
    seed: u64,
    rng: Rng,
    counts: Counts,
    open: u64,
}

impl<'a> Chain<'a> {
    pub(crate) fn new(
        environment: &'a Environment,
        slot: &'a Slot,
        template: &'a Template,
        mutant: Option<&'static str>,
        course: Box<dyn Course>,
        seed: u64,
    ) -> Result<Self> {
        fs::copy(&template.medium, &slot.live)?;
        Ok(Chain {
            environment,
            slot,
            template,
            mutant,
            course,
            seed,
            rng: Rng::with_seed(seed),
            counts: Counts::default(),
            open: 0,
        })
    }

    /// Cuts the power `cuts` times, each time after the judgement of the last cut; then judges once
    /// more.
    pub(crate) fn run(
        mut self,
        cuts: u64,
        each: &dyn Fn(),
    ) -> Result<std::result::Result<Counts, Violation>> {
        for _ in 0..cuts {
            let cut = self.course.cut(&mut self.rng);
            if let Some(violation) = self.cycle(cut, false)? {
                return Ok(Err(violation));
            }
            each();
        }
        let last = Cut { after: "go", event: 0, seed: 0, failure: None };
        let violation = self.cycle(last, true)?;
        if violation.is_none() && self.open > 0 {
            bail!("the last machine judged nothing");
        }
        Ok(violation.map_or(Ok(self.counts), Err))
    }

    fn cycle(&mut self, cut: Cut, last: bool) -> Result<Option<Violation>> {
        fs::copy(&self.slot.live, &self.slot.durable)?;
        let mut words = self.course.words(&mut self.rng, last);
        words.push(("boot", self.rng.u64(..).to_string()));
        words.extend(self.mutant.map(|mutant| ("mutant", mutant.to_owned())));
        let kind = self.template.kind;
        let order = Order { kind, state: self.template.state.clone(), words, cut: Some(cut) };
        let outcome =
            machine::run(self.environment, self.slot, &order).with_context(|| format!("{order:?}"))?;
        if let Some(line) = outcome.said.iter().find(|line| line.contains("no such mutant")) {
            bail!("{line}");
        }
        if let Err(what) = self.judge(&outcome, last) {
            let name = format!("{}-{}", kind.to_string().replace(' ', "-"), self.seed);
            let kept = self.mutant.is_none().then(|| self.environment.violations().join(name));
            if let Some(folder) = &kept {
                self.slot.keep(folder, &order)?;
            }
            return Ok(Some(Violation { what: format!("{kind}, seed {}: {what}", self.seed), kept }));
        }
        if outcome.cut {
            self.open += 1;
            self.counts.add("lines left to chance", outcome.undecided);
        }
        fs::rename(&self.slot.durable, &self.slot.live)?;
        Ok(None)
    }

    fn judge(&mut self, outcome: &Outcome, last: bool) -> std::result::Result<(), String> {
        let mut judged = false;
        for line in &outcome.said {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            if matches!(word, "violation" | "error") {
                return Err(line.clone());
            }
            if self.course.line(word, rest, &mut self.counts)? {
                judged = true;
                let cuts = std::mem::take(&mut self.open);
                self.counts.add("cycles", cuts);
                self.counts.add(&format!("cuts, {}", self.template.kind), cuts);
            }
        }
        let ended = outcome.said.last().is_some_and(|line| line == "end");
        if !outcome.cut && !ended {
            return Err(format!("the machine went off by itself; it said {:?}", outcome.said));
        }
        if outcome.cut && !judged {
            self.counts.add("cuts during recovery", 1);
        }
        if !outcome.cut && !last {
            return Err("the writer came to its end".into());
        }
        self.course.end(outcome, &mut self.counts)
    }
}

pub(crate) fn parse(text: &str) -> std::result::Result<u64, String> {
    text.trim().parse().map_err(|_| format!("{text} is no number"))
}
