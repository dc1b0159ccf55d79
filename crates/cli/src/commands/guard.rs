use crate::bytes::human;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::out::{Out, show};
use crate::terminal::{detail, note};
use crate::text::{self, printable};
use clap::{Args, Subcommand};
use indelible_guard::detector::{FileDetector, LineDetector, NutDetector, SignalDetector};
use indelible_guard::{
    Budget, Condition, Config, Departed, Detector, GuardError, Note, RoundReport, Status, hold_back_signals,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::Serialize;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a recovery waits for a dying process's locks, in seconds.
const DYING: &str = "5";

/// Make commits on demand durable when the power fails, or their process dies
///
/// Processes that have objects on demand attached register by themselves. When the power fails, the
/// guard makes each publish its commits that are not durable, and kills those that do not answer in
/// time, so that their commits can be recovered; from then on each transaction is durable when it
/// returns, until the power is back. Without a guard no promise of the class is broken: a power cut
/// takes the commits of the last interval, a second unless a program sets another.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo guard run --signal --hold-up 10
  pmo guard run --nut ups@localhost --hold-up 120
  pmo guard run --line /dev/ttyS0:cd --hold-up 0.02 --safety 0.005
  pmo guard run --file /run/power --dry-run
  pmo guard status --json | jq '.writers[].budget'
  pmo guard test

JSON of status:
  {\"pid\":1,\"failing\":false,\"detectors\":[{\"name\":\"signal SIGPWR\",\"condition\":\"fine\",\"why\":null,\"latency_ms\":0}],
   \"writers\":[{\"pid\":4711,\"uid\":1000,\"pool\":\"/srv/data.pmo\",\"budget\":4194304,\"bytes_per_second\":8388608}],
   \"recovered\":0,\"lost\":0,\"last\":null}

JSON of test, and of `last` of status:
  {\"cause\":\"rehearsal\",\"durable\":true,\"microseconds\":812,\"allowed\":9000000,
   \"writers\":[{\"pid\":4711,\"pool\":\"/srv/data.pmo\",\"outcome\":\"published\",\"bytes\":8192,\"microseconds\":790,
    \"why\":null}]}
  outcome: published, failed, recovered (killed, and its commits are durable), lost (killed, and they are not), silent (a rehearsal kills nobody)

With --json, run prints a line for each event.")]
pub struct Guard {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Be the guard, until a signal ends it; SIGTERM has it recover dead processes first
    Run(Run),
    /// Show the guard that runs, its detectors, and the processes that are registered
    Status(Ask),
    /// Have all processes publish as if the power failed, but for killing those that do not answer
    Test(Ask),
}

#[derive(Debug, Args)]
struct Ask {
    /// Socket of the guard [default: /run/pmo/guard.sock of root, $XDG_RUNTIME_DIR/pmo/guard.sock
    /// of others]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Seconds to wait for its answer
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    patience: Duration,
}

#[derive(Debug, Args)]
struct Run {
    /// Socket to listen at [default: /run/pmo/guard.sock of root, $XDG_RUNTIME_DIR/pmo/guard.sock
    /// of others]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// SIGPWR says that the power fails, unless /run/powerstatus or /etc/powerstatus begins with O
    #[arg(long)]
    signal: bool,

    /// A UPS that upsd of Network UPS Tools watches; on battery, the power fails
    #[arg(long, value_name = "UPS@HOST[:PORT]")]
    nut: Vec<String>,

    /// Seconds between two questions to upsd
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = seconds)]
    nut_interval: Duration,

    /// A modem-control line of a serial port, cd, cts, dsr or ri, that is on while the power is
    /// there, or off with a ! before its name
    #[arg(long, value_name = "PORT:LINE")]
    line: Vec<String>,

    /// A file that has the word failing while the power fails, or a pipe to which it is written,
    /// and fine later
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,

    /// Seconds from the failure until the machine stops
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    hold_up: Duration,

    /// Safety margin, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = seconds)]
    safety: Duration,

    /// Seconds that a recovery may take; one that takes longer is killed, and the next attach
    /// recovers
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    recovery: Duration,

    /// Bytes that are written in a second, with K, M or G [default: as measured of each process]
    #[arg(long, value_name = "SIZE", value_parser = crate::values::size)]
    bandwidth: Option<u64>,

    /// Look once at the detectors, say what there is time for, and end
    #[arg(long)]
    dry_run: bool,
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    let usable = (0.001..=86_400.0).contains(&seconds).then(|| Duration::from_secs_f64(seconds));
    usable.ok_or_else(|| "give from 0.001 seconds to a day".to_owned())
}

impl From<GuardError> for Failure {
    fn from(error: GuardError) -> Self {
        let exit = match &error {
            GuardError::Taken(_) => Exit::Busy,
            GuardError::NoSocket(_) => Exit::Usage,
            GuardError::Absent(_) => Exit::NotFound,
            GuardError::Denied(_) => Exit::Denied,
            _ => Exit::Failed,
        };
        Failure::new(exit, error.to_string(), error.remedy())
    }
}

pub fn run(context: &Context, args: &Guard) -> Result {
    match &args.action {
        Action::Run(args) if args.dry_run => dry_run(context, args),
        Action::Run(args) => be_guard(context, args),
        Action::Status(args) => {
            let status = indelible_guard::status(&args.socket(), args.patience)?;
            show(context.json, &status, status_text)
        }
        Action::Test(args) => {
            let round = indelible_guard::rehearse(&args.socket(), args.patience)?;
            show(context.json, &round, round_text)?;
            if round.durable { Ok(()) } else { Err(Failure::Quiet(Exit::Failed)) }
        }
    }
}

impl Ask {
    fn socket(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(indelible_guard::default_socket)
    }
}

impl Run {
    fn budget(&self) -> Budget {
        Budget { hold_up: self.hold_up, safety: self.safety, bandwidth: self.bandwidth }
    }

    fn detectors(&self) -> Result<Vec<Box<dyn Detector>>> {
        let mut detectors: Vec<Box<dyn Detector>> = Vec::new();
        if self.signal {
            detectors.push(Box::new(SignalDetector::default()));
        }
        for name in &self.nut {
            let detector = NutDetector::new(name, self.nut_interval);
            detectors.push(Box::new(detector.map_err(|error| unusable("--nut", name, &error))?));
        }
        for line in &self.line {
            let (port, name) = line.rsplit_once(':').unwrap_or((line, ""));
            let detector = LineDetector::open(port, name);
            detectors.push(Box::new(detector.map_err(|error| unusable("--line", line, &error))?));
        }
        detectors.extend(self.file.iter().map(|path| Box::new(FileDetector::new(path)) as Box<dyn Detector>));
        if detectors.is_empty() {
            note(
                "no detector is named: the guard recovers processes that die, and learns of no power failure",
            );
        }
        Ok(detectors)
    }
}

fn unusable(option: &str, value: &str, error: &std::io::Error) -> Failure {
    let message = format!("cannot watch {}: {error}", printable(value));
    Failure::new(Exit::Usage, message, format!("`pmo help guard run` shows what {option} takes"))
}

fn be_guard(context: &Context, args: &Run) -> Result {
    // Before other threads start.
    hold_back_signals();
    let (json, budget) = (context.json, args.budget());
    let said = move |note: &Note| {
        let mut out = Out::new();
        let text = if json { text::json(note).unwrap_or_default() } else { printable(&note.to_string()) };
        // A guard goes on without a reader of its output.
        let _ = out.line(&text).and_then(|()| out.finish());
    };
    let config = Config {
        socket: args.socket.clone().unwrap_or_else(indelible_guard::default_socket),
        budget,
        detectors: args.detectors()?,
        recover: Arc::new({
            let patience = args.recovery;
            move |departed: &Departed| recover(departed, patience)
        }),
        note: Box::new(said),
    };
    let socket = config.socket.clone();
    let guard = indelible_guard::Guard::start(config)?;
    let stop = guard.stop();
    stop.at_termination().map_err(|error| Failure::file("wait for signals at", &socket, &error))?;
    detail(|| format!("the guard listens at {}", socket.display()));
    if let Err(error) = indelible_guard::ready() {
        note(&format!("the service manager cannot be told that the guard is ready: {error}"));
    }
    guard.run().map_err(|error| Failure::file("listen at", &socket, &error))
}

/// Recovers a dead process's memory by a child that becomes its user's. That user may stop the
/// child: `patience` bounds it. It changes the user only in its program, as the start of a process
/// waits for that.
fn recover(departed: &Departed, patience: Duration) -> std::result::Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["recover", "--quiet", "--wait", DYING]);
    command.args(["--memory", &format!("{:016x}", departed.number)]);
    if rustix::process::geteuid().as_raw() != departed.uid {
        command.args(["--as-user", &format!("{}:{}", departed.uid, departed.gid)]);
    }
    command.arg("--");
    command.arg(&departed.pool).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let in_time = ends(&child, patience);
    if !matches!(in_time, Ok(true)) {
        // Not reaped yet, so its number is its own.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if !in_time.map_err(|error| error.to_string())? {
        return Err(format!("it took longer than {} s, and was killed", patience.as_secs_f64()));
    }
    if status.success() {
        return Ok(());
    }
    let said = child.stderr.take().map_or_else(Vec::new, said);
    let said = String::from_utf8_lossy(&said);
    Err(said.lines().next().map_or_else(|| status.to_string(), str::to_owned))
}

