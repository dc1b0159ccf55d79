//! Broken rules of retention that the campaign must notice.

use anyhow::Result;

#[cfg(not(feature = "mutants"))]
pub(super) fn run(_: u64) -> Result<()> {
    anyhow::bail!(
        "this build has no mutants in it; run: \
         cargo run --release -p indelible-evidence --features mutants -- retention --controls"
    )
}

#[cfg(feature = "mutants")]
pub(super) fn run(seed: u64) -> Result<()> {
    broken::run(seed)
}

#[cfg(feature = "mutants")]
mod broken {
    use crate::retention::cells;
    use anyhow::{Result, bail};
    use indelible_store::Mutant;

    const KILLS: u64 = 60;

    /// Rules that this campaign hardly reaches; tests of the mapped half notice them.
    const ELSEWHERE: [Mutant; 4] = [
        Mutant::ExtensionTypeIgnored,
        Mutant::ExtensionLinkedFirst,
        Mutant::ExtensionUngated,
        Mutant::OldFreedFirst,
    ];

    pub(super) fn run(seed: u64) -> Result<()> {
        let mut missed = Vec::new();
        for mutant in Mutant::RETENTION.iter().filter(|mutant| !ELSEWHERE.contains(mutant)) {
            let name = format!("{mutant:?}");
            let noticed = cells().into_iter().find_map(|cell| {
                let error = cell.run(seed, KILLS, Some(&name)).err()?;
                Some(format!("{cell}: {error:#}"))
            });
            match noticed {
                Some(why) => println!("{name} is noticed: {}", why.chars().take(300).collect::<String>()),
                None => {
                    println!("{name} is NOT noticed");
                    missed.push(name);
                }
            }
        }
        match missed.is_empty() {
            true => Ok(()),
            false => bail!("broken rules of retention that go unnoticed: {}", missed.join(", ")),
        }
    }
}
