//! The server is killed under load: synced files are there, and the tree is a prefix of the
//! operations.
//!
//! `KILLS=1000` makes it a campaign.

use crate::support::{Place, process, work};
use indelible_testing::Seeded;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

/// Files of each round, in this order; the last one is renamed.
const FILES: u32 = 6;

fn name(dir: &Path, file: u32) -> std::path::PathBuf {
    dir.join(format!("folder{}/file{file}", file % 2))
}

/// Until the file system is gone.
#[test]
#[ignore = "run by the other test as a process of its own"]
fn writes() {
    let Some(dir) = work() else { return };
    let first: u64 = std::env::var("FIRST").unwrap().parse().unwrap();
    let mut random = Seeded::new(first);
    for round in first.. {
        let size = random.usize(1..40_000);
        let content = [&round.to_le_bytes()[..], &vec![round as u8; size]].concat();
        let done = (0..FILES).try_for_each(|file| {
            let new = dir.join(format!("new{file}"));
            fs::write(&new, &content)?;
            fs::rename(&new, name(&dir, file))
        });
        let synced = done.and_then(|()| fs::File::open(name(&dir, 0))?.sync_all());
        if synced.is_err() {
            return;
        }
        println!("SYNCED {round}");
        std::io::stdout().flush().unwrap();
    }
}

fn round(path: &Path) -> u64 {
    let Ok(bytes) = fs::read(path) else { return 0 };
    assert!(bytes.len() > 8, "{} has {} bytes", path.display(), bytes.len());
    let round = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert!(bytes[8..].iter().all(|byte| *byte == round as u8), "{} is torn", path.display());
    round
}

#[test]
fn s2_22_killed_under_load_the_tree_is_a_prefix_with_all_that_was_synced() {
    let kills = std::env::var("KILLS").map_or(8, |text| text.parse().unwrap());
    let Some(place) = Place::new(64 << 20) else { return };
    let Some(mounted) = place.mount() else { return };
    for folder in ["folder0", "folder1"] {
        fs::create_dir(place.path(folder)).unwrap();
    }
    mounted.end();
    let mut random = Seeded::new(56);
    let mut first = 1;
    for kill in 0..kills {
        let Some(mut mounted) = place.mount() else { return };
        let mut writer =
            process("kills::writes", &place.dir).env("FIRST", first.to_string()).spawn().unwrap();
        let lines = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok);
        let last = random.usize(0..12);
        let mut said = first - 1;
        let rounds = lines.filter_map(|line| line.split_once("SYNCED ")?.1.trim().parse::<u64>().ok());
        // Its output before the writer's end counts.
        for (at, round) in rounds.enumerate() {
            said = round;
            if at == last {
                mounted.kill();
            }
        }
        writer.wait().unwrap();
        drop(mounted);
        let Some(mounted) = place.mount() else { return };
        let rounds: Vec<u64> = (0..FILES).map(|file| round(&name(&place.dir, file))).collect();
        assert!(rounds.is_sorted_by(|one, two| one >= two), "kill {kill}: no prefix: {rounds:?}");
        let (newest, oldest) = (rounds[0], rounds[FILES as usize - 1]);
        assert!(
            oldest >= said && newest <= oldest + 1,
            "kill {kill}: {said} was synced, there is {rounds:?}"
        );
        mounted.end();
        let pool = indelible::Pool::open(&place.pool).unwrap();
        assert_eq!(indelible_posix::Volume::open(&pool, "files").unwrap().check(), [""; 0], "kill {kill}");
        first = newest + 1;
    }
    assert!(first > kills, "{first} rounds");
}
