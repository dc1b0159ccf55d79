use super::calls::{About, Call, Effect, Fault};
use anyhow::{Context, Result, bail};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const PAGE: u64 = 4096;
const CALLS: u64 = 1_000_000;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Aim {
    pub(crate) call: &'static str,
    pub(crate) occurrence: u64,
    pub(crate) fault: Fault,
}

#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) calls: BTreeMap<&'static str, u64>,
    pub(crate) hit: bool,
    /// The first barrier or write that repeats a failed one without a reopening or a read.
    pub(crate) retried: Option<String>,
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<Signal>,
    pub(crate) hung: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

struct Under {
    call: &'static Call,
    result: Option<i32>,
    skipped: bool,
    /// The third argument, and the first piece's length and place: a program may rely on a call to
    /// preserve them.
    third: u64,
    pool: bool,
    pages: Option<(u64, Range<u64>)>,
    piece: Option<(u64, [u8; 8])>,
}

struct Tracer<'a> {
    folder: &'a Path,
    aim: Option<Aim>,
    trace: Trace,
    /// By thread; inner `None`: an ignored call.
    under: HashMap<Pid, Option<Under>>,
    ranges: Vec<Range<u64>>,
    /// Some file systems show reserved pages, by inode and number, as holes until they are written.
    reserved: HashSet<(u64, u64)>,
    /// A write or write-back failed, and the file was not read since: no write may rely on its
    /// content.
    unread: bool,
    unopened: bool,
}

pub(crate) fn be_traced() -> Result<()> {
    ptrace::traceme()?;
    Ok(nix::sys::signal::raise(Signal::SIGSTOP)?)
}

pub(crate) fn run(mut command: Command, folder: &Path, aim: Option<Aim>) -> Result<Trace> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let pid = Pid::from_raw(child.id() as i32);
    let mut tracer = Tracer {
        folder,
        aim,
        trace: Trace::default(),
        under: HashMap::new(),
        ranges: Vec::new(),
        reserved: HashSet::new(),
        unread: false,
        unopened: false,
    };
    let (ended, watch) = mpsc::channel::<()>();
    let dog = thread::spawn(move || {
        let late = watch.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout);
        if late {
            let _ = nix::sys::signal::kill(pid, Signal::SIGKILL);
        }
        late
    });
    let result = tracer.follow(pid);
    if result.is_err() {
        let _ = nix::sys::signal::kill(pid, Signal::SIGKILL);
    }
    drop(ended);
    let mut trace = tracer.trace;
    trace.hung |= dog.join().expect("it does not panic");
    result?;
    child.stdout.take().context("a pipe")?.read_to_string(&mut trace.stdout)?;
    child.stderr.take().context("a pipe")?.read_to_string(&mut trace.stderr)?;
    Ok(trace)
}

