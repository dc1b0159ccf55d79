//! A background command whose output is shown at its end.

use crate::command::{Result, target};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Killed on drop.
pub(crate) struct Beside {
    name: String,
    begin: Instant,
    child: Child,
    output: File,
}

pub(crate) struct Ended {
    pub(crate) succeeded: bool,
    pub(crate) took: Duration,
    pub(crate) output: String,
}

impl Beside {
    pub(crate) fn start(name: &str, command: &mut Command) -> Result<Beside> {
        let failed = |error: io::Error| format!("cannot start {name}: {error}");
        let path = target().join(format!("beside-{}.log", name.replace(' ', "-")));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path);
        let output = file.map_err(failed)?;
        let (out, err) = (output.try_clone().map_err(failed)?, output.try_clone().map_err(failed)?);
        println!("\n== {name}, beside the next: {command:?}");
        let child = command.stdout(out).stderr(err).spawn().map_err(failed)?;
        Ok(Beside { name: name.to_owned(), begin: Instant::now(), child, output })
    }

    pub(crate) fn wait(mut self) -> Result<Ended> {
        let name = self.name.clone();
        let failed = |error: io::Error| format!("cannot wait for {name}: {error}");
        let succeeded = self.child.wait().map_err(failed)?.success();
        let (took, mut said) = (self.begin.elapsed(), Vec::new());
        self.output.rewind().map_err(failed)?;
        self.output.read_to_end(&mut said).map_err(failed)?;
        let output = String::from_utf8_lossy(&said).into_owned();
        println!("\n== {name}: {:.0} s\n{output}", took.as_secs_f64());
        Ok(Ended { succeeded, took, output })
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
