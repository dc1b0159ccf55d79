//! Writers on demand, with and without a guard, and the judge of their transactions.

use crate::chain::{Course, parse};
use crate::counts::{Counts, Failure};
use crate::kind::Load;
use crate::machine::{Cut, Outcome, PowerFailure};
use fastrand::Rng;
use indelible_rig::commits::{Ledger, WRITERS};

const COMMITS: std::ops::Range<u64> = 300..3_000;
const WAITS: std::ops::Range<u64> = 100..2_000;
const EVENTS: [(&str, u64); 2] = [("watch", 6_000), ("go", 30_000)];
const LATER: u64 = 2_000;
const LOOKS: u64 = 40;
/// Milliseconds from failure to power loss: enough on a slow machine.
const HOLD: u64 = 300_000;

pub(crate) struct Demand {
    load: Load,
    seed: u64,
    ledgers: Vec<Ledger>,
    /// The last transactions: at the last machine's begin, required, acknowledged.
    begun: [u64; WRITERS],
    promised: [u64; WRITERS],
    acknowledged: [u64; WRITERS],
    bytes: Option<u64>,
}

impl Demand {
    pub(crate) fn new(load: Load, seed: u64) -> Demand {
        let ledgers = (0..WRITERS).map(|writer| Ledger::new(seed, writer)).collect();
        let none = [0; WRITERS];
        Demand { load, seed, ledgers, begun: none, promised: none, acknowledged: none, bytes: None }
    }

    fn found(&mut self, text: &str, counts: &mut Counts) -> Result<(), String> {
        let words: Vec<_> = text.splitn(4, ' ').collect();
        let [writer, left, right, found] = words[..] else { return Err("no state".into()) };
        let (writer, left, right) = (parse(writer)? as usize, parse(left)?, parse(right)?);
        let ledger = self.ledgers.get_mut(writer).ok_or("no such writer")?;
        if left != right {
            return Err(format!(
                "writer {writer} is at transaction {left} in one object, {right} in the other"
            ));
        }
        let promised = self.promised[writer];
        if left < promised {
            return Err(format!("writer {writer} is at transaction {left}, though {promised} was promised"));
        }
        ledger.advance(left);
        if ledger.fingerprint() != found {
            return Err(format!(
                "transaction {left} of writer {writer} is {found}, not {}",
                ledger.fingerprint()
            ));
        }
        let gone = self.acknowledged[writer].saturating_sub(left);
        counts.add(&format!("transactions promised and found, {}", self.load), promised - self.begun[writer]);
        counts.add(&format!("transactions acknowledged and gone, {}", self.load), gone);
        for numbers in [&mut self.begun, &mut self.promised, &mut self.acknowledged] {
            numbers[writer] = left;
        }
        Ok(())
    }

    fn promise(&mut self, text: &str) -> Result<(), String> {
        let (promised, acknowledged) = text.split_once(" of ").ok_or("no promise")?;
        for (text, numbers) in [(promised, &mut self.promised), (acknowledged, &mut self.acknowledged)] {
            for (text, number) in text.split(' ').zip(numbers) {
                *number = parse(text)?.max(*number);
            }
        }
        Ok(())
    }
}

impl Course for Demand {
    fn words(&self, rng: &mut Rng, last: bool) -> Vec<(&'static str, String)> {
        let alone = self.load == Load::Alone;
        let wait = if alone { rng.u64(WAITS) } else { 0 };
        vec![
            ("task", "demand".to_owned()),
            ("seed", self.seed.to_string()),
            ("steps", u64::from(!last).to_string()),
            ("guard", u64::from(!alone).to_string()),
            ("idle", u64::from(self.load == Load::Idle).to_string()),
            ("commits", rng.u64(COMMITS).to_string()),
            ("wait", wait.to_string()),
        ]
    }

    fn cut(&mut self, rng: &mut Rng) -> Cut {
        let seed = rng.u64(..);
        if self.load == Load::Alone {
            let (after, events) = EVENTS[usize::from(rng.u8(..) >= 50)];
            return Cut { after, event: rng.u64(1..=events), seed, failure: None };
        }
        // The cut comes at once, or while busy writers go on.
        let at_once = self.load == Load::Idle || rng.bool();
        let event = if at_once { 1 } else { rng.u64(1..=LATER) };
        let failure = Some(PowerFailure { looks: rng.u64(1..=LOOKS), hold: HOLD });
        Cut { after: "promised", event, seed, failure }
    }

    fn line(&mut self, word: &str, rest: &str, counts: &mut Counts) -> Result<bool, String> {
        match word {
            "found" => self.found(rest, counts)?,
            "promise" => self.promise(rest)?,
            "round" => match rest.split(' ').collect::<Vec<_>>()[..] {
                ["true", published, _, bytes] if parse(published)? == WRITERS as u64 => {
                    self.bytes = Some(parse(bytes)?)
                }
                _ => return Err(format!("the guard's round ended so: {rest}")),
            },
            _ => {}
        }
        Ok(word == "state")
    }

    fn end(&mut self, outcome: &Outcome, counts: &mut Counts) -> Result<(), String> {
        let bytes = self.bytes.take();
        if self.load == Load::Alone || !outcome.cut {
            return Ok(());
        }
        let (Some(nanoseconds), Some(bytes)) = (outcome.durable, bytes) else {
            return Err(format!("the guard did not say in {HOLD} ms that everything is durable"));
        };
        counts.failures.push(Failure { load: self.load, microseconds: nanoseconds / 1000, bytes });
        Ok(())
    }
}
