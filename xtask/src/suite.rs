//! All tests, each in a process of its own, more at a time than there are processors, as many tests
//! wait most of the time.
//!
//! No test sees another's descriptors, memory or limits. A test that fails does not stop the
//! others; its output is printed when it ends, and the command that runs it again in the last
//! lines.

use crate::command::Result;
use crate::durations::Durations;
use crate::plan::{Outcome, readable};
use crate::programs::{self, Program};
use crate::{hung, install};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time between two lines of progress.
const BEAT: Duration = Duration::from_secs(10);
/// A test that takes longer is listed at the end.
const SLOW: Duration = Duration::from_secs(5);
/// A test that takes longer hangs: it is killed, and fails.
const LIMIT: Duration = Duration::from_secs(900);
/// Tells `indelible_testing::sparse` that sweeps take every place.
const WHOLE: &str = "INDELIBLE_WHOLE";

/// One test of a program.
struct Test<'a> {
    program: &'a Program,
    name: String,
    /// As it took in the last run, or as a typical test takes.
    seconds: f64,
}

/// State of a run, under one lock.
struct Progress<'a> {
    begun: Instant,
    shown: Instant,
    /// Tests that wait, the next one last.
    waiting: Vec<Test<'a>>,
    running: Vec<String>,
    passed: usize,
    /// Expected seconds of the tests that ended, and of all.
    done: f64,
    all: f64,
    durations: Durations,
    failed: Vec<String>,
    slow: Vec<(Duration, String)>,
    not_tested: BTreeSet<String>,
}

/// Builds and runs every test of the workspace but those in documentation.
pub(crate) fn run() -> Result<Outcome> {
    all(false)
}

/// As [`run`]; sweeps take every place, not evenly spread ones.
pub(crate) fn run_whole() -> Result<Outcome> {
    all(true)
}

fn all(whole: bool) -> Result<Outcome> {
    let programs = programs::build(&["--workspace".into()])?;
    // Programs in C and C++ are compiled against an installation: one for all of their tests.
    let prefix = indelible_record::build_folder().join("tmp/pmo");
    let prefix = std::path::absolute(&prefix).map_err(|error| format!("{}: {error}", prefix.display()))?;
    let _ = std::fs::remove_dir_all(&prefix);
    install::run(&prefix, None, "dev", &[])?;
    let durations = Durations::of_the_last_run();
    let mut waiting = Vec::new();
    for program in &programs {
        waiting.extend(program.tests()?.into_iter().map(|name| {
            let seconds = durations.of(program, &name);
            Test { program, name, seconds }
        }));
    }
    // The next one is the last: the longest start first, so that none is left alone at the end.
    waiting.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    println!("{} tests of {} programs", waiting.len(), programs.len());
    let now = Instant::now();
    let progress = Mutex::new(Progress {
        begun: now,
        shown: now,
        all: waiting.iter().map(|test| test.seconds).sum(),
        done: 0.0,
        durations,
        waiting,
        running: Vec::new(),
        passed: 0,
        failed: Vec::new(),
        slow: Vec::new(),
        not_tested: BTreeSet::new(),
    });
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    let workers = processors + processors.div_ceil(2);
    std::thread::scope(|scope| {
        (0..workers).for_each(|_| _ = scope.spawn(|| work(&progress, &prefix, whole)));
    });
    let progress = progress.into_inner().unwrap_or_else(PoisonError::into_inner);
    progress.durations.keep()?;
    progress.outcome()
}

/// Runs one test after the other, until none waits.
fn work(progress: &Mutex<Progress<'_>>, prefix: &Path, whole: bool) {
    // Not in the head of the loop, where the lock would be held for all of its body.
    let next = || lock(progress).start();
    while let Some(test) = next() {
        let begun = Instant::now();
        let output = test.program.command(&test.name).and_then(|mut command| {
            command.envs(whole.then_some((WHOLE, "1")));
            end(command.env("INDELIBLE_PREFIX", prefix))
        });
        lock(progress).end(&test, begun.elapsed(), output);
    }
}

/// Runs a test to its end, or to the limit.
fn end(command: &mut Command) -> Result<Output> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.map_err(|error| error.to_string())?;
    let (output, hung) = hung::within(LIMIT, child.id(), || child.wait_with_output());
    let mut output = output.map_err(|error| error.to_string())?;
    if hung {
        output.stderr.extend(format!("\nit hung, and was killed after {} s\n", LIMIT.as_secs()).into_bytes());
    }
    Ok(output)
}

fn lock<'a, 'b>(progress: &'a Mutex<Progress<'b>>) -> MutexGuard<'a, Progress<'b>> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Progress<'a> {
    fn start(&mut self) -> Option<Test<'a>> {
        let test = self.waiting.pop()?;
        self.running.push(test.name.clone());
        self.show();
        Some(test)
    }

    fn end(&mut self, test: &Test<'_>, took: Duration, output: Result<Output>) {
        self.running.retain(|name| *name != test.name);
        self.done += test.seconds;
        self.durations.note(test.program, &test.name, took);
        if took > SLOW {
            self.slow.push((took, test.name.clone()));
        }
        let (passed, said) = match output {
            // A filter that finds no test succeeds, too.
            Ok(output) => (
                output.status.success() && text(&output.stdout).contains("1 passed"),
                format!("{}{}", text(&output.stdout), text(&output.stderr)),
            ),
            Err(error) => (false, error),
        };
        let lacking = said.lines().filter_map(|line| line.strip_prefix("NOT TESTED: "));
        self.not_tested.extend(lacking.map(str::to_owned));
        if passed {
            self.passed += 1;
        } else {
            println!("\n== FAILED: {}, after {:.1} s\n{said}", test.name, took.as_secs_f64());
            self.failed.push(test.program.again(&test.name));
        }
        self.show();
    }

    /// A line of progress, if the last one is some time ago.
    fn show(&mut self) {
        if self.shown.elapsed() < BEAT {
            return;
        }
        self.shown = Instant::now();
        let ended = self.passed + self.failed.len();
        let rate = if self.done > 0.0 { self.begun.elapsed().as_secs_f64() / self.done } else { 0.0 };
        println!(
            "  {ended} of {} tests ended, about {} left; running: {}",
            ended + self.waiting.len() + self.running.len(),
            // Sums of the same parts in another order may differ.
            readable(Duration::from_secs_f64(((self.all - self.done) * rate).max(0.0))),
            self.running.join(", "),
        );
    }

    fn outcome(mut self) -> Result<Outcome> {
        self.slow.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
        println!("\n{} tests passed in {}", self.passed, readable(self.begun.elapsed()));
        for (took, name) in &self.slow {
            println!("  {:6.1} s  {name}", took.as_secs_f64());
        }
        if self.failed.is_empty() {
            return Ok(Outcome::PassedWithout(self.not_tested.into_iter().collect()));
        }
        Err(format!("{} tests failed; again:\n  {}", self.failed.len(), self.failed.join("\n  ")))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
