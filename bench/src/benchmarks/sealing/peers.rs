//! Other encrypted stores at the same work: random pages made durable one by one, and a cold scan.

use crate::Result;
use crate::environment::{Environment, Medium};
use crate::model::{Cell, Section, Table, Unit};
use crate::pattern::{PAGE, Random};
use crate::peers::sealed::{ALL, Opened, Place};
use crate::stats::{Samples, Spread};
use std::time::{Duration, Instant};

const COLUMNS: [(&str, Unit); 7] = [
    ("who", Unit::Text),
    ("changed bytes are noticed in", Unit::Text),
    ("durable page", Unit::Nanoseconds),
    ("to plain file", Unit::Ratio),
    ("cold scan", Unit::BytesPerSecond),
    ("to plain file, scan", Unit::Ratio),
    ("pages written", Unit::Count),
];

pub fn on(environment: &Environment, section: &mut Section) -> Result<()> {
    let pages = match (environment.smoke, environment.quick) {
        (true, _) => 64,
        (_, true) => 1024,
        _ => 16384,
    };
    let (rounds, scans) = if environment.quick { (1, 1) } else { (3, 5) };
    let mut table = Table::new("Encrypted pages beside others, on SSD file", &COLUMNS);
    let mut plain = None;
    for contestant in ALL {
        let dir = environment.path(Medium::File, "sealed-peer");
        std::fs::create_dir(&dir)?;
        let place = Place { dir: &dir, pages, luks: environment.luks.as_deref() };
        match (contestant.open)(&place)? {
            Opened::Missing(why) => section.notes.push(format!("{}: not measured: {why}.", contestant.name)),
            Opened::Ready(mut peer) => {
                let (mut writes, mut rates) = (Samples::default(), Samples::default());
                let (mut random, mut bytes) = (Random::new(pages as u64), [0_u8; PAGE]);
                let budget = environment.budget(Duration::from_secs(rounds), Duration::from_millis(200));
                while budget.allows(writes.len(), 8) {
                    bytes[..8].copy_from_slice(&random.next().to_le_bytes());
                    let page = random.below(pages as u64) as usize;
                    let (took, done) = environment.clock.time(|| peer.write(page, &bytes));
                    done?;
                    writes.push(took);
                }
                for _ in 0..scans {
                    peer.cool()?;
                    let (begin, mut seen, mut sum) = (Instant::now(), 0, 0_u64);
                    peer.scan(&mut |page| {
                        seen += 1;
                        sum =
                            page.chunks_exact(64).fold(sum, |sum, line| sum.wrapping_add(u64::from(line[0])));
                    })?;
                    std::hint::black_box(sum);
                    if seen != pages {
                        return Err(format!("{}: {seen} of {pages} pages were read", contestant.name).into());
                    }
                    rates.push((pages * PAGE) as f64 / begin.elapsed().as_secs_f64());
                }
                let (write, rate) = *plain.get_or_insert((writes.median(), rates.median()));
                let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
                table.row(vec![
                    contestant.name.into(),
                    contestant.integrity.into(),
                    cell(&writes),
                    (writes.median() / write).into(),
                    cell(&rates),
                    (rates.median() / rate).into(),
                    (writes.len() as u64).into(),
                ]);
            }
        }
        std::fs::remove_dir_all(&dir)?;
    }
    section.tables.push(table);
    section.notes.push(
        "encrypted pages: 4 KiB at random, each durable before the next; then all in order, after the system's caches were emptied of them. A plain file is written in place, so that a \
         power cut may tear a page; of the others Indelible and SQLCipher have a log, so that it does not. SQLCipher has a row for each page, and a key that needs no derivation."
            .into(),
    );
    Ok(())
}
