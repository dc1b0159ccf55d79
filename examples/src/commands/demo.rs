use crate::corpus::{Corpus, default_folders};
use crate::index::Index;
use crate::place::Place;
use anyhow::{Context, Result, bail, ensure};
use indicatif::{HumanBytes, HumanCount};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Instant;

/// Show it all: build, kill -9 half-way, continue, verify, query. Takes less than a minute.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folders or files [default: this project, and /usr/share/doc]
    dirs: Vec<PathBuf>,
    /// Keep the pool in this folder [default: a temporary one, deleted at the end]
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

pub(crate) fn run<I: Index>(place: &Place, args: &Args) -> Result<()> {
    let start = Instant::now();
    let folders = if args.dirs.is_empty() { default_folders() } else { args.dirs.clone() };
    let corpus = Corpus::walk(&folders, |_| ())?;
    let size = corpus.files.iter().map(|(_, version)| version.size).sum();
    let names: Vec<_> = corpus.roots.iter().map(|root| root.display().to_string()).collect();
    println!(
        "{} files ({}) in {}",
        HumanCount(corpus.files.len() as u64),
        HumanBytes(size),
        names.join(", ")
    );
    ensure!(corpus.files.len() >= 2, "that is not enough to show anything: name folders with more text");

    let temporary = tempfile::tempdir()?;
    let folder = args.keep.as_deref().unwrap_or(temporary.path());
    let pool = place.pool_in(folder);
    let demo = Demo {
        program: I::NAME,
        pool,
        name: place.name.clone(),
        dirs: corpus.roots,
        tracking: place.tracking_word(),
        medium: place.medium.word(),
    };
    demo.show(corpus.files.len() / 2)?;
    println!("\nAll of it took {:.0?}.", start.elapsed());
    if args.keep.is_some() {
        println!("Ask more: {} query --pool {} WORD…", I::NAME, demo.pool.display());
    }
    Ok(())
}

struct Demo {
    program: &'static str,
    pool: PathBuf,
    name: String,
    dirs: Vec<PathBuf>,
    tracking: &'static str,
    medium: &'static str,
}

impl Demo {
    fn show(&self, half: usize) -> Result<()> {
        say("Index their words, and die without warning half-way:");
        let half = half.to_string();
        let died = self.run("build", &["--fresh", "--kill-after", &half], true)?;
        match died.signal() {
            Some(9) => println!("(killed by signal 9)"),
            _ => bail!("the build was to be killed and ended with {died}"),
        }
        say("What is left? Exactly the last psync. Everything in it is checked:");
        self.done("verify", &[])?;
        say("Start it again: it recovers, and goes on from there:");
        self.build()?;
        say("Check everything once more, and count the words of all files again to compare:");
        self.done("verify", &["--recount"])?;
        say("Ask it. The structures lie in the object as the program uses them: nothing is loaded:");
        for words in [&["psync"][..], &["persistent", "memory"], &["crash*", "recover*"]] {
            self.done("query", &[&["--limit", "3"], words].concat())?;
        }
        say("Start it a third time: there is nothing to do:");
        self.build()
    }

    fn build(&self) -> Result<()> {
        let ended = self.run("build", &[], true)?;
        ensure!(ended.success(), "the build ended with {ended}");
        Ok(())
    }

    fn done(&self, command: &str, args: &[&str]) -> Result<()> {
        let ended = self.run(command, args, false)?;
        ensure!(ended.success(), "{command} ended with {ended}");
        Ok(())
    }

    fn run(&self, command: &str, args: &[&str], dirs: bool) -> Result<ExitStatus> {
        println!("$ {} {command} {}", self.program, args.join(" "));
        let program = std::env::current_exe()?;
        let mut process = Command::new(&program);
        process.arg(command).args(args);
        if dirs {
            process.args(&self.dirs);
        }
        process.arg("--pool").arg(&self.pool);
        process.args(["--name", &self.name, "--tracking", self.tracking, "--medium", self.medium]);
        process.status().with_context(|| format!("cannot run {}", program.display()))
    }
}

fn say(what: &str) {
    println!("\n{what}");
}
