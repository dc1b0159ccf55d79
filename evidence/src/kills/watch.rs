use crate::workloads::wire::Said;
use anyhow::{Result, bail};
use indelible_record::add;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SILENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Default)]
pub(crate) struct Fate {
    pub(crate) stops: VecDeque<(usize, u32)>,
    pub(crate) death: Option<(usize, u32)>,
}

#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) said: Vec<Said>,
    pub(crate) end: End,
    pub(crate) stopped: u64,
    pub(crate) stderr: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    #[default]
    Exit,
    Killed,
    OutOfMemory,
    Aborted,
    Hung,
    Crashed(i32),
}

pub(crate) struct Names<'n> {
    pub(crate) killed: [String; 2],
    pub(crate) done: &'n str,
}

impl Seen {
    pub(crate) fn account(
        &self,
        role: impl Debug,
        names: &Names<'_>,
        (log, counts): (&mut String, &mut BTreeMap<String, u64>),
    ) -> Result<()> {
        for said in &self.said {
            *log += &format!("{role:?}: {said}\n");
        }
        *log += &format!("{role:?}: ended by {:?}\n{}", self.end, self.stderr);
        let mut count = |what: &str, number| add(counts, what, number);
        count("SIGSTOP and SIGCONT", self.stopped);
        match self.end {
            End::Exit => count("processes that ended by themselves", 1),
            End::Killed => names.killed.iter().for_each(|name| count(name, 1)),
            end => bail!("a {role:?} ended by {end:?}: {}", self.stderr),
        }
        for said in &self.said {
            match said {
                Said::Wrong { why } | Said::Failed { why, .. } => bail!("{role:?}: {why}"),
                Said::Done { .. } => count(names.done, 1),
                Said::Count { what, count: number } => count(what, *number),
                Said::Settled { .. } | Said::Begun { .. } => {}
            }
        }
        Ok(())
    }
}

pub(crate) const IDLE: &str = "victims killed while idle";

pub(crate) fn idle() -> Said {
    Said::Count { what: IDLE.into(), count: 1 }
}

pub(crate) fn start(mut command: Command) -> std::io::Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

pub(crate) fn watch(mut child: Child, mut fate: Fate, over: &dyn Fn() -> bool) -> std::io::Result<Seen> {
    let mut seen = Seen::default();
    let mut out = child.stdout.take().expect("a pipe");
    let pid = Pid::from_child(&child);
    let (mut buffer, mut text) = ([0; 4096], Vec::new());
    let (mut killed, mut hung) = (false, false);
    let mut heard = Instant::now();
    loop {
        while let Some((lines, spins)) = fate.stops.front().copied()
            && lines <= seen.said.len()
            && !killed
        {
            fate.stops.pop_front();
            if kill_process(pid, Signal::STOP).is_ok() {
                spin(spins);
                seen.stopped += 1;
                if fate.death.is_none_or(|(death, _)| death > seen.said.len()) {
                    let _ = kill_process(pid, Signal::CONT);
                }
            }
        }
        let idle =
            seen.said.last().is_some_and(|said| matches!(said, Said::Count { what, .. } if what == IDLE));
        if !killed && (fate.death.is_some_and(|(lines, _)| lines <= seen.said.len() || idle) || over()) {
            spin(fate.death.map_or(0, |(_, spins)| spins));
            killed = kill_process(pid, Signal::KILL).is_ok();
        }
        let mut fds = [PollFd::new(&out, PollFlags::IN)];
        if poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 50_000_000 }))? == 0 {
            if heard.elapsed() > SILENCE && !killed {
                hung = true;
                killed = kill_process(pid, Signal::KILL).is_ok();
            }
            continue;
        }
        heard = Instant::now();
        match out.read(&mut buffer)? {
            0 => break,
            count => text.extend_from_slice(&buffer[..count]),
        }
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&text[..end]).into_owned();
            text.drain(..=end);
            seen.said
                .push(Said::parse(&line).unwrap_or(Said::Wrong { why: format!("unknown line {line:?}") }));
        }
    }
    let output = child.wait_with_output()?;
    seen.stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    seen.end = match (output.status.signal(), output.status.code()) {
        _ if hung => End::Hung,
        (Some(9), _) if killed => End::Killed,
        (Some(9), _) => End::OutOfMemory,
        (Some(6), _)
            if ["memory allocation of", "out of memory", "Cannot allocate memory"]
                .iter()
                .any(|why| seen.stderr.contains(why)) =>
        {
            End::Aborted
        }
        (Some(signal), _) => End::Crashed(signal),
        (None, Some(0)) => End::Exit,
        (None, code) => End::Crashed(-code.unwrap_or(0)),
    };
    Ok(seen)
}

fn spin(turns: u32) {
    for _ in 0..turns {
        std::hint::spin_loop();
    }
}
