//! One run of an emulated machine.

use crate::environment::Environment;
use crate::kind::{Kernel, Kind};
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const EMULATOR: &str = "qemu-system-x86_64";
const ORDER: usize = 1000;
pub(crate) const SIZE: u64 = 64 << 20;
/// Its physical address: behind the gap below 4 GiB, where the RAM ends.
const BASE: u64 = 4 << 30;
/// Virtual address of physical memory in a kernel without address randomisation (4-level page
/// tables).
const WINDOW: u64 = 0xffff_8880_0000_0000;
/// A cut normally takes seconds.
const PATIENCE: Duration = Duration::from_secs(1800);
const CUT: i32 = 77;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Counts from `watch` (before the medium is accessed), `go` (before the first step) or
    /// `promised` (after the guard's report), itself the first event.
    pub(crate) after: &'static str,
    /// Stores to another line, write-backs, fences; 0: when the machine is done.
    pub(crate) event: u64,
    pub(crate) seed: u64,
    pub(crate) failure: Option<PowerFailure>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PowerFailure {
    /// Looks at the line after `go`; the last one finds it off.
    pub(crate) looks: u64,
    /// Milliseconds from then to the loss of power at the latest.
    pub(crate) hold: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) kind: Kind,
    pub(crate) state: PathBuf,
    /// Words for the guest: `task=run`.
    pub(crate) words: Vec<(&'static str, String)>,
    pub(crate) cut: Option<Cut>,
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) said: Vec<String>,
    /// Cut, rather than switched off.
    pub(crate) cut: bool,
    pub(crate) undecided: u64,
    /// Nanoseconds from the failure to the guard's report.
    pub(crate) durable: Option<u64>,
}

pub(crate) struct Slot {
    pub(crate) live: PathBuf,
    pub(crate) durable: PathBuf,
    said: PathBuf,
    console: PathBuf,
    report: PathBuf,
    order: PathBuf,
}

impl Slot {
    pub(crate) fn new(folder: &Path, name: &str) -> Slot {
        let file = |ending: &str| folder.join(format!("{name}.{ending}"));
        Slot {
            live: file("live"),
            durable: file("durable"),
            said: file("said"),
            console: file("console"),
            report: file("report"),
            order: file("order"),
        }
    }

    pub(crate) fn keep(&self, folder: &Path, order: &Order) -> Result<()> {
        fs::create_dir_all(folder)?;
        for file in [&self.live, &self.durable, &self.said, &self.console, &self.report] {
            if let Some(name) = file.extension().filter(|_| file.exists()) {
                fs::copy(file, folder.join(name))?;
            }
        }
        Ok(fs::write(folder.join("run"), format!("{order:#?}\n"))?)
    }
}

