mod page;

use anyhow::{Context, Result};
use clap::Args;
use indelible_record::{Record, folder};
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct Report {
    /// Folder of the records [default: target/evidence]
    #[arg(long)]
    from: Option<PathBuf>,
    /// Makes the page anew, in this file
    #[arg(long)]
    write: Option<PathBuf>,
}

impl Report {
    pub(crate) fn run(&self) -> Result<()> {
        let from = self.from.clone().unwrap_or_else(folder);
        let Some(path) = &self.write else {
            for record in Record::all(&from)? {
                record.print();
            }
            return Ok(());
        };
        let text = page::render(&Record::all(&from)?);
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}
