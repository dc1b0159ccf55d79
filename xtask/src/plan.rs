//! A run of several steps: prints the running step, the time that the rest takes, and untested
//! parts.
//!
//! A step stops the run when it fails. A step that needs something this machine lacks is not a
//! failure: it says what was not tested, and the last lines of the run repeat it.

use crate::beside::Beside;
use crate::command::Result;
use crate::hung;
use std::process::Command;
use std::time::{Duration, Instant};

/// Outcome of a step that did not fail.
pub(crate) enum Outcome {
    Passed,
    /// It passed, but for parts that this machine cannot test: a line for each.
    PassedWithout(Vec<String>),
    /// The machine lacks something; the text names what was not tested, and why.
    NotTested(String),
}

/// One step of a plan.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// Typical time on two idle cores, in seconds; only the forecast relies on it.
    pub(crate) seconds: u64,
    /// Requirements beyond Rust ("root and a network"), printed before it starts.
    pub(crate) needs: Option<&'static str>,
    pub(crate) run: fn() -> Result<Outcome>,
    /// Whether it leaves room for another step: it runs beside the one that comes next.
    beside: bool,
    /// Files and folders that it tests, where CI leaves it out unless one of them changed.
    pub(crate) subject: &'static [&'static str],
}

impl Step {
    pub(crate) const fn new(name: &'static str, seconds: u64, run: fn() -> Result<Outcome>) -> Step {
        Step { name, seconds, needs: None, run, beside: false, subject: &[] }
    }

    /// A run of it that takes longer hangs: with builds, on a slow machine, beside other work.
    fn limit(&self) -> Duration {
        Duration::from_secs(1_800 + 2 * self.seconds)
    }

    fn hung(&self) -> String {
        format!("{}: hung, and was ended after {}", self.name, readable(self.limit()))
    }

    pub(crate) const fn beside_the_next(mut self) -> Step {
        self.beside = true;
        self
    }

    pub(crate) const fn about(mut self, subject: &'static [&'static str]) -> Step {
        self.subject = subject;
        self
    }

    pub(crate) const fn needs(mut self, what: &'static str) -> Step {
        self.needs = Some(what);
        self
    }
}

/// The beginning of the lines that say what was not tested.
const NOT_TESTED: &str = "NOT TESTED: ";

/// Runs the steps in order, and prints a table of their times. `alone`: a command that runs the
/// step with this name, and no other.
///
/// # Errors
/// The first step that fails, by name; the steps after it did not run.
pub(crate) fn run(steps: &[Step], alone: &dyn Fn(&str) -> Command) -> Result {
    let begin = Instant::now();
    let mut times = Vec::new();
    let mut untested = Vec::new();
    let mut other: Option<(&Step, Beside)> = None;
    for (index, step) in steps.iter().enumerate() {
        let left = forecast(&steps[index..], &times);
        println!("\n=== step {} of {}: {} (about {left} left)", index + 1, steps.len(), step.name);
        if let Some(what) = step.needs {
            println!("    needs {what}");
        }
        if step.beside && index + 1 < steps.len() {
            other = Some((step, Beside::start(step.name, &mut alone(step.name))?));
            continue;
        }
        let started = Instant::now();
        let (outcome, hung) = hung::within(step.limit(), std::process::id(), step.run);
        let outcome = outcome.map_err(|error| match hung {
            true => step.hung(),
            false => format!("{}: {error}", step.name),
        })?;
        let took = started.elapsed();
        times.push((step, took));
        match outcome {
            Outcome::Passed => {}
            Outcome::PassedWithout(parts) => untested.extend(parts),
            Outcome::NotTested(what) => untested.push(format!("{}: {what}", step.name)),
        }
        if let Some((step, other)) = other.take() {
            let (ended, hung) = hung::within(step.limit(), std::process::id(), || other.wait());
            let ended = ended?;
            if hung {
                return Err(step.hung());
            }
            if !ended.succeeded {
                return Err(format!("{}: failed, as is said above", step.name));
            }
            times.push((step, ended.took));
            // Tests say it as well as the step, which says it last.
            let said = ended.output.lines().rev().map_while(|line| line.strip_prefix(NOT_TESTED));
            untested.extend(said.map(str::to_owned));
        }
    }
    println!("\nall {} steps passed in {}", steps.len(), readable(begin.elapsed()));
    times.iter().for_each(|(step, took)| println!("  {:>8}  {}", readable(*took), step.name));
    untested.iter().for_each(|what| println!("{NOT_TESTED}{what}"));
    Ok(())
}

/// How long `rest` takes: the typical times, scaled by this machine's speed so far.
fn forecast(rest: &[Step], done: &[(&Step, Duration)]) -> String {
    // A first step of a second tells nothing about the machine.
    const ENOUGH: f64 = 30.0;
    let typical: f64 = done.iter().map(|(step, _)| step.seconds as f64).sum();
    let taken: f64 = done.iter().map(|(_, took)| took.as_secs_f64()).sum();
    let scale = if typical < ENOUGH { 1.0 } else { taken / typical };
    let seconds: u64 = rest.iter().map(|step| step.seconds).sum();
    readable(Duration::from_secs_f64(seconds as f64 * scale))
}

pub(crate) fn readable(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSES: fn() -> Result<Outcome> = || Ok(Outcome::Passed);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_step_beside_the_next_is_waited_for_and_its_failure_is_the_runs() {
        let fails: fn() -> Result<Outcome> = || Err("it is run beside the next, by itself".into());
        let steps = [Step::new("a step of a test", 1, fails).beside_the_next(), Step::new("next", 1, PASSES)];
        assert_eq!(run(&steps, &|step| shell(&format!("echo 'NOT TESTED: {step}'"))), Ok(()));
        let failed = run(&steps, &|_| shell("exit 1")).unwrap_err();
        assert!(failed.contains("a step of a test"), "{failed}");
        // Alone it runs here.
        assert!(run(&steps[..1], &|_| shell("exit 0")).is_err());
        let steps = [Step::new("a step of a test", 1, PASSES).beside_the_next(), Step::new("next", 1, fails)];
        assert!(run(&steps, &|_| shell("exec sleep 600")).unwrap_err().contains("next"));
    }
}
