//! The programs in use.

mod common;

use common::{COLLECTIONS, Ground, LINKED_LIST, THEFT, WORD_INDEX, command, corpus, fail, succeed, text};
use indelible::{Pool, Tracking};
use indelible_testing::Seeded;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

#[derive(Clone, Copy)]
struct Words<'a>(&'static str, &'a Path);

impl Words<'_> {
    fn run(self, args: &[&str]) -> Command {
        let mut command = command(self.0, args);
        command.arg("--pool").arg(self.1);
        command
    }

    fn build(self, corpus: &Path, args: &[&str]) -> Command {
        let mut command = self.run(&["build", "--pool-size", "1"]);
        command.args(args).arg(corpus);
        command
    }
}

macro_rules! of_each_index {
    ($($test:ident),*) => {
        mod native {
            $(#[test] fn $test() { super::$test(super::WORD_INDEX); })*
        }
        mod collections {
            $(#[test] fn $test() { super::$test(super::COLLECTIONS); })*
        }
    };
}

of_each_index!(
    the_demo_runs,
    a_killed_build_continues_and_a_finished_one_does_nothing,
    removed_and_changed_words_are_no_longer_found,
    a_query_while_building_says_who_builds,
    an_object_that_cannot_grow_where_it_stands_is_moved
);

fn the_demo_runs(program: &'static str) {
    let folder = Ground::Disk.folder();
    let corpus = corpus(folder.path(), 40);
    let mut demo = command(program, &["demo", "--keep"]);
    demo.arg(folder.path()).arg(&corpus);
    let output = succeed(demo);
    let expected = [
        "not psynced yet: kill -9 now",
        "(killed by signal 9)",
        "nothing lost",
        "recounted: 42 files",
        "mapped, nothing loaded",
        "nothing new: all 42 files are in the index",
    ];
    for expected in expected {
        assert!(output.contains(expected), "{expected:?} is not in\n{output}");
    }
    let name = Path::new(program).file_name().unwrap().to_str().unwrap();
    assert!(folder.path().join(format!("{name}.pmo")).exists());
}

fn a_killed_build_continues_and_a_finished_one_does_nothing(program: &'static str) {
    let folder = Ground::Disk.folder();
    let (corpus, pool) = (corpus(folder.path(), 40), folder.path().join("pool.pmo"));
    let words = Words(program, &pool);
    let killed = words.build(&corpus, &["--psync-every", "5", "--kill-after", "23"]).output().unwrap();
    assert_eq!(killed.status.signal(), Some(9), "{}", text(&killed.stderr));
    succeed(words.run(&["verify"]));
    let second = succeed(words.build(&corpus, &[]));
    assert!(second.contains("files were done already"), "{second}");
    let psyncs = || {
        let stats = succeed(words.run(&["stats"]));
        stats.lines().find(|line| line.starts_with("psyncs")).unwrap().to_owned()
    };
    let before = psyncs();
    let third = succeed(words.build(&corpus, &[]));
    assert!(third.contains("nothing new: all 42 files"), "{third}");
    assert_eq!(psyncs(), before, "a build without work psynced");
}

fn removed_and_changed_words_are_no_longer_found(program: &'static str) {
    let folder = Ground::Memory.folder();
    let pool = folder.path().join("pool.pmo");
    let words = Words(program, &pool);
    let corpus = folder.path().join("texts");
    fs::create_dir(&corpus).unwrap();
    let write = |name: &str, text: &str| fs::write(corpus.join(name), text).unwrap();
    write("a", "Persistent memory, persistently");
    write("b", "memory is not persistent");
    write("c", "Größe und Grösse");
    succeed(words.build(&corpus, &[]));
    let count = |asked: &[&str]| {
        let answer = succeed(words.run(&[&["query"], asked].concat()));
        let last = answer.lines().last().unwrap();
        last.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(count(&["memory"]), 2);
    assert_eq!(count(&["MEMORY", "not"]), 1);
    assert_eq!(count(&["persist*", "memory"]), 2);
    assert_eq!(count(&["größe"]), 1);
    assert_eq!(count(&["gr*"]), 1);
    assert_eq!(count(&["absent"]), 0);
    assert_eq!(count(&["absent", "memory"]), 0);
    fs::remove_file(corpus.join("a")).unwrap();
    write("b", "other words");
    let output = succeed(words.build(&corpus, &[]));
    assert!(output.contains("1 files are gone"), "{output}");
    assert_eq!(count(&["memory"]), 0);
    assert_eq!(count(&["other"]), 1);
    succeed(words.run(&["verify", "--recount"]));
}

fn a_query_while_building_says_who_builds(program: &'static str) {
    let folder = Ground::Disk.folder();
    let (corpus, pool) = (corpus(folder.path(), 60), folder.path().join("pool.pmo"));
    let words = Words(program, &pool);
    succeed(words.build(&corpus, &[]));
    let object = Pool::open(&pool).unwrap().attach("words").unwrap();
    let holder = std::process::id().to_string();
    let (code, stderr) = fail(words.run(&["query", "the"]));
    assert!(code == 1 && stderr.contains(&holder), "{stderr}");
    let (code, stderr) = fail(words.build(&corpus, &[]));
    assert!(code == 1 && stderr.contains(&holder), "{stderr}");
    object.detach().unwrap();
    let mut builder = words.build(&corpus, &["--fresh", "--psync-every", "1"]);
    let mut builder = builder.stdout(Stdio::null()).spawn().unwrap();
    let holder = builder.id().to_string();
    let (mut refused, mut answered) = (0, 0);
    while builder.try_wait().unwrap().is_none() {
        let query = words.run(&["query", "the"]).output().unwrap();
        let stderr = text(&query.stderr);
        let why = [holder.as_str(), "no such object", "is empty"];
        match query.status.code() {
            Some(0) => answered += 1,
            Some(1) if why.iter().any(|why| stderr.contains(why)) => refused += 1,
            _ => panic!("{}: {stderr}", query.status),
        }
    }
    println!("{refused} refused, {answered} answered; the builder: {}", builder.wait().unwrap());
}

fn an_object_that_cannot_grow_where_it_stands_is_moved(program: &'static str) {
    let folder = Ground::Memory.folder();
    let (corpus, path) = (corpus(folder.path(), 200), folder.path().join("pool.pmo"));
    let words = Words(program, &path);
    succeed(words.build(&corpus.join("part-0"), &[]));
    let pool = Pool::open(&path).unwrap();
    (0..64).for_each(|number| pool.create(&format!("other {number}"), 1 << 20).unwrap());
    drop(pool);
    let more = corpus.with_file_name("more");
    fs::create_dir(&more).unwrap();
    for file in 0..60 {
        let text: String = (0..2000).map(|word| format!("word{file}x{word} ")).collect();
        fs::write(more.join(format!("{file}")), text).unwrap();
    }
    succeed(words.build(&more, &[]));
    succeed(words.run(&["verify", "--recount"]));
    assert_eq!(succeed(words.run(&["query", "word7x1999"])).lines().count(), 2);
}

#[test]
fn damage_is_an_error_and_never_a_crash() {
    let mut rng = Seeded::new(1);
    println!("INDELIBLE_SEED={}", rng.seed());
    let folder = Ground::Memory.folder();
    let (corpus, pool) = (corpus(folder.path(), 20), folder.path().join("pool.pmo"));
    let words = Words(WORD_INDEX, &pool);
    let more = self::corpus(&folder.path().join("more"), 10);
    let (mut found, rounds) = (0, 40);
    for _ in 0..rounds {
        succeed(words.build(&corpus, &["--fresh"]));
        let mut object = Pool::open(&pool).unwrap().attach("words").unwrap();
        let base = object.as_ptr().addr() as u64;
        for _ in 0..rng.usize(1..20) {
            let end = if rng.u8(0..4) == 0 { 120 } else { 600_000 };
            let at = rng.usize(0..end) / 8 * 8;
            let value = if rng.bool() { base + rng.u64(0..600_000) / 8 * 8 } else { rng.u64(..) };
            object.range_mut(at..at + 8).copy_from_slice(&value.to_ne_bytes());
        }
        object.psync().unwrap();
        object.detach().unwrap();
        for args in [&["verify"][..], &["stats"], &["query", "*"], &["query", "the", "a*"], &["build"]] {
            let mut command = words.run(args);
            if args[0] == "build" {
                command.arg(&corpus).arg(&more);
            }
            let output = command.output().unwrap();
            let code = output.status.code().unwrap_or_else(|| panic!("{command:?}: {}", output.status));
            let stderr = text(&output.stderr);
            assert!(
                [0, 1, 3].contains(&code) && !stderr.contains("panicked"),
                "{command:?}: {code}: {stderr}"
            );
            found += usize::from(args[0] == "verify" && code != 0);
        }
    }
    println!("verify noticed {found} of {rounds}");
    assert!(found > rounds / 2, "verify noticed {found} of {rounds} damages");
}

fn list(pool: &Path, args: &[&str]) -> Command {
    let mut command = command(LINKED_LIST, args);
    command.arg("--pool").arg(pool);
    command
}

#[test]
fn the_list_keeps_what_was_psynced_and_nothing_else() {
    for ground in [Ground::Disk, Ground::Memory] {
        let folder = ground.folder();
        let pool = folder.path().join("list.pmo");
        let show = || succeed(list(&pool, &["show"])).split_whitespace().collect::<Vec<_>>().join(" ");
        succeed(list(&pool, &["insert", "5", "-3", "9"]));
        assert_eq!(show(), "-3 5 9");
        let crash = |args: &[&str]| {
            let output = list(&pool, args).output().unwrap();
            assert_eq!(output.status.signal(), Some(9), "{args:?}: {}", text(&output.stderr));
        };
        crash(&["insert", "--crash-before-psync", "4"]);
        assert_eq!(show(), "-3 5 9");
        crash(&["insert", "--crash-before-psync", "6", "4"]);
        assert_eq!(show(), "-3 5 6 9");
        crash(&["insert", "--crash-after-psync", "4"]);
        assert_eq!(show(), "-3 4 5 6 9");
        succeed(list(&pool, &["insert", "9", "10", "-9"]));
        assert_eq!(show(), "-9 -3 4 5 6 9 9 10");
    }
}

#[test]
fn every_tracking_word_is_accepted_and_others_are_not() {
    let folder = Ground::Memory.folder();
    let (corpus, pool) = (corpus(folder.path(), 5), folder.path().join("pool.pmo"));
    let words = Words(WORD_INDEX, &pool);
    for (word, tracking) in Tracking::WORDS {
        if tracking.is_available() {
            succeed(words.build(&corpus, &["--fresh", "--tracking", word]));
            succeed(words.run(&["verify", "--recount", "--tracking", word]));
        }
    }
    assert_eq!(fail(words.build(&corpus, &["--tracking", "guess"])).0, 2);
}

/// S3.5: the four steps, on either kind of object.
#[test]
fn a_sealed_object_withstands_the_theft_of_a_plain_one() {
    let output = succeed(command(THEFT, &[]));
    let (plain, sealed) = output.split_once("A sealed object:").unwrap();
    assert!(
        plain.contains("read \"account 4711 holds 1000 coins\"") && plain.contains("believes it"),
        "{plain}"
    );
    assert!(
        sealed.contains("read noise")
            && sealed.contains("page 0, of its extent, its key page, is not what was sealed"),
        "{sealed}"
    );
}
