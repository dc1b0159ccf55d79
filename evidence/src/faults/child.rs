use super::script::Script;
use super::transactions::Transactions;
use super::upgrade::Upgrade;
use crate::workloads::wire::Said;
use crate::workloads::world::Trouble;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug, Clone)]
pub(crate) struct Child {
    #[arg(long)]
    pool: PathBuf,
    #[arg(long)]
    seed: u64,
    /// Go through the script, with this tracking
    #[arg(long, required_unless_present_any = ["upgrade", "transactions"])]
    tracking: Option<String>,
    /// Upgrade the pool of format 1 that has this name
    #[arg(long)]
    upgrade: Option<String>,
    /// Make transactions, on heaps of this class
    #[arg(long)]
    transactions: Option<String>,
    /// Judge another process's state: the last step done, and whether the next was begun
    #[arg(long, num_args = 2)]
    judge: Option<Vec<u64>>,
}

impl Child {
    pub(crate) fn run(&self) -> Result<()> {
        if self.judge.is_none() {
            super::tracer::be_traced()?;
        }
        match self.work() {
            Ok(()) => {}
            Err(Trouble::Wrong(why)) => Said::Wrong { why }.say(),
            Err(trouble) => Said::Wrong { why: format!("one failure, two errors: {trouble:?}") }.say(),
        }
        Ok(())
    }

    fn work(&self) -> Result<(), Trouble> {
        if let Some(name) = &self.upgrade {
            let upgrade = Upgrade { pool: &self.pool, name };
            return if self.judge.is_some() { upgrade.judge() } else { upgrade.work() };
        }
        if let Some(class) = &self.transactions {
            let transactions = Transactions { pool: &self.pool, seed: self.seed, class };
            return match &self.judge {
                Some(known) => transactions.judge(known[0], known[1] != 0),
                None => transactions.work(),
            };
        }
        let tracking = self.tracking.as_deref().unwrap_or_default();
        let script = Script { pool: &self.pool, tracking, seed: self.seed };
        match &self.judge {
            Some(known) => script.judge(known[0], known[1] != 0),
            None => script.work(),
        }
    }
}
