//! Modelled media (S3.7): whether calls take the time of the parameter file.

use crate::Result;
use crate::environment::Environment;
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::modelled::Model;
use crate::stats::{Samples, Spread};
use indelible::{MediumModel, Traffic};
use std::time::{Duration, Instant};

const COLUMNS: [(&str, Unit); 6] = [
    ("medium", Unit::Text),
    ("call", Unit::Text),
    ("by its file", Unit::Nanoseconds),
    ("measured", Unit::Nanoseconds),
    ("to its file", Unit::Ratio),
    ("calls at a time", Unit::Count),
];

const TOGETHER: Duration = Duration::from_micros(20);
const CLOSE: f64 = 0.05;
const PAGE: u64 = 4096;
const LONG: u64 = 1 << 20;

struct Call {
    name: &'static str,
    expected: f64,
    call: fn(&Traffic, u64),
}

fn nanos(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}

fn moving(bytes: u64, rate: u64) -> f64 {
    bytes as f64 / rate as f64 * 1e9
}

fn calls(model: &MediumModel) -> Vec<Call> {
    let unit = u64::from(model.unit);
    let line = moving(unit.max(64), model.read_rate);
    let mut calls = vec![
        Call {
            name: "read 64 B",
            expected: nanos(model.read) + line,
            call: |traffic, page| traffic.read(Instant::now(), page * PAGE, 64),
        },
        Call {
            name: "read 4 KiB",
            expected: nanos(model.read) + moving(PAGE, model.read_rate),
            call: |traffic, page| traffic.read(Instant::now(), page * PAGE, PAGE),
        },
        Call {
            name: "read 1 MiB",
            expected: nanos(model.read) + moving(LONG, model.read_rate),
            call: |traffic, page| traffic.read(Instant::now(), page * LONG, LONG),
        },
        Call {
            name: "durable write of 64 B",
            expected: nanos(model.durable) + moving(unit.max(64), model.write_rate),
            call: |traffic, page| traffic.write_durable(Instant::now(), page * PAGE, 64),
        },
        Call {
            name: "write 1 MiB, barrier",
            expected: nanos(model.barrier) + moving(LONG, model.write_rate),
            call: |traffic, page| {
                traffic.write(Instant::now(), page * LONG, LONG);
                traffic.barrier(Instant::now());
            },
        },
        Call {
            name: "barrier",
            expected: nanos(model.barrier),
            call: |traffic, _| traffic.barrier(Instant::now()),
        },
    ];
    if let Some(cache) = model.cache {
        calls.push(Call {
            name: "read 4 KiB from its cache",
            expected: nanos(cache.read) + moving(PAGE, cache.read_rate),
            call: |traffic, _| traffic.read(Instant::now(), 0, PAGE),
        });
    }
    calls
}

fn measure(model: MediumModel, call: &Call, batches: usize) -> (Samples, u64) {
    let traffic = Traffic::new(model);
    let at_a_time = (nanos(TOGETHER) / call.expected).ceil().max(1.0) as u64;
    let mut page = 0;
    let mut samples = Samples::default();
    for batch in 0..=batches {
        let begin = Instant::now();
        for _ in 0..at_a_time {
            (call.call)(&traffic, page);
            page += 1;
        }
        if batch > 0 {
            samples.push(begin.elapsed().as_nanos() as f64 / at_a_time as f64);
        }
    }
    (samples, at_a_time)
}

fn shortest(batches: usize) -> Result<f64> {
    let mut model = Model::find("dram-battery")?.speed;
    model.barrier = Duration::from_nanos(1);
    let call: fn(&Traffic, u64) = |traffic, _| traffic.barrier(Instant::now());
    Ok(measure(model, &Call { name: "nothing", expected: 100.0, call }, batches).0.median())
}

