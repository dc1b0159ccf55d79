//! `pmo-bench`: every figure beside a floor of the same run.

#![deny(unsafe_code)]

mod array_backends;
mod benchmarks;
mod child;
mod clock;
mod environment;
mod file_backends;
mod files;
mod floor;
mod kernels;
mod machine;
mod mapped;
mod model;
mod modelled;
mod pattern;
mod peers;
mod personalities;
mod plot;
mod render;
mod retention;
mod sqlite;
mod stamp;
mod stats;
mod talk;
mod traffic;

use clap::{Parser, Subcommand};
use environment::{Environment, Extent};
use model::{Report, SCHEMA, Section};
use modelled::Model;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Any error.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// The result of a benchmark's part.
pub type Result<T> = std::result::Result<T, Error>;

const FIGURES: &str = "docs/benchmarks/run.json";

/// Measures Indelible, and beside every figure the least it could be on this machine.
#[derive(Parser)]
#[command(name = "pmo-bench", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Names the benchmarks.
    List,
    /// Runs benchmarks: tables on standard output, progress on standard error.
    Run {
        /// Those to run; all without any.
        names: Vec<String>,
        /// All of them; what no name says as well.
        #[arg(long, conflicts_with = "names")]
        all: bool,
        /// Fewer repetitions and smaller sizes: everything in five minutes, not fit to judge speed.
        #[arg(long)]
        quick: bool,
        /// The least of each: shows that everything runs and computes what it should, and nothing
        /// about speed.
        #[arg(long, conflicts_with = "quick")]
        smoke: bool,
        /// The papers' sizes where they take too long for a complete run: kernels.
        #[arg(long, conflicts_with_all = ["quick", "smoke"])]
        paper_sizes: bool,
        /// Divides the rows and the operations of TPC-C, which otherwise are the paper's.
        #[arg(long, value_name = "N", default_value_t = 1, conflicts_with_all = ["quick", "smoke"], value_parser = clap::value_parser!(u32).range(1..))]
        tpcc_divisor: u32,
        /// Sealed objects on a modelled medium in place of this machine's: optane, dram-battery,
        /// cxl-near, cxl-far, cxl-cached, ssd-sata, ssd-nvme, ssd-optane, network-volume, or a
        /// parameter file of one's own. For `sealing` and `models`.
        #[arg(long, value_name = "NAME")]
        medium: Option<String>,
        /// A folder on LUKS, to be measured beside sealed objects.
        #[arg(long, value_name = "DIR")]
        dir_luks: Option<PathBuf>,
        /// File for all figures, for `report`. A run of everything in a clone leaves them where
        /// `report` looks: docs/benchmarks/run.json.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// A folder on a disk.
        #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
        dir_file: PathBuf,
        /// A folder in memory.
        #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
        dir_memory: PathBuf,
    },
    /// Writes tables and plots from a file of `run --json`; keeps the page's remarks.
    Report {
        /// The file.
        #[arg(default_value = FIGURES)]
        file: PathBuf,
        /// The folder to write to: README.md and the plots.
        #[arg(long, value_name = "DIR", default_value = "docs/benchmarks")]
        to: PathBuf,
    },
    /// Processes that benchmarks start.
    #[command(hide = true)]
    Child {
        #[command(subcommand)]
        job: child::Job,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::List => {
            list();
            Ok(())
        }
        Command::Run {
            names,
            all: _,
            quick,
            smoke,
            paper_sizes,
            tpcc_divisor,
            medium,
            dir_luks,
            json,
            dir_file,
            dir_memory,
        } => {
            let json = json.or_else(|| default_figures(&names));
            let extent = match (smoke, quick, paper_sizes) {
                (true, ..) => Extent::Smoke,
                (_, true, _) => Extent::Quick,
                (.., true) => Extent::PaperSizes,
                _ => Extent::Full,
            };
            run(
                &names,
                (extent, tpcc_divisor),
                (medium.as_deref(), dir_luks),
                json.as_deref(),
                &dir_file,
                &dir_memory,
            )
        }
        Command::Report { file, to } => report(&file, &to),
        Command::Child { job } => child::work(job),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pmo-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn default_figures(names: &[String]) -> Option<PathBuf> {
    let path = PathBuf::from(FIGURES);
    (names.is_empty() && path.parent().is_some_and(Path::is_dir)).then_some(path)
}

fn list() {
    for benchmark in benchmarks::ALL {
        println!("{:<12} {}", benchmark.name, benchmark.about);
    }
}

fn run(
    names: &[String],
    (extent, tpcc_divisor): (Extent, u32),
    (medium, luks): (Option<&str>, Option<PathBuf>),
    json: Option<&Path>,
    file: &Path,
    memory: &Path,
) -> Result<()> {
    let chosen = benchmarks::choose(names)?;
    if cfg!(debug_assertions) {
        eprintln!("pmo-bench: built without optimisation; build with --release to judge speed");
    }
    let mut environment = Environment::new(memory, file, extent)?;
    environment.tpcc_divisor = tpcc_divisor;
    environment.luks = luks;
    environment.model = medium.map(|name| modelled_for(name, &chosen)).transpose()?;
    let start = Instant::now();
    let mut sections: Vec<Section> = Vec::with_capacity(chosen.len());
    for benchmark in chosen {
        let begun = Instant::now();
        let mut section = Section::new(benchmark.name, benchmark.about);
        (benchmark.run)(&environment, &mut section)
            .map_err(|error| format!("{}: {error}", benchmark.name))?;
        print!("{}", render::text(&section));
        println!("{}: {:.0} s", benchmark.name, begun.elapsed().as_secs_f64());
        sections.push(section);
    }
    let goals = sections.iter().flat_map(|section| &section.goals);
    let (hit, all) = (goals.clone().filter(|goal| goal.is_hit()).count(), goals.count());
    println!("\n{hit} of {all} goals reached, {:.0} s", start.elapsed().as_secs_f64());
    if let Some(path) = json {
        let report = Report {
            schema: SCHEMA,
            machine: machine::describe(file, memory),
            command: command_line(names, extent, tpcc_divisor, environment.model.as_ref()),
            quick: environment.quick,
            seconds: start.elapsed().as_secs_f64(),
            sections,
        };
        let text = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))?;
        println!("figures: {}; `pmo-bench report` makes tables and plots of them", path.display());
    }
    Ok(())
}

