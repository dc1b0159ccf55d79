//! Killed commands of `pmo`: before each system call on their files, and at random moments.
//!
//! Each command runs on a copy of the same folder. A kill leaves the state before it or after it,
//! or one between that its help names; pools are without a fault, and backups whole. Then the same
//! command, or the advised one, leads to the state after it, and no other file is left.

mod cases;
mod state;

use crate::faults::calls::Fault;
use crate::faults::tracer::{self, Aim, be_traced};
use crate::workloads::program::mixed;
use anyhow::{Context, Result, bail, ensure};
use cases::{Between, CASES, Case};
use clap::Args;
use indelible_record::{Mode, Record, add, folder};
use indicatif::{ProgressBar, ProgressStyle};
use state::State;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MEDIA: [(&str, &str); 2] = [("disk", "/var/tmp"), ("memory", "/dev/shm")];
/// One of each command, medium, and kind of moment.
const SHORT: usize = CASES.len() * MEDIA.len() * 2;
/// Kills at random moments of each command and medium in a campaign.
const RANDOM: u64 = 100;

#[derive(Args)]
pub(crate) struct Commands {
    /// Every system call of every command, and many random moments
    #[arg(long)]
    long: bool,
    /// Seed of the random choices [default: another each time]
    #[arg(long)]
    seed: Option<u64>,
    /// Kills of the sample
    #[arg(long, default_value_t = SHORT, conflicts_with = "long")]
    sample: usize,
    /// Only this kill, as a failed run names it, or all of this command
    #[arg(long)]
    only: Option<String>,
}

#[derive(Args)]
pub(crate) struct Child {
    /// Be traced
    #[arg(long)]
    traced: bool,
    #[arg(long)]
    look: Option<PathBuf>,
    /// A command of `pmo`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl Child {
    pub(crate) fn run(&self) -> Result<()> {
        if let Some(folder) = &self.look {
            println!("{}", serde_json::to_string(&State::of(folder)?)?);
            return Ok(());
        }
        if self.traced {
            be_traced()?;
        }
        let words = ["pmo", "--quiet"].map(OsString::from).into_iter().chain(self.words.iter().cloned());
        std::process::exit(indelible_cli::pmo(words).into())
    }
}

#[derive(Debug, Clone, Copy)]
enum Moment {
    Before(Aim),
    /// Part of the command's time, in thousandths.
    At(u64),
}

#[derive(Debug, Clone, Copy)]
struct Kill<'a> {
    scene: &'a Scene,
    moment: Moment,
}

#[derive(Debug)]
struct Scene {
    case: &'static Case,
    medium: &'static str,
    /// The folder that each run gets a copy of.
    begin: TempDir,
    before: State,
    after: State,
    calls: BTreeMap<&'static str, u64>,
    time: Duration,
}

impl Kill<'_> {
    fn name(&self) -> String {
        let Scene { case, medium, .. } = self.scene;
        match self.moment {
            Moment::Before(Aim { call, occurrence, .. }) => {
                format!("{},{medium},{call},{occurrence}", case.name)
            }
            Moment::At(part) => format!("{},{medium},{part}", case.name),
        }
    }
}

