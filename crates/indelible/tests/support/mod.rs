//! Worlds: every medium with every tracking; the same tests run on all.
#![allow(dead_code)]

pub mod nodes;

use indelible::{Heap, HeapOptions, MediumKind, Pool, PoolOptions, SealKey, Tracking, TypeInfo};
use indelible_testing::{SimConfig, SimMedium};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    File,
    Memory,
    Simulated,
}

pub struct World {
    pub ground: Ground,
    pub tracking: Tracking,
    pub fault_in: bool,
    dir: TempDir,
    sim: Option<SimMedium>,
}

pub const POOL: u64 = 64 << 20;

pub fn seal_key() -> SealKey {
    SealKey::file(vec![0x5a; 32]).unwrap()
}

/// Runs a test in every world of this machine; reports missing ones.
pub fn everywhere(test: impl Fn(&World)) {
    for ground in [Ground::File, Ground::Memory, Ground::Simulated] {
        for tracking in [Tracking::WpAsync, Tracking::Mprotect, Tracking::Explicit] {
            if !tracking.is_available() {
                indelible_testing::not_tested(format_args!(
                    "on {ground:?}: this kernel lacks tracking by {tracking:?}"
                ));
                continue;
            }
            for fault_in in [false, true] {
                if fault_in && ground == Ground::Memory {
                    continue;
                }
                if fault_in && !faults_in() {
                    indelible_testing::not_tested(format_args!(
                        "on {ground:?}: without full userfaultfd nothing is faulted in"
                    ));
                    continue;
                }
                let world = World::new(ground, tracking, fault_in);
                eprintln!("world: {ground:?}, {tracking:?}, fault-in {fault_in}");
                test(&world);
            }
        }
    }
}

pub fn faults_in() -> bool {
    let found = indelible::doctor(None);
    found.facilities.iter().any(|facility| facility.name == "fault-in" && facility.available == Some(true))
}

fn on_disk() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))
        .or_else(|_| TempDir::new_in("/var/tmp"))
        .or_else(|_| TempDir::new())
        .expect("a temporary directory")
}

fn in_memory() -> TempDir {
    TempDir::new_in("/dev/shm").expect("a temporary directory on /dev/shm")
}

impl World {
    pub fn new(ground: Ground, tracking: Tracking, fault_in: bool) -> World {
        let dir = if ground == Ground::Memory { in_memory() } else { on_disk() };
        let sim = (ground == Ground::Simulated).then(|| SimMedium::new(POOL, SimConfig::default()));
        World { ground, tracking, fault_in, dir, sim }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("test.pmo")
    }

    pub fn mark(&self, address: *const u8, len: usize) {
        if self.tracking == Tracking::Explicit {
            indelible::raw::mark_dirty(address, len).unwrap();
        }
    }

    pub fn dir(&self) -> &std::path::Path {
        self.dir.path()
    }

    pub fn sim(&self) -> Option<&SimMedium> {
        self.sim.as_ref()
    }

    pub fn options(&self) -> PoolOptions {
        let medium = match self.ground {
            Ground::File => MediumKind::File,
            _ => MediumKind::Auto,
        };
        PoolOptions::new().medium(medium).tracking(self.tracking).fault_in(self.fault_in)
    }

    pub fn raw(&self) -> Vec<u8> {
        match &self.sim {
            Some(sim) => sim.to_bytes(),
            None => std::fs::read(self.path()).expect("the pool's file"),
        }
    }

    pub fn format(&self) -> Pool {
        match &self.sim {
            Some(sim) => self.options().on_device(Arc::new(sim.handle()), true),
            None => self.options().format(self.path(), POOL),
        }
        .expect("format")
    }

    pub fn open(&self) -> Pool {
        match &self.sim {
            Some(sim) => self.options().on_device(Arc::new(sim.handle()), false),
            None => self.options().open(self.path()),
        }
        .expect("open")
    }
}

/// The options of a world, from its name.
pub fn options_of(name: &str) -> PoolOptions {
    let words: Vec<&str> = name.split(' ').collect();
    let medium = if words[0] == "File" { MediumKind::File } else { MediumKind::Auto };
    let tracking = match words[1] {
        "WpAsync" => Tracking::WpAsync,
        "Mprotect" => Tracking::Mprotect,
        "Explicit" => Tracking::Explicit,
        _ => Tracking::Auto,
    };
    PoolOptions::new().medium(medium).tracking(tracking).fault_in(words[2] == "true")
}

/// Runs the ignored test `work` on the world's pool in its own process; kills it once it reported
/// so many durable rounds. Returns the last reported round.
pub fn killed_at_work(world: &World, work: &str, last: usize) -> Option<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", work, "--nocapture", "--ignored"])
        .env("WORK_POOL", world.path())
        .env("WORK_WORLD", format!("{:?} {:?} false", world.ground, world.tracking))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let rounds = lines
        .map_while(Result::ok)
        .filter_map(|line| line.split_once("ROUND ").map(|(_, round)| round.trim().parse::<u64>().unwrap()));
    let mut said = None;
    for (number, round) in rounds.enumerate() {
        said = Some(round);
        if number == last {
            child.kill().unwrap();
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    said
}

pub fn psynced_whole(world: &World, mut heap: Heap, options: HeapOptions, what: &str) -> Heap {
    heap.psync().expect("psync");
    let object = heap.into_object();
    let (name, stored) = (object.name().to_owned(), object.as_slice().to_vec());
    drop(object);
    let object = world.open().attach(&name).expect("attach");
    let lost = stored.iter().zip(object.as_slice()).position(|(stored, durable)| stored != durable);
    assert_eq!(lost.map(|at| at / 64 * 64), None, "{what}: not durable, from the line at this offset on");
    Heap::open_with(object, options).expect("a heap")
}

/// A root of a non-Rust type.
pub fn name_root(
    heap: &Heap,
    name: &str,
    address: *const u8,
    size: u64,
    ty: &TypeInfo<'_>,
) -> indelible::Result<()> {
    // SAFETY: no code finds it by a type of the program.
    unsafe { heap.create_root(name, address, size, ty) }
}

pub fn memory_of(pool: &Pool) -> Vec<PathBuf> {
    let id: String = pool.id().iter().map(|byte| format!("{byte:02x}")).collect();
    let all = std::fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().path());
    let mut own: Vec<_> =
        all.filter(|path| path.to_string_lossy().contains(&format!("indelible-{id}"))).collect();
    own.sort_unstable();
    own
}
