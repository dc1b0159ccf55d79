//! After random kills the sum is unchanged, and every printed transfer is there (S1.3).

mod common;

use common::Ground;
use indelible_testing::Seeded;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const BANK: &str = env!("CARGO_BIN_EXE_bank");
const THREADS: usize = 8;
const SUM: u64 = 200_000;

fn told(pool: &Path, class: &str) -> (u64, Vec<u64>) {
    let output = Command::new(BANK).arg(pool).args(["0", class]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let (sum, made) = text.trim().split_once(" in all; transfers ").unwrap();
    let made = made.trim_matches(['[', ']']).split(", ").map(|number| number.parse().unwrap());
    (sum.parse().unwrap(), made.collect())
}

fn killed(ground: Ground, rounds: usize, class: &str) {
    let folder = ground.folder();
    let pool = folder.path().join("bank.pmo");
    let mut rng = Seeded::new(1616);
    let mut said = vec![0; THREADS];
    for _ in 0..rounds {
        let mut bank =
            Command::new(BANK).arg(&pool).args(["100000000", class]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(bank.stdout.take().unwrap()).lines().map_while(Result::ok);
        let last = rng.usize(0..400);
        if last == 0 {
            bank.kill().unwrap();
        }
        for (nth, line) in lines.enumerate() {
            let words: Vec<&str> = line.split([' ', ':']).collect();
            if let ["thread", thread, "", "transfer", number] = words[..]
                && let (Ok(thread), Ok(number)) = (thread.parse::<usize>(), number.parse::<u64>())
            {
                let before: &mut u64 = &mut said[thread];
                *before = number.max(*before);
            }
            if nth == last {
                bank.kill().unwrap();
            }
        }
        bank.kill().unwrap();
        bank.wait().unwrap();
        let (sum, made) = told(&pool, class);
        assert_eq!(sum, SUM);
        assert!(made.iter().zip(&said).all(|(made, said)| made >= said), "said {said:?}, there are {made:?}");
    }
    assert!(said.iter().all(|said| *said > 0), "each thread was acknowledged something: {said:?}");
}

#[test]
fn s1_03_killed_on_a_disk_it_loses_no_acknowledged_transfer() {
    killed(Ground::Disk, 40, "transactional");
}

#[test]
fn s1_03_killed_in_memory_it_loses_no_acknowledged_transfer() {
    killed(Ground::Memory, 40, "transactional");
}

/// Its memory outlives it: all transfers are there, acknowledged by `tx_sync` or not.
#[test]
fn s1_09_killed_on_demand_it_loses_no_acknowledged_transfer() {
    killed(Ground::Disk, 40, "on-demand");
}