impl Commands {
    pub(crate) fn run(&self) -> Result<()> {
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        println!("commands: seed {seed}");
        let begin = Instant::now();
        let mut scenes = Vec::new();
        for (medium, below) in MEDIA {
            for case in &CASES {
                let wanted = self.only.as_ref().is_none_or(|only| only.split(',').next() == Some(case.name));
                if wanted {
                    let scene = Scene::of(case, medium, below, seed);
                    scenes.push(scene.with_context(|| format!("{}, not killed", case.name))?);
                }
            }
        }
        let mut kills = Vec::new();
        for scene in &scenes {
            let mut rng = mixed(seed, kills.len() as u64, 0);
            for (call, count) in &scene.calls {
                let aim = |occurrence| Aim { call, occurrence, fault: Fault::Kill };
                kills.extend((1..=*count).map(|nth| Kill { scene, moment: Moment::Before(aim(nth)) }));
            }
            kills.extend((0..RANDOM).map(|_| Kill { scene, moment: Moment::At(rng.u64(0..1100)) }));
        }
        let possible = kills.len() as u64;
        mixed(seed, 0, 0).shuffle(&mut kills);
        if let Some(only) = self.only.as_ref().filter(|only| only.contains(',')) {
            kills.retain(|kill| kill.name() == *only);
        }
        if !self.long {
            let mut seen = BTreeSet::new();
            kills.sort_by_cached_key(|Kill { scene, moment }| {
                let timed = matches!(moment, Moment::At(_));
                !seen.insert((scene.case.name, scene.medium, timed))
            });
            kills.truncate(self.sample);
        }
        ensure!(!kills.is_empty(), "there is no such kill");
        let bar = ProgressBar::new(kills.len() as u64);
        bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} kills  {eta}")?);
        let mut counts =
            BTreeMap::from([("violations".to_owned(), 0), ("kills there are".to_owned(), possible)]);
        for kill in &kills {
            kill.attempt(&mut counts).with_context(|| {
                format!("again: pmo-evidence commands --seed {seed} --only {:?}", kill.name())
            })?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        let (extent, mode) = match self.sample {
            _ if self.long => (" --long".to_owned(), Mode::Long),
            SHORT => (String::new(), Mode::Short),
            sample => (format!(" --sample {sample}"), Mode::Short),
        };
        let record = Record {
            seconds: begin.elapsed().as_secs_f64(),
            counts,
            ..Record::new("commands", mode, format!("pmo-evidence commands{extent} --seed {seed}"), seed)
        };
        record.print();
        if self.only.is_none() { record.save() } else { Ok(()) }
    }
}

impl Scene {
    fn of(case: &'static Case, medium: &'static str, below: &str, seed: u64) -> Result<Scene> {
        let begin = tempfile::Builder::new().prefix("indelible-commands-").tempdir_in(below)?;
        cases::make(begin.path(), seed)?;
        for words in case.before {
            expect(words, begin.path(), &[0])?;
        }
        if case.damaged {
            cases::damage(begin.path())?;
        }
        let mut scene = Scene {
            case,
            medium,
            before: look(begin.path())?,
            begin,
            after: State::default(),
            calls: BTreeMap::new(),
            time: Duration::ZERO,
        };
        let place = scene.copy()?;
        let trace = tracer::run(command(case.words, place.path(), true), place.path(), None)?;
        ensure!(trace.code == Some(0), "{:?} {:?}: {}", trace.code, trace.signal, trace.stderr);
        scene.calls = trace.calls;
        scene.after = look(place.path())?;
        ensure!(scene.before != scene.after, "it does nothing");
        let place = scene.copy()?;
        let started = Instant::now();
        expect(case.words, place.path(), &[0])?;
        scene.time = started.elapsed();
        Ok(scene)
    }

    fn copy(&self) -> Result<TempDir> {
        let below = self.begin.path().parent().context("a folder of temporary files")?;
        let copy = tempfile::Builder::new().prefix("indelible-commands-").tempdir_in(below)?;
        let mut cp = Command::new("cp");
        cp.args(["-a", "--sparse=always"]).arg(self.begin.path().join(".")).arg(copy.path());
        ensure!(cp.status()?.success(), "cp failed");
        Ok(copy)
    }
}