fn ends(child: &Child, patience: Duration) -> std::io::Result<bool> {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(std::io::Error::other)?;
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => {}
            done => return Ok(done? > 0),
        }
    }
}

fn said(pipe: ChildStderr) -> Vec<u8> {
    let mut bytes = vec![0; 64 << 10];
    let got = fcntl_setfl(&pipe, OFlags::NONBLOCK).and_then(|()| rustix::io::read(&pipe, &mut bytes));
    bytes.truncate(got.unwrap_or(0));
    bytes
}

#[derive(Serialize)]
struct DryRun {
    detectors: Vec<Eye>,
    /// Time to write in, in milliseconds.
    time_ms: u64,
    /// Bytes of a process that may be pending.
    budget: u64,
}

#[derive(Serialize)]
struct Eye {
    name: String,
    condition: &'static str,
    why: Option<String>,
    latency_ms: u64,
}

fn dry_run(context: &Context, args: &Run) -> Result {
    let budget = args.budget();
    let (mut eyes, mut latency) = (Vec::new(), Duration::ZERO);
    for mut detector in args.detectors()? {
        let (name, own) = (detector.name(), detector.latency());
        let condition =
            detector.look().map_err(|source| GuardError::Detector { name: name.clone(), source })?;
        let (condition, why) = match condition {
            Condition::Fine => ("fine", None),
            Condition::Failing => ("failing", None),
            Condition::Blind(why) => ("blind", Some(why)),
        };
        latency = latency.max(own);
        eyes.push(Eye { name, condition, why, latency_ms: millis(own) });
    }
    let time = budget.time(latency);
    let bandwidth = u128::from(args.bandwidth.unwrap_or(indelible_guard::ASSUMED));
    let bytes = u64::try_from(bandwidth * time.as_millis() / 1000).unwrap_or(u64::MAX);
    let report = DryRun { detectors: eyes, time_ms: millis(time), budget: bytes };
    show(context.json, &report, |report, out| {
        for eye in &report.detectors {
            let why = eye.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            out.line(&printable(&format!(
                "{} is {}{why}, and tells within {} ms",
                eye.name, eye.condition, eye.latency_ms
            )))?;
        }
        let assumed = if args.bandwidth.is_none() { ", as long as nothing is measured" } else { "" };
        out.line(&format!(
            "{} ms to write in: {} of one process{assumed}",
            report.time_ms,
            human(report.budget)
        ))
    })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn status_text(status: &Status, out: &mut Out) -> Result {
    let power = if status.failing { "the power fails" } else { "the power is there" };
    let (recovered, lost) = (status.recovered, status.lost);
    let pid = status.pid;
    out.line(&format!("process {pid}: {power}; dead processes: {recovered} recovered, {lost} not"))?;
    for detector in &status.detectors {
        let why = detector.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        out.line(&printable(&format!("{} is {}{why}", detector.name, detector.condition)))?;
    }
    let mut table = vec![["PID", "USER", "BUDGET", "BYTES/S", "POOL"].map(str::to_owned).to_vec()];
    table.extend(status.writers.iter().map(|writer| {
        let rate = writer.bytes_per_second.map_or_else(|| "-".to_owned(), human);
        vec![
            writer.pid.to_string(),
            writer.uid.to_string(),
            human(writer.budget),
            rate,
            printable(&writer.pool),
        ]
    }));
    if !status.writers.is_empty() {
        out.table(&table, &[true, true, true, true, false])?;
    }
    status.last.as_ref().map_or(Ok(()), |last| round_text(last, out))
}

fn round_text(round: &RoundReport, out: &mut Out) -> Result {
    out.line(&printable(&Note::Round(round.clone()).to_string()))?;
    for writer in &round.writers {
        let outcome = serde_json::to_value(writer.outcome)?;
        let why = writer.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let (took, bytes) = (writer.microseconds as f64 / 1e3, human(writer.bytes));
        let (pid, pool, outcome) = (writer.pid, &writer.pool, outcome.as_str().unwrap_or_default());
        out.line(&printable(&format!("  process {pid}, {pool}: {outcome}, {bytes}, {took:.3} ms{why}")))?;
    }
    Ok(())
}
