//! A writer in a process of its own, which commits an update whenever it is told to.

use super::{Mode, ycsb};
use crate::Result;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The work of that process: it commits one update for each line, and answers with another.
pub fn work(folder: &Path, mode: &str) -> Result<()> {
    let mode = Mode::ALL.into_iter().find(|other| other.word() == mode).ok_or("no such mode")?;
    let mut table = ycsb::Table::open(mode, folder)?;
    // The first one takes the object over from the reader's process.
    table.change(1)?;
    println!();
    for line in std::io::stdin().lines() {
        table.change(line?.trim().parse()?)?;
        println!();
    }
    Ok(())
}

pub struct Writer {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Writer {
    pub fn start(mode: Mode, folder: &Path) -> Result<Writer> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["child", "update"])
            .arg(folder)
            .arg(mode.word())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let to = process.stdin.take().ok_or("a pipe")?;
        let from = BufReader::new(process.stdout.take().ok_or("a pipe")?);
        let mut writer = Writer { process, to, from };
        writer.answered()?;
        Ok(writer)
    }

    fn answered(&mut self) -> Result<()> {
        match self.from.read_line(&mut String::new())? {
            0 => Err("the writer's process failed".into()),
            _ => Ok(()),
        }
    }

    pub fn change(&mut self, key: u64) -> Result<()> {
        writeln!(self.to, "{key}")?;
        self.answered()
    }

    pub fn end(self) -> Result<()> {
        let Writer { mut process, to, .. } = self;
        drop(to);
        let status = process.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the writer failed: {status}").into()) }
    }
}
