use super::key;
use super::place::Place;
use crate::Result;
use crate::environment::{Environment, Medium, discard};
use crate::floor::UnsealFloor;
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::pattern::PAGE;
use crate::stats::{Samples, Spread};
use indelible::{CreateOptions, Object, PredictionDepth};
use std::time::Duration;

const SIZE: usize = 1 << 20;

const COLUMNS: [(&str, Unit); 7] = [
    ("bytes stored", Unit::Bytes),
    ("plain", Unit::Nanoseconds),
    ("sealed", Unit::Nanoseconds),
    ("over plain", Unit::Nanoseconds),
    ("to plain", Unit::Ratio),
    ("decrypting and encrypting a page", Unit::Nanoseconds),
    ("rounds", Unit::Count),
];

fn once(environment: &Environment, object: &mut Object, round: usize, len: usize) -> Result<f64> {
    let at = round * 7 % (SIZE / PAGE) * PAGE;
    object.range_mut(at..at + len).fill((round % 251) as u8);
    let (took, done) = environment.clock.time(|| object.psync());
    done?;
    Ok(took)
}

pub fn on(
    environment: &Environment,
    place: Place<'_>,
    floor: &UnsealFloor,
    section: &mut Section,
) -> Result<()> {
    let path = place.path(environment, "sealing-psync");
    let pool = place.options(PredictionDepth::Auto).force(true).format(path, 256 << 20)?;
    pool.create_with("sealed", &CreateOptions::new(SIZE as u64).sealed(&key()?, "benchmark"))?;
    let mut sealed = pool.attach_sealed("sealed", b"", &key()?)?;
    let mut plain = pool.create_attached("plain", SIZE as u64)?;
    for object in [&mut sealed, &mut plain] {
        object.as_mut_slice().fill(1);
        object.psync()?;
    }
    let mut table = Table::new(format!("psync of one page on {}", place.word()), &COLUMNS);
    for len in [64, PAGE] {
        let (mut ours, mut theirs) = (Samples::default(), Samples::default());
        let budget = environment.budget(Duration::from_secs(3), Duration::from_millis(300));
        while budget.allows(ours.len(), 8) {
            let round = ours.len() + 2;
            ours.push(once(environment, &mut sealed, round, len)?);
            theirs.push(once(environment, &mut plain, round, len)?);
        }
        let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
        let (over, ratio) = (ours.median() - theirs.median(), ours.median() / theirs.median());
        table.row(vec![
            (len as u64).into(),
            cell(&theirs),
            cell(&ours),
            over.into(),
            ratio.into(),
            (2.0 * floor.page()).into(),
            (ours.len() as u64).into(),
        ]);
        if len == PAGE {
            section.goals.push(match place.medium {
                Medium::Memory => {
                    let what =
                        format!("{}: psync of one page of a sealed object, over a plain one", place.word());
                    Goal::at_most(what, Unit::Nanoseconds, 4000.0, over)
                }
                Medium::File => {
                    let what =
                        format!("{}: psync of one page of a sealed object, to a plain one", place.word());
                    Goal::at_most(what, Unit::Ratio, 1.15, ratio)
                }
            });
        }
    }
    section.tables.push(table);
    sealed.detach()?;
    plain.detach()?;
    discard(pool);
    Ok(())
}
