//! From records to a table.

use crate::record::{Record, folder};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct Report {
    /// Folder of the records [default: target/evidence]
    #[arg(long)]
    from: Option<PathBuf>,
}

impl Report {
    pub(crate) fn run(&self) -> Result<()> {
        for record in Record::all(&self.from.clone().unwrap_or_else(folder))? {
            println!("{}", record.layer);
            for (what, count) in &record.counts {
                println!("  {what:<40} {count}");
            }
        }
        Ok(())
    }
}