/// Boots a kernel until it waits for its order, and saves the machine, whose medium is untouched.
/// Returns its path.
pub(crate) fn save(environment: &Environment, folder: &Path, kernel: Kernel) -> Result<PathBuf> {
    let slot = Slot::new(folder, kernel.word());
    fs::File::create(&slot.live)?.set_len(SIZE)?;
    let state = folder.join(format!("{}.state", kernel.word()));
    let mut command = command(environment, &slot, kernel, "wait")?;
    let mut child = spawn(&mut command)?;
    let begin = Instant::now();
    while fs::read(&slot.said)? != b"ready\n" {
        if begin.elapsed() > PATIENCE || child.try_wait()?.is_some() {
            child.kill()?;
            child.wait()?;
            bail!("kernel {} does not boot; {}", kernel.word(), last_words(&slot));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    instruct(&mut child, &format!("stop\n{NO_MEDIUM}migrate file:{}\nquit\n", state.display()))?;
    let status = child.wait()?;
    fs::remove_file(&slot.live)?;
    if !status.success() || !state.is_file() {
        bail!("the machine could not be saved ({status}); {}", last_words(&slot));
    }
    Ok(state)
}

/// For the emulator's monitor: memory shared with a file is not saved.
const NO_MEDIUM: &str = "migrate_set_capability x-ignore-shared on\n";

fn spawn(command: &mut Command) -> Result<Child> {
    command.spawn().with_context(|| format!("cannot run {EMULATOR}"))
}

fn instruct(child: &mut Child, words: &str) -> Result<()> {
    let monitor = child.stdin.as_mut().context("no monitor")?;
    Ok(monitor.write_all(words.as_bytes())?)
}

/// Runs a machine on `slot.live`; after a cut, `slot.durable` has the durable bytes.
pub(crate) fn run(environment: &Environment, slot: &Slot, order: &Order) -> Result<Outcome> {
    let mut words = format!("medium={}", order.kind.medium.word());
    for (name, value) in &order.words {
        words += &format!(" {name}={value}");
    }
    let mut command = command(environment, slot, order.kind.kernel, &words)?;
    command.args(["-incoming", "defer"]);
    if let Some(cut) = order.cut {
        let (fail, hold) = cut.failure.map_or((0, 0), |failure| (failure.looks, failure.hold));
        command.arg("-plugin").arg(format!(
            "{},live={},durable={},report={},base={BASE},window={WINDOW},seed={},after={},cut={},fail={fail},hold={hold}",
            environment.plugin().display(),
            slot.live.display(),
            slot.durable.display(),
            slot.report.display(),
            cut.seed,
            cut.after,
            cut.event
        ));
    }
    let begin = Instant::now();
    let mut child = spawn(&mut command)?;
    instruct(&mut child, &format!("{NO_MEDIUM}migrate_incoming file:{}\n", order.state.display()))?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begin.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            bail!("the machine hangs; {}", last_words(slot));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let cut = status.code() == Some(CUT);
    if !cut && !status.success() {
        bail!("the emulator failed ({status}); {}", last_words(slot));
    }
    let report = fs::read_to_string(&slot.report)?;
    let number = |name: &str| {
        let word = report.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        word.and_then(|word| word.parse::<u64>().ok())
    };
    if order.cut.is_some() {
        match number("untold") {
            Some(0) => {}
            Some(lines) => bail!("{lines} lines changed unseen by the plugin"),
            None => bail!("the plugin left no report; {}", last_words(slot)),
        }
    }
    let said = String::from_utf8_lossy(&fs::read(&slot.said)?).into_owned();
    // A line that the cut went through is incomplete.
    let whole = said.rfind('\n').map_or("", |end| &said[..end]);
    Ok(Outcome {
        said: whole.lines().map(str::to_owned).collect(),
        cut,
        undecided: number("undecided").unwrap_or(0),
        durable: number("durable").filter(|nanoseconds| *nanoseconds > 0),
    })
}

fn last_words(slot: &Slot) -> String {
    let tail = |path: &Path| {
        let text = String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines[lines.len().saturating_sub(5)..].join(" / ")
    };
    format!("it said: {}; its console: {}", tail(&slot.said), tail(&slot.console))
}

fn command(environment: &Environment, slot: &Slot, kernel: Kernel, order: &str) -> Result<Command> {
    for file in [&slot.said, &slot.console, &slot.report] {
        fs::write(file, "")?;
    }
    // All orders have one length, which the guest learns before it is saved.
    fs::write(&slot.order, format!("{order:<ORDER$}\n"))?;
    let words = "console=ttyS0 quiet nokaslr mitigations=off tsc=reliable panic=-1";
    let mut command = Command::new(EMULATOR);
    command
        .args(["-machine", "q35,nvdimm=on,nvdimm-persistence=mem-ctrl", "-accel", "tcg"])
        .args(["-cpu", "max,la57=off", "-smp", "1", "-m", "256M,slots=2,maxmem=1G"])
        .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-monitor", "stdio"])
        // Saved while stopped, it runs when loaded.
        .args(["-global", "migration.store-global-state=off"])
        .arg("-object")
        .arg(format!("memory-backend-file,id=medium,share=on,mem-path={},size={SIZE}", slot.live.display()))
        .args(["-device", "nvdimm,id=nvdimm,memdev=medium"])
        .arg("-fw_cfg")
        .arg(format!("name=opt/rig/order,file={}", slot.order.display()))
        .arg("-chardev")
        .arg(format!("file,id=said,path={}", slot.said.display()))
        .args(["-device", "isa-debugcon,iobase=0xe9,chardev=said"])
        .arg("-serial")
        .arg(format!("file:{}", slot.console.display()))
        // The plugin provides this port's lines, whatever the host port.
        .env("LD_PRELOAD", environment.plugin())
        .args(["-chardev", "serial,id=supply,path=/dev/null", "-serial", "chardev:supply"])
        .arg("-kernel")
        .arg(environment.kernel(kernel.word()).join("vmlinux"))
        .arg("-initrd")
        .arg(environment.initramfs(kernel.word()))
        .args(["-append", words]);
    let log = fs::File::options().append(true).open(&slot.console)?;
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
    Ok(command)
}
