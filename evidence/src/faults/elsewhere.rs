//! A stub for processors other than x86-64: the tracer needs its registers.

use anyhow::Result;
use clap::Args;

#[derive(Args)]
pub(crate) struct Faults {
    /// Taken and not heeded: nothing is tested here
    #[arg(hide = true, allow_hyphen_values = true, num_args = 0..)]
    ignored: Vec<String>,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Child {}

impl Faults {
    pub(crate) fn run(&self) -> Result<()> {
        println!("NOT TESTED: failing system calls, whose tracer knows x86-64 alone");
        let Faults { ignored: _ } = self;
        Ok(())
    }
}

impl Child {
    pub(crate) fn run(&self) -> Result<()> {
        anyhow::bail!("only traced processes are children")
    }
}
