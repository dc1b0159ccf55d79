//! A reader looks for newer psyncs while others act between any two of its reads.

use super::beside::{Beside, text};
use super::following::Following;
use super::{CONFIG, KEY, Verdict, of};
use crate::hooked::{BeforeRead, Hooked};
use crate::pool::psync;
use crate::sim::SimConfig;
use indelible_store::error::Result;
use indelible_store::store::{Store, Writer};
use std::sync::{Arc, Mutex, PoisonError};

const READS: u64 = 60;

type Change = fn(&mut Beside) -> Result<()>;

fn seen(disk: bool, change: Change) -> Verdict {
    for nth in 0..READS {
        let beside = Beside::begin(SimConfig { disk, ..CONFIG }).map_err(text)?;
        let device = Hooked::new(Arc::new(beside.medium.handle()), BeforeRead::default());
        let store = Store::open(device.clone(), crate::pool::process(3)).map_err(text)?;
        let mut reader = Following::begin(&store).map_err(text)?;
        let beside = Arc::new(Mutex::new(beside));
        let with = |run: &dyn Fn(&mut Beside) -> Result<()>| {
            run(&mut beside.lock().unwrap_or_else(PoisonError::into_inner)).map_err(text)
        };
        for value in 20..22 {
            with(&|beside| beside.psync(0, 4000, value, 300))?;
            reader.look().map_err(text)?;
        }
        with(&|beside| beside.psync(0, 9000, 23, 300))?;
        let expected = || beside.lock().unwrap_or_else(PoisonError::into_inner).expected[0].clone();
        let before = expected();
        let (shared, done) = (beside.clone(), Arc::new(Mutex::new(None)));
        let outcome = done.clone();
        device.plan(nth, move || {
            let changed = change(&mut shared.lock().unwrap_or_else(PoisonError::into_inner));
            *outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(changed);
        });
        let shown = reader.look().map_err(text)?.to_vec();
        if device.is_due() {
            return if nth > 2 { Ok(()) } else { Err(format!("a look of {nth} reads")) };
        }
        let changed = done.lock().unwrap_or_else(PoisonError::into_inner).take();
        let after = expected();
        if shown != before && shown != after {
            return Err(format!("changed before read {nth}: a look shows what was at no time"));
        }
        if reader.look().map_err(text)? != after {
            return Err(format!("changed before read {nth} ({changed:?}): the next look does not show it"));
        }
    }
    Err(format!("a look makes {READS} reads"))
}

fn on_each(changes: &[(&str, Change)]) -> Verdict {
    for disk in [true, false] {
        for (what, change) in changes {
            seen(disk, *change).map_err(|error| format!("{what}, disk {disk}: {error}"))?;
        }
    }
    Ok(())
}

pub(super) fn psyncs_between_the_reads_of_a_look_are_seen() -> Verdict {
    on_each(&[
        ("one", |beside| beside.psync(0, 4100, 30, 300)),
        ("behind a checkpoint", |beside| {
            beside.writers[0].checkpoint()?;
            beside.psync(0, 4100, 31, 300)
        }),
        ("behind two checkpoints", |beside| {
            for value in 40..60 {
                beside.psync(0, 4000, value, 700)?;
                beside.psync(1, 4000, value, 300)?;
                if value % 8 == 0 {
                    beside.writers[0].checkpoint()?;
                }
            }
            Ok(())
        }),
    ])
}

pub(super) fn changes_of_the_object_between_the_reads_of_a_look_are_seen() -> Verdict {
    on_each(&[
        ("growth", |beside| {
            let size = beside.expected[0].len() + 4096;
            beside.writers[0].grow(size as u64)?;
            beside.expected[0].resize(size, 0);
            Ok(())
        }),
        ("another writer", |beside| {
            beside.writers.remove(0).detach()?;
            let mut writer: Writer = beside.other.attach_writer("a", KEY)?;
            psync(&mut writer, &[(5000, &[50; 90])])?;
            beside.expected[0][5000..5090].fill(50);
            beside.writers.insert(0, writer);
            Ok(())
        }),
        ("the same writer on the same lane", |beside| {
            beside.writers.remove(0).detach()?;
            let mut writer = beside.other.attach_writer("a", KEY)?;
            psync(&mut writer, &[(5000, &[51; 90])])?;
            writer.detach()?;
            beside.expected[0][5000..5090].fill(51);
            beside.writers.insert(0, beside.store.attach_writer("a", KEY)?);
            Ok(())
        }),
        ("another object", |beside| beside.other.create("c", &of(4096)).map(drop)),
    ])
}

/// The line behind the last batch, three of the lane's generation, two of the table's lane.
const READS_WITHOUT_NEWS: u64 = 6;

pub(super) fn a_look_without_news_costs_few_reads() -> Verdict {
    let beside = Beside::begin(SimConfig { disk: false, ..CONFIG }).map_err(text)?;
    let device = Hooked::new(Arc::new(beside.medium.handle()), BeforeRead::default());
    let store = Store::open(device.clone(), crate::pool::process(3)).map_err(text)?;
    let mut reader = Following::begin(&store).map_err(text)?;
    for _ in 0..2 {
        reader.look().map_err(text)?;
    }
    for (nth, due) in [(READS_WITHOUT_NEWS - 1, false), (READS_WITHOUT_NEWS, true)] {
        device.plan(nth, || ());
        reader.look().map_err(text)?;
        if device.is_due() != due {
            return Err(format!("not {READS_WITHOUT_NEWS} reads"));
        }
    }
    beside.ends()
}
