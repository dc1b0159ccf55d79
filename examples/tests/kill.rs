//! 200 rounds of SIGKILL against `word-index build`, three builders on one pool; and 68 on
//! collections.
//!
//! Checked after each round, in a fresh process per object:
//! 1. the index is whole (`word-index verify`);
//! 2. it is as the last reported psync left it, or as the one under way at the death;
//! 3. a kill takes nothing from the other builders.
//!
//! In the end the builders finish, the index is compared with the files, and queries with a count
//! by other code.

mod common;
#[path = "common/model.rs"]
mod model;
#[path = "common/victim.rs"]
mod victim;

use common::{COLLECTIONS, Ground, WORD_INDEX, corpus};
use indelible_testing::Seeded;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use victim::{Builder, Death};

const ROUNDS: usize = 34;
const FILES: usize = 60;

#[test]
fn killed_on_disk_with_wp_async() {
    rounds(WORD_INDEX, Ground::Disk, "wp-async");
}

#[test]
fn killed_on_disk_with_mprotect() {
    rounds(WORD_INDEX, Ground::Disk, "mprotect");
}

#[test]
fn killed_on_disk_with_explicit_tracking() {
    rounds(WORD_INDEX, Ground::Disk, "explicit");
}

#[test]
fn killed_in_memory_with_wp_async() {
    rounds(WORD_INDEX, Ground::Memory, "wp-async");
}

#[test]
fn killed_in_memory_with_mprotect() {
    rounds(WORD_INDEX, Ground::Memory, "mprotect");
}

#[test]
fn killed_in_memory_with_explicit_tracking() {
    rounds(WORD_INDEX, Ground::Memory, "explicit");
}

#[test]
fn collections_killed_on_disk_with_wp_async() {
    rounds(COLLECTIONS, Ground::Disk, "wp-async");
}

#[test]
fn collections_killed_in_memory_with_mprotect() {
    rounds(COLLECTIONS, Ground::Memory, "mprotect");
}

#[test]
fn killed_during_recovery() {
    let corpus = Corpus::new(Ground::Disk);
    let mut rng = Seeded::new(1);
    println!("INDELIBLE_SEED={}", rng.seed());
    let mut builder = corpus.builder(WORD_INDEX, "words", "auto");
    let (mut early, mut kills) = (0, 0);
    for _ in 0..12 {
        let store = rng.u64(2_000..20_000).to_string();
        let seen = builder.start(&["--psync-every", "2", "--kill-at-change", &store]).wait();
        builder.saw(seen);
        for _ in 0..4 {
            let seen =
                builder.start(&["--psync-every", "2"]).kill(Death { lines: 2, spins: rng.u32(0..600_000) });
            early += usize::from(seen.attached.is_none());
            kills += 1;
            builder.saw(seen);
        }
        builder.verify();
        if builder.is_done(FILES) {
            builder.fresh_next();
        }
    }
    println!("{early} of {kills} died before they were attached");
    assert!(early > 0, "no kill came early enough to hit a recovery");
    builder.finish();
    corpus.compare(&builder);
}

fn rounds(program: &'static str, ground: Ground, tracking: &str) {
    let words: Vec<_> =
        indelible::Tracking::WORDS.into_iter().filter(|(word, _)| *word == tracking).collect();
    if !words[0].1.is_available() {
        println!("this kernel does not offer {tracking}");
        return;
    }
    let mut rng = Seeded::new(2);
    println!("INDELIBLE_SEED={}", rng.seed());
    let mut corpus = Corpus::new(ground);
    let mut builders: Vec<_> =
        ["one", "two", "three"].map(|name| corpus.builder(program, name, tracking)).into();
    let (mut died, mut during) = (0, 0);
    for round in 0..ROUNDS {
        let running: Vec<_> = builders
            .iter_mut()
            .map(|builder| {
                let every = rng.u32(1..12).to_string();
                let store = rng.u64(1..60_000).to_string();
                let mut args = vec!["--psync-every", &every];
                if rng.u8(0..3) == 0 {
                    args.extend(["--kill-at-change", &store]);
                }
                let death = Death { lines: rng.usize(0..FILES), spins: rng.u32(0..100_000) };
                builder.start(&args).kill_later(death)
            })
            .collect();
        let seen: Vec<_> = running.into_iter().map(victim::Dying::join).collect();
        died += seen.iter().filter(|seen| seen.killed).count();
        for (builder, seen) in builders.iter_mut().zip(seen) {
            during += usize::from(builder.saw(seen));
            builder.verify();
            if builder.is_done(FILES) && rng.bool() {
                builder.fresh_next();
            }
        }
        if round % 5 == 4 {
            corpus.edit(&mut rng);
        }
    }
    println!("{died} kills in {ROUNDS} rounds, {during} of them during a psync");
    assert!(died > ROUNDS, "most builders lived: the kills come too late");
    for builder in &mut builders {
        builder.finish();
        corpus.compare(builder);
    }
}

struct Corpus {
    folder: tempfile::TempDir,
    texts: PathBuf,
    edits: usize,
}

impl Corpus {
    fn new(ground: Ground) -> Corpus {
        let folder = ground.folder();
        let texts = corpus(folder.path(), FILES);
        Corpus { folder, texts, edits: 0 }
    }

    fn builder(&self, program: &'static str, name: &str, tracking: &str) -> Builder {
        Builder::new(program, self.folder.path().join("pool.pmo"), &self.texts, name, tracking)
    }

    fn edit(&mut self, rng: &mut Seeded) {
        self.edits += 1;
        let part = self.texts.join(format!("part-{}", rng.u8(0..5)));
        let mut files: Vec<_> = fs::read_dir(&part).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
        files.sort();
        fs::remove_file(files.swap_remove(rng.usize(..files.len()))).unwrap();
        let mut changed = fs::OpenOptions::new().append(true).open(&files[rng.usize(..files.len())]).unwrap();
        writeln!(changed, "edit {} brings unheard-of words, word{}", self.edits, rng.u16(..)).unwrap();
        fs::write(part.join(format!("new-{}.txt", self.edits)), format!("new file number {}\n", self.edits))
            .unwrap();
    }

    fn compare(&self, builder: &Builder) {
        let recounted = builder.run("verify", &["--recount"]);
        assert!(
            recounted.contains("say what the index says") && !recounted.contains("have changed"),
            "{recounted}"
        );
        let model = model::model(&self.texts);
        for (word, files) in model.iter().step_by(model.len() / 20) {
            let answer = builder.run("query", &["--limit", "0", word]);
            let mut found = model::Model::new();
            for line in answer.lines().filter(|line| line.contains('/')) {
                let (count, path) = line.trim_start().split_once("  ").unwrap();
                found.entry(word.clone()).or_default().insert(path.into(), count.parse().unwrap());
            }
            assert_eq!(found.get(word), Some(files), "{word}");
        }
        let stats = builder.run("stats", &[]);
        let words = model.len();
        let postings = model.values().map(|files| files.len()).sum::<usize>();
        println!("{words} words, {postings} postings\n{stats}");
        assert!(stats.replace(',', "").contains(&format!("postings   {postings}\n")), "{postings}: {stats}");
    }
}
