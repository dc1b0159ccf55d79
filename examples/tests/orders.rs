//! After random kills no item is lost or sold twice, and every printed order is there (S1.3).

mod common;

use common::Ground;
use indelible_testing::Seeded;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const ORDERS: &str = env!("CARGO_BIN_EXE_orders");
const ITEMS: u64 = 20_000;

fn told(pool: &Path) -> [u64; 3] {
    let output = Command::new(ORDERS).arg(pool).arg("0").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let numbers: Vec<u64> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [left, waiting, packed, all] = numbers[..] else { panic!("{text}") };
    assert_eq!(left + waiting + packed, all);
    assert_eq!(all, ITEMS);
    [left, waiting, packed]
}

fn killed(ground: Ground, rounds: usize) {
    let folder = ground.folder();
    let pool = folder.path().join("shop.pmo");
    let (mut rng, mut said) = (Seeded::new(2020), BTreeSet::new());
    for _ in 0..rounds {
        let mut shop =
            Command::new(ORDERS).arg(&pool).arg("100000000").stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(shop.stdout.take().unwrap()).lines().map_while(Result::ok);
        let last = rng.usize(0..200);
        if last == 0 {
            shop.kill().unwrap();
        }
        for (nth, line) in lines.enumerate() {
            if let ["order", number, "item", _] =
                line.split([' ', ':']).filter(|word| !word.is_empty()).collect::<Vec<_>>()[..]
            {
                let number: u64 = number.parse().unwrap();
                assert!(said.insert(number), "order {number} was given to two customers");
            }
            if nth == last {
                shop.kill().unwrap();
            }
        }
        shop.kill().unwrap();
        shop.wait().unwrap();
        let [_, waiting, packed] = told(&pool);
        let most = said.last().copied().unwrap_or(0);
        assert!(waiting + packed >= most, "order {most} was printed, and there are {waiting} and {packed}");
    }
    assert!(said.len() > 100, "{} orders", said.len());
}

#[test]
fn s1_03_killed_in_memory_it_loses_no_order() {
    killed(Ground::Memory, 15);
}

#[test]
fn s1_03_killed_on_a_disk_it_loses_no_order() {
    killed(Ground::Disk, 15);
}
