//! First changes of pages that a snapshot shares.

use super::{OBJECT, SIZES, SNAPSHOT, pool};
use crate::Result;
use crate::environment::{Environment, Medium, discard};
use crate::floor::PageFloor;
use crate::model::{Cell, Section, Table, Unit};
use crate::pattern::store;
use crate::stats::Samples;
use std::time::Duration;

const SHARED: u64 = 256;
const TOUCHED: u64 = 1024;
const STRIDE: u64 = 389;

fn spread(samples: &Samples) -> Cell {
    samples.spread().map_or(Cell::Empty, Cell::from)
}

/// Returns the ratio of the medians of shared and own pages.
pub(super) fn since_attach(environment: &Environment, medium: Medium, section: &mut Section) -> Result<f64> {
    const COLUMNS: [(&str, Unit); 6] = [
        ("of an own page", Unit::Nanoseconds),
        ("of a shared one", Unit::Nanoseconds),
        ("shared/own", Unit::Ratio),
        ("of an own one, 95 %", Unit::Nanoseconds),
        ("of a shared one, 95 %", Unit::Nanoseconds),
        ("psyncs of each", Unit::Count),
    ];
    let (pool, object) = pool(environment, medium, SIZES[0], TOUCHED)?;
    object.detach()?;
    let budget = environment.budget(Duration::from_secs(8), Duration::from_secs(1));
    let mut samples = [Samples::default(), Samples::default()];
    let (mut rounds, mut value) = (0, 1);
    while budget.allows(rounds, 1) {
        rounds += 1;
        for (shared, samples) in [false, true].into_iter().zip(&mut samples) {
            if shared {
                pool.snapshot(OBJECT, SNAPSHOT, b"")?;
            }
            let mut object = pool.attach(OBJECT)?;
            for number in 0..TOUCHED {
                value += 1;
                let (took, done) = environment.clock.time(|| {
                    store(&mut object, &[number * STRIDE % TOUCHED], rounds % 64, value);
                    object.psync()
                });
                done?;
                samples.push(took);
            }
            object.detach()?;
            if shared {
                pool.destroy(SNAPSHOT)?;
                pool.collect(&mut |_, _| {})?;
            }
        }
    }
    discard(pool);
    let [own, shared] = &samples;
    let title = format!("First changes since the attach on {}", medium.word());
    let mut table = Table::new(title, &COLUMNS);
    let ratio = shared.median() / own.median();
    let count = (own.len() as u64).into();
    let slow = |samples: &Samples| samples.quantile(0.95).into();
    table.row(vec![spread(own), spread(shared), ratio.into(), slow(own), slow(shared), count]);
    section.tables.push(table);
    Ok(ratio)
}

pub(super) fn while_attached(
    environment: &Environment,
    medium: Medium,
    section: &mut Section,
) -> Result<f64> {
    const COLUMNS: [(&str, Unit); 6] = [
        ("first change", Unit::Nanoseconds),
        ("a later one", Unit::Nanoseconds),
        ("first/later", Unit::Ratio),
        ("copying a page durably", Unit::Nanoseconds),
        ("first/(later + copy)", Unit::Ratio),
        ("psyncs of each", Unit::Count),
    ];
    let (pool, mut object) = pool(environment, medium, SIZES[0], SHARED)?;
    let budget = environment.budget(Duration::from_secs(8), Duration::from_secs(1));
    let (mut first, mut later, mut copy) = (Samples::default(), Samples::default(), Samples::default());
    let mut floor = if medium == Medium::Memory { PageFloor::new(SHARED as usize) } else { None };
    let (mut rounds, mut value) = (0, 1);
    while budget.allows(rounds, 1) {
        pool.snapshot(OBJECT, SNAPSHOT, b"")?;
        rounds += 1;
        for samples in [&mut first, &mut later] {
            for page in 0..SHARED {
                value += 1;
                store(&mut object, &[page], rounds % 64, value);
                let (took, done) = environment.clock.time(|| object.psync());
                done?;
                samples.push(took);
            }
        }
        for page in 0..SHARED as usize {
            let Some(floor) = &mut floor else { break };
            copy.push(environment.clock.time(|| floor.copy(page)).0);
        }
        pool.destroy(SNAPSHOT)?;
    }
    object.detach()?;
    discard(pool);
    let mut table =
        Table::new(format!("Pages in use, shared with a snapshot, on {}", medium.word()), &COLUMNS);
    let ratio = first.median() / later.median();
    let beside = if floor.is_some() {
        (first.median() / (later.median() + copy.median())).into()
    } else {
        Cell::Empty
    };
    let count = (first.len() as u64).into();
    table.row(vec![spread(&first), spread(&later), ratio.into(), spread(&copy), beside, count]);
    section.tables.push(table);
    Ok(ratio)
}
