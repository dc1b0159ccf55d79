//! Blocks compiled by GCC on objects on demand and durable ones, beside plain memory, all by
//! libpmo-tm.

use crate::Result;
use crate::environment::{Environment, Medium, progress};
use crate::model::{Cell, Section, Table, Unit};
use crate::stats::{Samples, Spread};
use std::path::{Path, PathBuf};
use std::process::Command;

const ARCHIVES: [&str; 2] = ["libpmo.a", "libpmo_tm.a"];
const MISSING: &str = "Blocks of GCC on objects: not measured. They need a GCC with -fgnu-tm, and libpmo.a and libpmo_tm.a beside pmo-bench: cargo build --release -p indelible-capi -p indelible-tm";
const KINDS: usize = 3;

/// `compiler`: a GCC that compiles blocks is present.
pub fn run(environment: &Environment, compiler: bool, section: &mut Section) -> Result<()> {
    let here = std::env::current_exe()?;
    let archives = ARCHIVES.map(|archive| here.with_file_name(archive));
    if !compiler || !archives.iter().all(|archive| archive.exists()) {
        section.notes.push(MISSING.into());
        return Ok(());
    }
    let program = environment.dir(Medium::File).join("blocks");
    compile(&program, &archives)?;
    let (rounds, turns) = match (environment.smoke, environment.quick) {
        (true, _) => (1_000, 2),
        (_, true) => (100_000, 5),
        _ => (300_000, 15),
    };
    let bar = progress(Medium::ALL.len(), "blocks");
    let mut table = Table::new(
        "A block of GCC that changes one of 4,096 lines: of memory, of an object on demand, its epochs included, and of a transactional one",
        &[
            ("pool", Unit::Text),
            ("memory", Unit::Nanoseconds),
            ("on demand", Unit::Nanoseconds),
            ("more", Unit::Nanoseconds),
            ("durable", Unit::Nanoseconds),
        ],
    );
    for medium in Medium::ALL {
        let name = "blocks-of-gcc";
        drop(environment.pool(medium, name, 64 << 20)?);
        let samples = measure(&program, &environment.path(medium, name), (rounds, turns))?;
        let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
        let [memory, on_demand, durable] = &samples;
        let more = on_demand.median() - memory.median();
        let row = [medium.word().into(), cell(memory), cell(on_demand), more.into(), cell(durable)];
        table.row(row.into());
        bar.inc(1);
    }
    bar.finish_and_clear();
    section.tables.push(table);
    Ok(())
}

fn compile(program: &Path, archives: &[PathBuf]) -> Result<()> {
    let source = program.with_extension("c");
    std::fs::write(&source, include_str!("blocks.c"))?;
    let headers = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../crates/capi/include");
    let flags = ["-std=gnu11", "-O2", "-fgnu-tm", "-fno-tree-loop-distribute-patterns", "-pthread", headers];
    let mut command = Command::new("gcc");
    command.args(flags).arg("-o").args([program, &source]).args(archives).arg("-lm");
    let output = command.output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("blocks: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn measure(program: &Path, pool: &Path, (rounds, turns): (u64, u64)) -> Result<[Samples; KINDS]> {
    let output =
        Command::new(program).arg(pool).args([rounds, turns].map(|number| number.to_string())).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let wrong = || format!("blocks: {}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr));
    let figures = text.split_whitespace().map(str::parse).collect::<std::result::Result<Vec<f64>, _>>()?;
    let sums = [rounds * turns, rounds * turns, rounds / 100 * turns].map(|sum| sum as f64);
    let times = figures.strip_suffix(&sums).filter(|_| output.status.success()).ok_or_else(wrong)?;
    let mut samples: [Samples; KINDS] = Default::default();
    times.iter().enumerate().for_each(|(nth, time)| samples[nth % KINDS].push(*time));
    Ok(samples)
}
