//! Lane bytes per changed byte: a count, equal on every medium.

use crate::Result;
use crate::environment::{Environment, Medium, discard, progress};
use crate::model::{Section, Table, Unit};
use crate::pattern::{Chooser, PAGE, Pattern, store};

const COUNTS: [usize; 5] = [1, 10, 100, 1000, 10_000];
const SIZE: u64 = 64 << 20;

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let pool = environment.pool(Medium::Memory, "lane-bytes", 512 << 20)?;
    pool.create("object", SIZE)?;
    let mut object = pool.attach("object")?;
    object.as_mut_slice().fill(1);
    object.psync()?;
    let bar = progress(COUNTS.len() * 2, "lane-bytes");
    let columns = [
        ("changes of 8 bytes", Unit::Text),
        ("pages", Unit::Count),
        ("changed", Unit::Bytes),
        ("to the lane", Unit::Bytes),
        ("lane/changed", Unit::Ratio),
        ("of it lines", Unit::Ratio),
        ("whole pages would be", Unit::Ratio),
    ];
    let mut table = Table::new("Bytes to the lane for one psync", &columns);
    for dense in [false, true] {
        for count in COUNTS {
            bar.inc(1);
            let Some(mut chooser) = Chooser::new(Pattern::Scattered, count, SIZE / PAGE as u64) else {
                continue;
            };
            let (pages, line) = chooser.round();
            if dense {
                for page in pages {
                    let at = *page as usize * PAGE;
                    object.range_mut(at..at + PAGE).iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
                }
            } else {
                store(&mut object, pages, line, 0x5a5a_0000 + count as u64);
            }
            let (lane, stats) = (object.lane_use().bytes, object.stats().logged_bytes);
            object.psync()?;
            let bytes = object.lane_use().bytes - lane;
            let lines = object.stats().logged_bytes - stats;
            let changed = (count * if dense { PAGE } else { 8 }) as u64;
            table.row(vec![
                if dense { "every one of the page" } else { "one a page" }.into(),
                (count as u64).into(),
                changed.into(),
                bytes.into(),
                (bytes as f64 / changed as f64).into(),
                (lines as f64 / changed as f64).into(),
                ((count * PAGE) as f64 / changed as f64).into(),
            ]);
        }
    }
    bar.finish_and_clear();
    object.detach()?;
    discard(pool);
    section.tables.push(table);
    section.notes.push(
        "The unit of comparison is the line of 64 bytes: 8 scattered bytes cost at least 8 times themselves."
            .into(),
    );
    Ok(())
}
