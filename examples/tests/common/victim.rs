//! A builder that will be killed, and its possible states.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use crate::common::{fail, succeed, text};

type State = (u64, u64);

pub struct Builder {
    program: &'static str,
    pool: PathBuf,
    corpus: PathBuf,
    name: String,
    tracking: String,
    possible: Vec<State>,
    absent: bool,
    fresh: bool,
    now: State,
}

/// Kill after so many lines of output and turns of an idle loop.
#[derive(Clone, Copy, Debug)]
pub struct Death {
    pub lines: usize,
    pub spins: u32,
}

#[derive(Debug, Default)]
pub struct Seen {
    /// The psync it found.
    pub attached: Option<u64>,
    pub killed: bool,
    fresh: bool,
    psynced: Option<State>,
    begun: Option<State>,
}

pub struct Running {
    child: Child,
    fresh: bool,
}

pub struct Dying(JoinHandle<Seen>);

impl Builder {
    pub fn new(program: &'static str, pool: PathBuf, corpus: &Path, name: &str, tracking: &str) -> Builder {
        Builder {
            program,
            pool,
            corpus: corpus.into(),
            name: name.into(),
            tracking: tracking.into(),
            possible: vec![(0, 0)],
            absent: true,
            fresh: false,
            now: (0, 0),
        }
    }

    fn command(&self, command: &str, args: &[&str]) -> Command {
        let mut process = Command::new(self.program);
        process.arg(command).args(args).arg("--pool").arg(&self.pool);
        process.args(["--name", &self.name, "--tracking", &self.tracking]);
        process
    }

    #[track_caller]
    pub fn run(&self, command: &str, args: &[&str]) -> String {
        succeed(self.command(command, args))
    }

    pub fn start(&mut self, args: &[&str]) -> Running {
        let mut command = self.command("build", args);
        command.arg(&self.corpus).args(["--events", "--jobs", "2", "--pool-size", "1"]);
        let fresh = std::mem::take(&mut self.fresh);
        if fresh {
            command.arg("--fresh");
        }
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
        Running { child, fresh }
    }

    pub fn fresh_next(&mut self) {
        self.fresh = true;
    }

    /// Adopts a builder's messages; returns whether it died during a psync.
    pub fn saw(&mut self, seen: Seen) -> bool {
        if seen.fresh {
            self.absent = true;
            self.possible.push((0, 0));
        }
        if let Some(step) = seen.attached {
            self.absent = false;
            self.possible.retain(|possible| possible.0 == step);
            assert!(!self.possible.is_empty(), "{} was attached as of psync {step}", self.name);
        }
        if let Some(state) = seen.psynced {
            self.possible = vec![state];
        }
        self.possible.extend(seen.begun);
        seen.begun.is_some()
    }

    #[track_caller]
    pub fn verify(&mut self) {
        let verify = self.command("verify", &[]);
        if self.absent {
            let exists = indelible::Pool::open(&self.pool).is_ok_and(|pool| pool.stat(&self.name).is_ok());
            if !exists {
                let (code, stderr) = fail(verify);
                let missing = ["no such object", "No such file"].iter().any(|why| stderr.contains(why));
                assert!(code == 1 && missing, "{code}: {stderr}");
                self.possible = vec![(0, 0)];
                self.now = (0, 0);
                return;
            }
        }
        let output = succeed(verify);
        let number = |after: &str| -> u64 {
            let from = output.find(after).map_or(0, |at| at + after.len());
            let digits = output[from..].chars().filter(|c| *c != ',').take_while(char::is_ascii_digit);
            digits.collect::<String>().parse().unwrap_or(0)
        };
        let found = (number("step "), number(": "));
        assert!(
            self.possible.contains(&found),
            "{}: {found:?} is none of {:?}\n{output}",
            self.name,
            self.possible
        );
        self.possible = vec![found];
        self.now = found;
        self.absent = false;
    }

    pub fn is_done(&self, files: usize) -> bool {
        self.now.1 >= files as u64
    }

    #[track_caller]
    pub fn finish(&mut self) {
        let mut last = String::new();
        for _ in 0..2 {
            let mut command = self.command("build", &["--pool-size", "1"]);
            command.arg(&self.corpus);
            last = succeed(command);
        }
        assert!(last.contains("nothing new"), "{last}");
    }
}

impl Running {
    pub fn kill_later(self, death: Death) -> Dying {
        Dying(std::thread::spawn(move || self.watch(Some(death))))
    }

    pub fn kill(self, death: Death) -> Seen {
        self.watch(Some(death))
    }

    pub fn wait(self) -> Seen {
        self.watch(None)
    }

    fn watch(mut self, death: Option<Death>) -> Seen {
        let mut seen = Seen { fresh: self.fresh, ..Seen::default() };
        let lines = BufReader::new(self.child.stdout.take().expect("a pipe"));
        let mut left = death.map(|death| death.lines);
        let kill_if_due = |child: &mut Child, left: &mut Option<usize>| {
            if *left == Some(0) {
                for _ in 0..death.map_or(0, |death| death.spins) {
                    std::hint::spin_loop();
                }
                let _ = child.kill();
            }
            *left = left.and_then(|left| left.checked_sub(1));
        };
        kill_if_due(&mut self.child, &mut left);
        for line in lines.split(b'\n').map_while(Result::ok) {
            seen.line(&text(&line));
            kill_if_due(&mut self.child, &mut left);
        }
        let output = self.child.wait_with_output().expect("it was started");
        seen.killed = output.status.signal() == Some(9);
        let stderr = text(&output.stderr);
        assert!(seen.killed || output.status.success(), "{}: {stderr}", output.status);
        assert!(stderr.is_empty(), "{stderr}");
        seen
    }
}

impl Dying {
    #[track_caller]
    pub fn join(self) -> Seen {
        self.0.join().expect("the builder died, or ended, as it should")
    }
}

impl Seen {
    fn line(&mut self, line: &str) {
        let mut words = line.split(' ');
        let kind = words.next();
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        let mut state = || Some((number()?, number()?));
        match kind {
            Some("attached") => self.attached = number(),
            Some("psync") => self.begun = state(),
            Some("psynced") => {
                self.psynced = state();
                self.begun = None;
            }
            _ => {}
        }
    }
}