fn is_noisy(spread: &Spread) -> bool {
    (spread.p75 - spread.p25) / spread.median > 2.0 * CLOSE
}

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let models = match &environment.model {
        Some(model) => vec![model.clone()],
        None => Model::all()?,
    };
    let batches = if environment.smoke {
        3
    } else if environment.quick {
        21
    } else {
        101
    };
    let mut table = Table::new("Calls of modelled media", &COLUMNS);
    let shortest = shortest(batches)?;
    let (mut worst, mut noisy, mut short, mut measured) = (0.0_f64, Vec::new(), Vec::new(), 0);
    for model in &models {
        for call in calls(&model.speed) {
            let (samples, at_a_time) = measure(model.speed, &call, batches);
            let Some(spread) = samples.spread() else { continue };
            let ratio = spread.median / call.expected;
            measured += 1;
            let name = || format!("{} of {}", call.name, model.short);
            if call.expected < shortest * 1.2 {
                short.push(name());
            } else if is_noisy(&spread) {
                noisy.push(name());
            } else {
                worst = worst.max((ratio - 1.0).abs());
            }
            table.row(vec![
                model.name.as_str().into(),
                call.name.into(),
                call.expected.into(),
                Cell::from(spread),
                ratio.into(),
                at_a_time.into(),
            ]);
        }
    }
    section.tables.push(table);
    // A machine that disturbs every fourth call cannot judge the others either.
    let worst = if noisy.len() * 4 > measured { f64::NAN } else { worst };
    section.goals.push(Goal::at_most(
        "worst call of a modelled medium, off its file by",
        Unit::Ratio,
        CLOSE,
        worst,
    ));
    if !noisy.is_empty() {
        section.notes.push(format!(
            "This machine is too noisy, as others use it, to measure {} of {measured} calls: half of their samples are further apart than a tenth. They do not count: {}.",
            noisy.len(),
            noisy.join(", ")
        ));
    }
    if !short.is_empty() {
        section.notes.push(format!(
            "A call that means to take no time takes {shortest:.0} ns on this machine, looks at the clock included. So {} of {measured} calls take longer than their files say, and do not count: {}.",
            short.len(),
            short.join(", ")
        ));
    }
    section.notes.push(
        "Only the time that is let pass is measured, without a medium beneath. A medium beneath that is slower than the file says stays as slow as it is. The time of a look at the clock \
         is in that of a call, and lateness of a call is taken off the next one, so that calls of 100 ns are right on average, and none of them by itself."
            .into(),
    );
    for model in &models {
        section.notes.push(format!(
            "{}: bench/media/{}.toml, with the sources of its numbers.",
            model.name, model.short
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 305 ns, and 256 bytes at 6.6 GB/s; 155 ns to a cache, and a page at 31.5 GB/s.
    #[test]
    fn calls_are_computed_from_the_file() {
        let optane = Model::find("optane").unwrap().speed;
        let calls = calls(&optane);
        assert!((calls[0].expected - 343.79).abs() < 0.01, "{}", calls[0].expected);
        assert!((calls[5].expected - 62.0).abs() < 0.01);
        let cached = Model::find("cxl-cached").unwrap().speed;
        let hit = super::calls(&cached).pop().unwrap();
        assert!((hit.expected - 285.03).abs() < 0.01, "{}", hit.expected);
    }

    /// Half a millisecond is a lower bound on any machine.
    #[test]
    fn no_call_is_shorter_than_its_file_says() {
        let model = Model::find("network-volume").unwrap().speed;
        for call in calls(&model) {
            let (samples, at_a_time) = measure(model, &call, 3);
            assert_eq!((samples.len(), at_a_time), (3, 1));
            assert!(
                samples.quantile(0.0) >= call.expected * 0.99,
                "{}: {}",
                call.name,
                samples.quantile(0.0)
            );
        }
    }

    #[test]
    fn a_machine_that_disturbs_is_called_noisy() {
        let spread = |p25, p75| Spread { median: 100.0, p25, p75, count: 9 };
        assert!(!is_noisy(&spread(99.0, 104.0)) && is_noisy(&spread(95.0, 110.0)));
    }
}