impl Kill<'_> {
    fn attempt(&self, counts: &mut BTreeMap<String, u64>) -> Result<()> {
        let place = self.scene.copy()?;
        let judged = self.kill(place.path()).and_then(|killed| {
            let left = self.judge(place.path(), killed)?;
            Ok((killed, left))
        });
        let (killed, left) = judged.inspect_err(|_| {
            let kept = folder().join(format!("commands-{}", self.name().replace([',', ' '], "-")));
            let _ = fs::remove_dir_all(&kept);
            let _ = fs::create_dir_all(folder());
            let _ = Command::new("cp").arg("-a").arg(place.path()).arg(&kept).status();
            eprintln!("the folder: {}", kept.display());
        })?;
        if killed {
            let how = if matches!(self.moment, Moment::At(_)) {
                "at a random moment"
            } else {
                "before a system call"
            };
            for what in [
                "SIGKILL of a command",
                &format!("SIGKILL {how}"),
                &format!("killed: {}", self.scene.case.name),
            ] {
                add(counts, what, 1);
            }
        } else {
            add(counts, "commands that ended before", 1);
        }
        add(counts, left, 1);
        Ok(())
    }

    /// Whether the command was killed; else it did its work.
    fn kill(&self, place: &Path) -> Result<bool> {
        let words = self.scene.case.words;
        let (code, signal, said) = match self.moment {
            Moment::Before(aim) => {
                let trace = tracer::run(command(words, place, true), place, Some(aim))?;
                ensure!(!trace.hung, "it hangs");
                (trace.code, trace.signal.map(|signal| signal as i32), trace.stderr)
            }
            Moment::At(part) => {
                let mut child = command(words, place, false)
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()?;
                std::thread::sleep(self.scene.time * part as u32 / 1000);
                child.kill()?;
                let output = child.wait_with_output()?;
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                (output.status.code(), output.status.signal(), said)
            }
        };
        match (code, signal) {
            (None, Some(libc::SIGKILL)) => Ok(true),
            (Some(0), None) => Ok(false),
            ended => bail!("it ended by {ended:?}: {said}"),
        }
    }

    /// Returns the name of the state that was left.
    fn judge(&self, place: &Path, killed: bool) -> Result<&'static str> {
        let Scene { case, before, after, .. } = self.scene;
        let here = look(place)?;
        let is = |state: &State| here.has_the_pools_of(state);
        let (left, codes, again) = if is(after) {
            ("left: the state after", case.again, case.words)
        } else if killed && is(before) {
            ("left: the state before", &[0][..], case.words)
        } else {
            match case.between {
                Some((Between::Some(directory), words))
                    if here.is_between(before, after, &|name, found| {
                        name.starts_with(directory) || found[1] == found[0]
                    }) =>
                {
                    ("left: a part of a directory", &[0][..], words)
                }
                Some((Between::Both(both), words))
                    if here.is_between(before, after, &|name, found| {
                        found[1] == found[0] || name == both && found[1]
                    }) =>
                {
                    expect(case.words, place, &[7])?;
                    ("left: an object in both pools", &[0][..], words)
                }
                Some((Between::Unrepaired, words)) if here.is_unrepaired(after) => {
                    ("left: a superblock to repair", &[0][..], words)
                }
                _ => bail!("another state:\n{here:?}\nbefore:\n{before:?}\nafter:\n{after:?}"),
            }
        };
        expect(again, place, codes)?;
        let then = look(place)?;
        let is_done = match case.adds {
            Some(folder) => then.is_last_in(folder, cases::POOL),
            None => then == *after,
        };
        ensure!(is_done, "once more:\n{then:?}\nafter:\n{after:?}");
        Ok(left)
    }
}

fn command(words: &[&str], place: &Path, traced: bool) -> Command {
    let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("pmo-evidence"));
    let mut command = Command::new(own);
    command.arg("commands-child");
    if traced {
        command.arg("--traced");
    }
    command.arg("--");
    for word in words {
        match word.strip_prefix("./") {
            Some(name) => command.arg(place.join(name)),
            None => command.arg(word),
        };
    }
    command
}

fn expect(words: &[&str], place: &Path, codes: &[i32]) -> Result<()> {
    let output = command(words, place, false).stdin(Stdio::null()).output()?;
    let fits = output.status.code().is_some_and(|code| codes.contains(&code));
    ensure!(fits, "{words:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// By a process of its own: each copy of a pool has the same ID and addresses.
fn look(place: &Path) -> Result<State> {
    let own = std::env::current_exe()?;
    let output = Command::new(own).args(["commands-child", "--look"]).arg(place).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}