fn modelled_for(name: &str, chosen: &[&benchmarks::Benchmark]) -> Result<Model> {
    match chosen.iter().find(|benchmark| !["sealing", "models"].contains(&benchmark.name)) {
        Some(benchmark) => Err(format!(
            "{} runs on this machine's media only: --medium is for sealing and models",
            benchmark.name
        )
        .into()),
        None => Model::find(name),
    }
}

fn command_line(names: &[String], extent: Extent, tpcc_divisor: u32, model: Option<&Model>) -> String {
    let mut words = vec!["pmo-bench run".to_owned()];
    words.extend(names.iter().cloned());
    words.extend(extent.option().map(str::to_owned));
    words.extend((tpcc_divisor > 1).then(|| format!("--tpcc-divisor {tpcc_divisor}")));
    words.extend(model.map(|model| format!("--medium {}", model.short)));
    words.join(" ")
}

fn report(path: &Path, to: &Path) -> Result<()> {
    let about = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| about(&error))?;
    let report = parse(&text).map_err(|error| about(&error))?;
    std::fs::create_dir_all(to)?;
    let plots = report.sections.iter().flat_map(|section| &section.plots);
    for plot in plots.clone() {
        std::fs::write(to.join(format!("{}.svg", plot.file)), plot::svg(plot)?)?;
    }
    let page = to.join("README.md");
    let former = std::fs::read_to_string(&page).unwrap_or_default();
    std::fs::write(page, render::markdown(&report, render::remarks(&former)))?;
    println!("{}: tables and {} plots", to.display(), plots.count());
    Ok(())
}

fn parse(text: &str) -> Result<Report> {
    let value: serde_json::Value = serde_json::from_str(text)?;
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        Some(schema) if schema == u64::from(SCHEMA) => Ok(serde_json::from_value(value)?),
        Some(schema) => Err(format!("schema {schema} is not {SCHEMA}: run the benchmarks again").into()),
        None => Err("not what `pmo-bench run --json` writes".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
        let parsed =
            Arguments::try_parse_from(["pmo-bench", "run", "psync", "open", "--quick", "--json", "f"])
                .unwrap();
        let Command::Run { names, quick, json, .. } = parsed.command else { panic!("not a run") };
        assert_eq!(
            (names, quick, json),
            (vec!["psync".to_owned(), "open".to_owned()], true, Some("f".into()))
        );
        assert!(Arguments::try_parse_from(["pmo-bench", "run", "psync", "--all"]).is_err());
    }

    #[test]
    fn only_some_benchmarks_run_on_modelled_media() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            modelled_for("optane", &benchmarks::choose(&names).unwrap()).map(|model| model.short)
        };
        assert_eq!(of(&["sealing", "models"]).unwrap(), "optane");
        assert!(of(&["psync"]).unwrap_err().to_string().contains("psync") && of(&[]).is_err());
    }

    #[test]
    fn other_files_are_refused() {
        assert!(parse("{").is_err());
        assert!(parse("{}").unwrap_err().to_string().contains("not what"));
        assert!(parse("{\"schema\": 99}").unwrap_err().to_string().contains("99"));
    }

    #[test]
    fn the_command_line_repeats_the_run() {
        assert_eq!(command_line(&["open".into()], Extent::Quick, 1, None), "pmo-bench run open --quick");
        assert_eq!(command_line(&[], Extent::Full, 1, None), "pmo-bench run");
        assert_eq!(command_line(&[], Extent::Full, 10, None), "pmo-bench run --tpcc-divisor 10");
        let far = Model::find("cxl-far").unwrap();
        let line = command_line(&["models".into()], Extent::Full, 1, Some(&far));
        assert_eq!(line, "pmo-bench run models --medium cxl-far");
    }
}
