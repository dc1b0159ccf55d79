//! `mutants`: which layers and scenarios notice which broken rule of the protocol. At least two
//! must notice each.

#[cfg(feature = "mutants")]
mod common;
#[cfg(feature = "mutants")]
mod damage;
#[cfg(feature = "mutants")]
mod demand;
#[cfg(feature = "mutants")]
mod layers;
#[cfg(feature = "mutants")]
mod programs;
#[cfg(feature = "mutants")]
mod repairs;
#[cfg(feature = "mutants")]
mod table;

use anyhow::Result;
use clap::Args;

#[derive(Args)]
pub(crate) struct Mutants {
    /// Prints the table as JSON
    #[arg(long)]
    json: bool,
    /// These alone, by name
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Says what each layer noticed
    #[arg(long)]
    why: bool,
    /// Every layer against every mutant, however many have noticed it, kills and failing system
    /// calls as well: ten seconds each
    #[arg(long)]
    long: bool,
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

impl Mutants {
    #[cfg(feature = "mutants")]
    pub(crate) fn run(&self) -> Result<()> {
        table::run(self)
    }

    #[cfg(not(feature = "mutants"))]
    pub(crate) fn run(&self) -> Result<()> {
        let Mutants { json: _, only: _, why: _, long: _, threads: _ } = self;
        anyhow::bail!(
            "this build has no mutants in it; run: \
             cargo run --release -p indelible-evidence --features mutants -- mutants"
        )
    }
}
