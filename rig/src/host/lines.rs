//! Modem-control lines, changed by the power supply under the guard's detector.

use crate::chain::Violation;
use crate::environment::Environment;
use crate::kind::{Kernel, Kind, Medium};
use crate::machine::{self, Cut, Order, SIZE, Slot};
use anyhow::Result;
use std::fs;
use std::path::Path;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Changes {
    pub(crate) told: u64,
    pub(crate) detected: u64,
}

pub(crate) fn run(
    environment: &Environment,
    folder: &Path,
    kernel: Kernel,
    state: &Path,
) -> Result<std::result::Result<Changes, Violation>> {
    let slot = Slot::new(folder, &format!("lines-{}", kernel.word()));
    for image in [&slot.live, &slot.durable] {
        fs::File::create(image)?.set_len(SIZE)?;
    }
    let kind = Kind { kernel, medium: Medium::Devdax };
    let cut = Some(Cut { after: "go", event: 0, seed: 0, failure: None });
    let order = Order { kind, state: state.to_owned(), words: vec![("task", "lines".into())], cut };
    let said = machine::run(environment, &slot, &order)?.said;
    let mut changes = Changes::default();
    for line in &said {
        match line.split_once(' ') {
            Some(("told", _)) => changes.told += 1,
            Some(("detected", count)) => changes.detected = count.parse()?,
            _ => {}
        }
    }
    if said.last().is_some_and(|line| line == "end") {
        return Ok(Ok(changes));
    }
    let kept = environment.violations().join(format!("lines-{}", kernel.word()));
    slot.keep(&kept, &order)?;
    let what = format!("lines, {}: the machine said {said:?}", kernel.word());
    Ok(Err(Violation { what, kept: Some(kept) }))
}
