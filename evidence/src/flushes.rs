//! `flushes`: traces one psync to persistent memory: it writes the batch's lines back, or stores
//! them non-temporally, and a fence follows.
//!
//! This checks a processor's instructions on any x86-64 machine; the rig (`cargo xtask power-cut`)
//! judges states after power cuts.

use anyhow::{Result, bail};
use clap::Args;
use indelible::{MediumKind, PoolOptions};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::path::PathBuf;
use std::process::Command;

const POOL: u64 = 4 << 20;
/// Lines of the smallest batch: header, a line of data, and records of its destination.
const LEAST: u64 = 3;
const INSTRUCTIONS: u64 = 2_000_000;

#[derive(Args)]
pub(crate) struct Flushes {}

#[derive(Args)]
pub(crate) struct Child {
    #[arg(long)]
    pool: PathBuf,
}

impl Child {
    pub(crate) fn run(&self) -> Result<()> {
        let options = PoolOptions::new().medium(MediumKind::Memory);
        let pool = options.format(&self.pool, POOL)?;
        pool.create("object", 4096)?;
        let mut object = pool.attach("object")?;
        object.range_mut(0..8).copy_from_slice(b"before..");
        object.psync()?;
        object.range_mut(0..8).copy_from_slice(b"after...");
        ptrace::traceme()?;
        raise(Signal::SIGSTOP)?;
        raise(Signal::SIGUSR1)?;
        let done = object.psync();
        raise(Signal::SIGUSR2)?;
        Ok(done?)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    WriteBack,
    NonTemporal,
    Fence,
}

impl Flushes {
    pub(crate) fn run(&self) -> Result<()> {
        let folder = tempfile::Builder::new().prefix("indelible-flushes-").tempdir_in("/dev/shm")?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("flushes-child").arg("--pool").arg(folder.path().join("pool"));
        let mut child = command.spawn()?;
        let seen = follow(Pid::from_raw(child.id() as i32));
        if seen.is_err() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let seen = seen?;
        let fence = seen.iter().rposition(|seen| *seen == Seen::Fence);
        let Some(fence) = fence else {
            bail!("no fence in a psync that wrote back {} lines", seen.len());
        };
        let lines = seen[..fence].iter().filter(|seen| **seen != Seen::Fence).count() as u64;
        if lines < LEAST {
            bail!(
                "a psync wrote back {lines} lines, non-temporal stores included, before its fence; {LEAST} are the least"
            );
        }
        println!(
            "flushes: {lines} lines before the fence of a psync, {} instructions of that kind",
            seen.len()
        );
        Ok(())
    }
}

fn follow(pid: Pid) -> Result<Vec<Seen>> {
    let mut seen = Vec::new();
    match waitpid(pid, None)? {
        WaitStatus::Stopped(_, Signal::SIGSTOP) => {}
        other => bail!("it did not stop to be traced: {other:?}"),
    }
    ptrace::setoptions(pid, ptrace::Options::PTRACE_O_EXITKILL)?;
    ptrace::cont(pid, None)?;
    match waitpid(pid, None)? {
        WaitStatus::Stopped(_, Signal::SIGUSR1) => {}
        other => bail!("it does not psync: {other:?}"),
    }
    for _ in 0..INSTRUCTIONS {
        ptrace::step(pid, None)?;
        match waitpid(pid, None)? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => seen.extend(next(pid)?),
            WaitStatus::Stopped(_, Signal::SIGUSR2) => {
                ptrace::cont(pid, None)?;
                return match waitpid(pid, None)? {
                    WaitStatus::Exited(_, 0) => Ok(seen),
                    other => bail!("the psync failed: {other:?}"),
                };
            }
            WaitStatus::Stopped(_, signal) => bail!("{signal} in a psync"),
            other => bail!("it ended in the psync: {other:?}"),
        }
    }
    bail!("a psync of more than {INSTRUCTIONS} instructions")
}

fn next(pid: Pid) -> Result<Option<Seen>> {
    let at = ptrace::getregs(pid)?.rip;
    let word = |at: u64| ptrace::read(pid, at as ptrace::AddressType).map(i64::to_le_bytes);
    let mut code = [0; 16];
    code[..8].copy_from_slice(&word(at)?);
    code[8..].copy_from_slice(&word(at + 8).unwrap_or_default());
    Ok(decode(&code))
}

/// Encodings of the Intel manual that the library uses.
fn decode(code: &[u8; 16]) -> Option<Seen> {
    let mut at = 0;
    let mut narrow = false;
    while code[at] == 0x66 || code[at] & 0xf0 == 0x40 {
        narrow |= code[at] == 0x66;
        at += 1;
        if at > 3 {
            return None;
        }
    }
    let memory = |modrm: u8| modrm >> 6 != 3;
    match code[at..] {
        // clwb and clflushopt, clflush, sfence and mfence.
        [0x0f, 0xae, modrm, ..] => match (modrm >> 3 & 7, memory(modrm)) {
            (6 | 7, true) if narrow => Some(Seen::WriteBack),
            (7, true) => Some(Seen::WriteBack),
            (6 | 7, false) if !narrow => Some(Seen::Fence),
            _ => None,
        },
        [0x0f, 0xc3 | 0x2b | 0xe7, modrm, ..] if memory(modrm) => Some(Seen::NonTemporal),
        [0xc5, _, 0xe7, modrm, ..] | [0xc4, _, _, 0xe7, modrm, ..] if memory(modrm) => {
            Some(Seen::NonTemporal)
        }
        [0x62, _, _, _, 0xe7, modrm, ..] if memory(modrm) => Some(Seen::NonTemporal),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_told_apart() {
        let seen = |code: &[u8]| {
            let mut bytes = [0x90; 16];
            bytes[..code.len()].copy_from_slice(code);
            decode(&bytes)
        };
        assert_eq!(seen(&[0x66, 0x0f, 0xae, 0x37]), Some(Seen::WriteBack), "clwb [rdi]");
        assert_eq!(seen(&[0x66, 0x41, 0x0f, 0xae, 0x38]), Some(Seen::WriteBack), "clflushopt [r8]");
        assert_eq!(seen(&[0x0f, 0xae, 0x3f]), Some(Seen::WriteBack), "clflush [rdi]");
        assert_eq!(seen(&[0x0f, 0xae, 0xf8]), Some(Seen::Fence), "sfence");
        assert_eq!(seen(&[0x0f, 0xae, 0xf0]), Some(Seen::Fence), "mfence");
        assert_eq!(seen(&[0x66, 0x0f, 0xe7, 0x07]), Some(Seen::NonTemporal), "movntdq [rdi], xmm0");
        assert_eq!(seen(&[0xc5, 0xfd, 0xe7, 0x07]), Some(Seen::NonTemporal), "vmovntdq [rdi], ymm0");
        assert_eq!(
            seen(&[0x62, 0xe1, 0x7d, 0x48, 0xe7, 0x07]),
            Some(Seen::NonTemporal),
            "vmovntdq [rdi], zmm16"
        );
        assert_eq!(seen(&[0x0f, 0xae, 0xe8]), None, "lfence");
        assert_eq!(seen(&[0x0f, 0xae, 0x37]), None, "xsaveopt [rdi]");
        assert_eq!(seen(&[0x48, 0x89, 0x07]), None, "mov [rdi], rax");
    }
}
