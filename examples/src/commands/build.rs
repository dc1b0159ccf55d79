//! `word-index build`.
//!
//! Several threads read files and count their words; one indexes them and psyncs between two files,
//! so that whole files are durable.

use crate::corpus::{Corpus, default_folders};
use crate::index::{Fuse, Index, Reader, kill_self};
use crate::place::Place;
use crate::progress::Progress;
use crate::text::{self, Digest, Version};
use anyhow::{Context, Result};
use indicatif::{HumanBytes, HumanCount};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Index the words of all text files in folders; continues where an earlier build ended or died.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folders or files [default: this project, and /usr/share/doc]
    dirs: Vec<PathBuf>,
    /// Kill this process (SIGKILL) when it has entered N files: those since the last psync are lost
    #[arg(long, value_name = "N")]
    kill_after: Option<u64>,
    /// Psync after this many files if that comes before 50 ms
    #[arg(long, value_name = "FILES", default_value_t = 256)]
    psync_every: u64,
    /// Forget what is indexed and begin anew
    #[arg(long)]
    fresh: bool,
    /// Size of the pool if it is made now, in GiB; its file is sparse
    #[arg(long, value_name = "GIB", default_value_t = 16)]
    pool_size: u64,
    /// Threads that read files [default: one per processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Print a line per event instead of a progress bar
    #[arg(long, hide = true)]
    events: bool,
    /// Kill this process before its Nth change of the index, in the middle of a file
    #[arg(long, hide = true)]
    kill_at_change: Option<u64>,
}

const INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn run<I: Index>(place: &Place, args: &Args) -> Result<()> {
    let progress = Progress::new(args.events);
    progress.event(format_args!("start"));
    let folders = if args.dirs.is_empty() { default_folders() } else { args.dirs.clone() };
    let corpus = Corpus::walk(&folders, |files| progress.looking(files))?;
    progress.event(format_args!("walked {}", corpus.files.len()));
    let object = place.attach(args.pool_size << 30, args.fresh)?;
    let recovered = object.recovered_bytes();
    let mut builder = Builder {
        index: I::open(object, Fuse::new(args.kill_at_change))?,
        progress,
        args,
        pending: 0,
        last: Instant::now(),
        unreadable: 0,
    };
    let step = builder.index.reader()?.totals()?.step;
    builder.progress.event(format_args!("attached {step} {recovered}"));
    let removed = builder.remove_gone(&corpus)?;
    let (todo, done) = builder.sort_out(&corpus)?;
    builder.progress.start(done, corpus.files.len() as u64);
    builder.add(&todo)?;
    builder.finish(done, removed)?;
    builder.index.detach().context("everything is psynced, but the last detach failed")
}

struct Builder<'o, I> {
    index: I,
    progress: Progress,
    args: &'o Args,
    /// Since the last psync.
    pending: u64,
    last: Instant,
    unreadable: u64,
}

type Read<'a> = (&'a Path, io::Result<(Version, Option<Digest>)>);

impl<I: Index> Builder<'_, I> {
    fn remove_gone(&mut self, corpus: &Corpus) -> Result<u64> {
        let reader = self.index.reader()?;
        let mut gone = Vec::new();
        for file in reader.files()? {
            let path = reader.file(file)?.path;
            if corpus.covers(path) && !corpus.contains(path) {
                gone.push(path.to_owned());
            }
        }
        for path in &gone {
            self.index.remove(path)?;
            self.pending += 1;
        }
        Ok(gone.len() as u64)
    }

    fn sort_out<'c>(&self, corpus: &'c Corpus) -> Result<(Vec<&'c Path>, u64)> {
        let reader = self.index.reader()?;
        let mut todo = Vec::new();
        for (path, version) in &corpus.files {
            match reader.find_file(path)? {
                Some(file) if reader.file(file)?.version == *version => {}
                _ => todo.push(path.as_path()),
            }
        }
        let done = (corpus.files.len() - todo.len()) as u64;
        Ok((todo, done))
    }

    fn add(&mut self, todo: &[&Path]) -> Result<()> {
        let next = AtomicUsize::new(0);
        let jobs =
            self.args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let (out, files) = sync_channel(4 * jobs);
        std::thread::scope(|scope| {
            for _ in 0..jobs.min(todo.len()) {
                let (next, out) = (&next, out.clone());
                scope.spawn(move || read_all(todo, next, &out));
            }
            drop(out);
            self.enter(files)
        })
    }

    fn enter(&mut self, files: Receiver<Read<'_>>) -> Result<()> {
        for (path, read) in files {
            let Ok((version, digest)) = read else {
                self.unreadable += 1;
                continue;
            };
            self.index.remove(path)?;
            self.index.add(path, version, digest.as_ref())?;
            let (tokens, bytes) = digest.map_or((0, 0), |digest| (digest.tokens, digest.bytes));
            self.progress.file(tokens, bytes);
            self.progress.event(format_args!("file {}", path.display()));
            self.pending += 1;
            if self.args.kill_after == Some(self.progress.files) {
                self.die()?;
            }
            if self.pending >= self.args.psync_every || self.last.elapsed() >= INTERVAL {
                self.psync()?;
            }
        }
        self.psync()
    }

    fn psync(&mut self) -> Result<()> {
        if self.pending > 0 {
            let step = self.index.step()?;
            let files = self.index.reader()?.totals()?.files;
            self.progress.event(format_args!("psync {step} {files}"));
            self.index.psync()?;
            self.progress.psyncs += 1;
            self.progress.event(format_args!("psynced {step} {files}"));
            self.pending = 0;
        }
        self.last = Instant::now();
        Ok(())
    }

    fn die(&self) -> Result<()> {
        let files = self.index.reader()?.totals()?.files;
        self.progress.finish();
        println!("{files} files entered, {} of them not psynced yet: kill -9 now", self.pending);
        kill_self()
    }

    fn finish(&self, done: u64, removed: u64) -> Result<()> {
        let Progress { files, tokens, bytes, psyncs, .. } = self.progress;
        let seconds = self.progress.elapsed().as_secs_f64();
        self.progress.finish();
        if self.unreadable > 0 {
            println!("{} files could not be read", HumanCount(self.unreadable));
        }
        if removed > 0 {
            println!("{} files are gone and no longer in the index", HumanCount(removed));
        }
        if files == 0 {
            println!("nothing new: all {} files are in the index as they are", HumanCount(done));
            return Ok(());
        }
        if done > 0 {
            println!("{} files were done already", HumanCount(done));
        }
        println!(
            "{} files, {} words, {} of text in {seconds:.1} s ({:.0} MB/s), {psyncs} psyncs",
            HumanCount(files),
            HumanCount(tokens),
            HumanBytes(bytes),
            bytes as f64 / 1e6 / seconds.max(1e-3),
        );
        Ok(())
    }
}

fn read_all<'a>(todo: &[&'a Path], next: &AtomicUsize, out: &SyncSender<Read<'a>>) {
    while let Some(path) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
        if out.send((path, text::read(path))).is_err() {
            return;
        }
    }
}