impl Tracer<'_> {
    fn follow(&mut self, main: Pid) -> Result<()> {
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        match waitpid(main, Some(flags))? {
            WaitStatus::Stopped(_, Signal::SIGSTOP) => {}
            other => bail!("it did not stop to be traced: {other:?}"),
        }
        let options = ptrace::Options::PTRACE_O_TRACESYSGOOD
            | ptrace::Options::PTRACE_O_TRACECLONE
            | ptrace::Options::PTRACE_O_EXITKILL;
        ptrace::setoptions(main, options)?;
        ptrace::syscall(main, None)?;
        let mut stops = 0;
        loop {
            stops += 1;
            if stops > CALLS {
                self.trace.hung = true;
                bail!("more than {CALLS} stops");
            }
            let (pid, signal) = match waitpid(None, Some(flags))? {
                WaitStatus::Exited(pid, code) if pid == main => {
                    self.trace.code = Some(code);
                    return Ok(());
                }
                WaitStatus::Signaled(pid, signal, _) if pid == main => {
                    self.trace.signal = Some(signal);
                    return Ok(());
                }
                WaitStatus::PtraceSyscall(pid) => {
                    match self.call(pid) {
                        Ok(()) => {}
                        Err(error) if gone(&error) => continue,
                        Err(error) => return Err(error),
                    }
                    (pid, None)
                }
                WaitStatus::Stopped(pid, Signal::SIGSTOP) => (pid, None),
                WaitStatus::Stopped(pid, signal) => (pid, Some(signal)),
                WaitStatus::PtraceEvent(pid, ..) => (pid, None),
                _ => continue,
            };
            match ptrace::syscall(pid, signal) {
                Ok(()) | Err(nix::errno::Errno::ESRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn call(&mut self, pid: Pid) -> Result<()> {
        match self.under.remove(&pid) {
            None => {
                let under = self.enter(pid)?;
                self.under.insert(pid, under);
                Ok(())
            }
            Some(None) => Ok(()),
            Some(Some(under)) => self.leave(pid, &under),
        }
    }

    fn enter(&mut self, pid: Pid) -> Result<Option<Under>> {
        let mut regs = ptrace::getregs(pid)?;
        let Some(call) = Call::of(regs.orig_rax, regs.rsi) else { return Ok(None) };
        let args = [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9];
        let pool = self.is_about_pool(pid, call, &args);
        if !pool && !is_about_memory(pid, call, &args) {
            return Ok(None);
        }
        let seen = self.trace.calls.entry(call.name).or_default();
        *seen += 1;
        let occurrence = *seen;
        let again = pool && self.is_again(call);
        if again && self.trace.retried.is_none() {
            self.trace.retried = Some(format!("{} {occurrence}", call.name));
        }
        let mut under =
            Under { call, result: None, skipped: false, third: regs.rdx, pool, pages: None, piece: None };
        if regs.orig_rax == libc::SYS_fallocate as u64 {
            let inode = opened(pid, args[0]).and_then(|file| file.metadata());
            let pages = args[2] / PAGE..(args[2] + args[3]).div_ceil(PAGE);
            under.pages = inode.ok().map(|file| (file.ino(), pages));
        }
        let Some(aim) = self.aim.filter(|aim| aim.call == call.name && aim.occurrence == occurrence) else {
            return Ok(Some(under));
        };
        if call.name == "fallocate"
            && aim.fault == Fault::Error(libc::ENOSPC)
            && self.has_blocks(&under, opened(pid, args[0]))
        {
            return Ok(Some(under));
        }
        self.trace.hit = true;
        match aim.fault {
            Fault::Error(error) => {
                regs.orig_rax = u64::MAX;
                ptrace::setregs(pid, regs)?;
                (under.result, under.skipped) = (Some(-error), true);
                if error != libc::EINTR && pool {
                    self.failed(call);
                }
            }
            Fault::Late(error) => {
                under.result = Some(-error);
                if pool {
                    self.failed(call);
                }
            }
            Fault::Short if call.effect == Effect::Bytes => {
                regs.rdx = regs.rdx.div_ceil(2);
                ptrace::setregs(pid, regs)?;
            }
            Fault::Short => {
                let (at, mut len) = (args[1] + 8, [0; 8]);
                memory(pid)?.read_exact_at(&mut len, at)?;
                memory(pid)?.write_all_at(&u64::from_ne_bytes(len).div_ceil(2).to_ne_bytes(), at)?;
                under.piece = Some((at, len));
                regs.rdx = 1;
                ptrace::setregs(pid, regs)?;
            }
            Fault::Kill => nix::sys::signal::kill(pid, Signal::SIGKILL)?,
        }
        Ok(Some(under))
    }

    fn is_again(&self, call: &Call) -> bool {
        call.effect == Effect::Barrier && self.unopened || call.is_change() && self.unread
    }

    /// Whether each page of a `fallocate` has its block: then no file system lacks space for it.
    fn has_blocks(&self, under: &Under, file: std::io::Result<fs::File>) -> bool {
        let (Some((inode, mut pages)), Ok(file)) = (under.pages.clone(), file) else { return false };
        let is_data = |page: u64| {
            let at = (page * PAGE) as i64;
            nix::unistd::lseek(&file, at, nix::unistd::Whence::SeekData) == Ok(at)
        };
        pages.all(|page| self.reserved.contains(&(inode, page)) || is_data(page))
    }

    fn failed(&mut self, call: &Call) {
        self.unread |= call.tells_of_loss();
        self.unopened |= call.effect == Effect::Barrier;
    }

    fn leave(&mut self, pid: Pid, under: &Under) -> Result<()> {
        let mut regs = ptrace::getregs(pid)?;
        if let Some((at, len)) = under.piece {
            memory(pid)?.write_all_at(&len, at)?;
        }
        if under.result.is_some() || regs.rdx != under.third {
            regs.rax = under.result.map_or(regs.rax, |result| i64::from(result) as u64);
            regs.rdx = under.third;
            ptrace::setregs(pid, regs)?;
        }
        if under.skipped || (regs.rax as i64) < 0 {
            return Ok(());
        }
        if let Some((inode, pages)) = under.pages.clone() {
            for at in pages.map(|page| (inode, page)) {
                _ = if under.call.name == "fallocate" {
                    self.reserved.insert(at)
                } else {
                    self.reserved.remove(&at)
                };
            }
        }
        match under.call.about {
            About::Map => self.ranges.push(regs.rax..regs.rax + regs.rsi),
            About::Path(_) if under.pool && under.call.name.starts_with("open") => {
                (self.unread, self.unopened) = (false, false);
            }
            _ if under.pool && under.call.is_read() => self.unread = false,
            _ => {}
        }
        Ok(())
    }

    fn is_about_pool(&self, pid: Pid, call: &Call, args: &[u64; 6]) -> bool {
        match call.about {
            About::Descriptor => self.is_medium(pid, args[0]),
            About::Lock => (36..=38).contains(&args[1]) && self.is_medium(pid, args[0]),
            About::Control => {
                let of = descriptor(pid, args[0]);
                of.contains("userfaultfd") || of.ends_with("/pagemap")
            }
            About::Path(argument) => {
                let path = text(pid, args[argument]).unwrap_or_default();
                // With an empty path the call concerns the directory descriptor.
                let open = path.is_empty() && argument > 0 && self.is_medium(pid, args[argument - 1]);
                open || Path::new(&path).starts_with(self.folder) || path == "/proc/self/pagemap"
            }
            About::Map => {
                let mapped = args[3] & libc::MAP_ANONYMOUS as u64 == 0 && self.is_medium(pid, args[4]);
                mapped || args[3] & libc::MAP_FIXED_NOREPLACE as u64 != 0
            }
            About::Address => self.ranges.iter().any(|range| range.contains(&args[0])),
            About::Itself => true,
        }
    }

    fn is_medium(&self, pid: Pid, fd: u64) -> bool {
        Path::new(&descriptor(pid, fd)).starts_with(self.folder)
    }
}

fn is_about_memory(pid: Pid, call: &Call, args: &[u64; 6]) -> bool {
    let shared = |fd| Path::new(&descriptor(pid, fd)).starts_with("/dev/shm");
    match call.about {
        About::Descriptor => shared(args[0]),
        About::Map => args[3] & libc::MAP_ANONYMOUS as u64 == 0 && shared(args[4]),
        About::Path(argument) => text(pid, args[argument]).is_some_and(|path| path.starts_with("/dev/shm")),
        About::Lock | About::Control | About::Address | About::Itself => false,
    }
}

fn gone(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(nix::errno::Errno::ESRCH))
}

fn descriptor(pid: Pid, fd: u64) -> String {
    let link = fs::read_link(format!("/proc/{pid}/fd/{}", fd as i32));
    link.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
}

fn opened(pid: Pid, fd: u64) -> std::io::Result<fs::File> {
    fs::File::open(format!("/proc/{pid}/fd/{}", fd as i32))
}

fn memory(pid: Pid) -> std::io::Result<fs::File> {
    fs::OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem"))
}

fn text(pid: Pid, address: u64) -> Option<String> {
    let memory = memory(pid).ok()?;
    let mut bytes = Vec::new();
    let mut piece = [0; 64];
    while bytes.len() < 4096 {
        let at = address + bytes.len() as u64;
        let len = (4096 - at % 4096).min(piece.len() as u64) as usize;
        let read = memory.read_at(&mut piece[..len], at).ok()?;
        if let Some(end) = piece[..read].iter().position(|byte| *byte == 0) {
            bytes.extend_from_slice(&piece[..end]);
            return String::from_utf8(bytes).ok();
        }
        bytes.extend_from_slice(&piece[..read]);
    }
    None
}
