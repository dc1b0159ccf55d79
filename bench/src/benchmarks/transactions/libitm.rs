//! GCC's libitm with the same loads: a C program, compiled for this run.

use super::loads::Load;
use crate::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// libitm's compared method: versioned locks for many, write-through.
pub const METHOD: &str = "ml_wt";
pub const MISSING: &str = "There is no GCC with -fgnu-tm, or no libitm: on Debian, the package gcc has both.";

pub struct Libitm(PathBuf);

impl Libitm {
    pub fn compile(folder: &Path) -> Result<Option<Libitm>> {
        Libitm::linked(folder, "libitm", None)
    }

    pub fn linked(folder: &Path, name: &str, library: Option<&Path>) -> Result<Option<Libitm>> {
        let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
        std::fs::write(&source, include_str!("libitm.c"))?;
        let arguments = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-fgnu-tm", "-pthread", "-o"];
        let files = [&*program, &*source].into_iter().chain(library);
        let compiled = Command::new("gcc").args(arguments).args(files).arg("-lm").output();
        Ok(compiled.is_ok_and(|output| output.status.success()).then_some(Libitm(program)))
    }

    pub fn run(&self, load: Load, threads: usize, rounds: usize, lines: usize) -> Result<(f64, u64)> {
        let numbers = [load as usize, threads, rounds, lines].map(|number| number.to_string());
        let output = Command::new(&self.0).args(numbers).env("ITM_DEFAULT_METHOD", METHOD).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            [nanoseconds, sum] if output.status.success() => Ok((nanoseconds.parse()?, sum.parse()?)),
            _ => Err(format!("libitm: {}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr))
                .into()),
        }
    }
}
