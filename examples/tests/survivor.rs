//! `pmo run` with a program that is killed at random, until it is done.

use indelible::{Pool, Rights, View};
use indelible_testing::Seeded;
use indelible_testing::page::parts_of;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const LIMIT: u64 = 200_000;
const KILLS: usize = 12;

#[test]
#[ignore = "run by another test as a process of its own"]
fn tool() {
    let arguments = std::env::var("TOOL_ARGUMENTS").unwrap();
    std::process::exit(indelible_cli::pmo(arguments.split('\n').map(Into::into)).into());
}

fn steps(number: u64) -> u64 {
    let mut number = u128::from(number);
    let mut steps = 0;
    while number > 1 {
        number = if number % 2 == 0 { number >> 1 } else { number * 3 + 1 };
        steps += 1;
    }
    steps
}

#[test]
fn s2_18_a_computation_survives_kills_at_random() {
    let mut random = Seeded::new(18);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.pmo");
    let pool = Pool::format(&path, 16 << 20).unwrap();
    pool.create("progress", 4096).unwrap();
    pool.create("counts", 8192).unwrap();
    let mut view = View::create(&pool, "work", 4).unwrap();
    for (slot, name) in ["progress", "counts"].into_iter().enumerate() {
        view.set(slot, name, Rights::READ | Rights::WRITE).unwrap();
    }
    view.psync().unwrap();
    drop((view, pool));

    let arguments = [
        "pmo",
        "run",
        path.to_str().unwrap(),
        "--view",
        "work",
        "--restarts",
        "1000",
        "--pause",
        "0",
        env!("CARGO_BIN_EXE_survivor"),
        &LIMIT.to_string(),
    ];
    let mut tool = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tool", "--ignored", "--nocapture"])
        .env("TOOL_ARGUMENTS", arguments.join("\n"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(tool.stdout.take().unwrap()).lines().map_while(Result::ok);
    let (mut process, mut killed, mut begun, mut resumed) = (0, 0, Vec::new(), 0);
    let mut psynced = 0;
    let mut last = String::new();
    for line in lines {
        if let Some((id, from)) =
            line.split_once("process ").and_then(|(_, rest)| rest.split_once(" begins at "))
        {
            let from: u64 = from.parse().unwrap();
            assert!(from >= psynced, "{from}: psynced was {psynced}");
            process = id.parse::<i32>().unwrap();
            begun.push(from);
        } else if let Some(done) = line.strip_suffix(" done").and_then(|done| done.parse::<u64>().ok()) {
            psynced = done;
            if killed < KILLS && process != 0 && random.u32(0..6) == 0 {
                let victim = rustix::process::Pid::from_raw(process).unwrap();
                killed +=
                    usize::from(rustix::process::kill_process(victim, rustix::process::Signal::KILL).is_ok());
                process = 0;
            }
        } else if line.contains(" is as its psync ") {
            resumed += 1;
        }
        last = line;
    }
    assert!(tool.wait().unwrap().success());
    let restarts = begun.len() - 1;
    assert!((3..=killed).contains(&restarts), "{restarts} restarts after {killed} kills");
    assert!(resumed >= restarts, "each restart is told of the objects that were in use: {resumed}");
    assert!(begun.windows(2).all(|pair| pair[0] <= pair[1]), "{begun:?}");
    let best = (0..LIMIT).max_by_key(|number| (steps(*number), u64::MAX - number)).unwrap();
    assert_eq!(last, format!("{LIMIT} numbers: {best} takes {} steps", steps(best)));
}

#[test]
fn the_page_of_the_cookbook_has_parts_of_the_program() {
    let page = include_str!("../../docs/cookbook/views.md");
    assert_eq!(parts_of(page, include_str!("../src/survivor.rs")), 2);
}
