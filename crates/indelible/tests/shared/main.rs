//! Objects that processes share: the class, words to wait for, lives, queues, streams, deaths and
//! scribbles.
//!
//! A child is this program again, running one hidden test.

#[path = "../support/mod.rs"]
mod support;
#[cfg(feature = "__mutants")]
#[path = "../support/watches.rs"]
mod watches;

mod class;
mod cut;
mod deaths;
mod exchange;
mod hostile;
mod log;
mod mutants;
mod queue;
mod wait;

use indelible::{Class, CreateOptions, ErrorKind, Pool, Queue, QueueOptions, SharedObject};
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use support::{Ground, World};
use tempfile::TempDir;

struct Rig {
    world: World,
    pool: Pool,
}

const SIZE: u64 = 1 << 20;
const NAME: &str = "shared";

impl Rig {
    fn new() -> Rig {
        let world = World::new(Ground::File, indelible::Tracking::Auto, false);
        let pool = world.format();
        pool.create_with(NAME, &CreateOptions::new(SIZE).class(Class::Shared)).unwrap();
        Rig { world, pool }
    }

    fn attach(&self) -> SharedObject {
        self.pool.attach_shared(NAME).unwrap()
    }

    fn queue(&self, options: &QueueOptions) -> Queue {
        self.attach().queue(0, options).unwrap()
    }

    fn memory(&self) -> Option<std::path::PathBuf> {
        let id = format!("{:032x}", u128::from_be_bytes(self.pool.id()));
        let files = std::fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().path());
        let mut own: Vec<_> = files.filter(|path| path.to_str().unwrap().contains(&id)).collect();
        assert!(own.len() < 2, "{own:?}");
        own.pop()
    }

    fn child(&self, work: &str) -> Working {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", work, "--nocapture", "--ignored"])
            .env("WORK_POOL", self.world.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Working { child, lines }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = self.pool.destroy(NAME);
        if let Some(left) = self.memory() {
            let _ = std::fs::remove_file(left);
        }
    }
}

struct Working {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Working {
    fn said(&mut self, word: &str) -> Option<String> {
        self.lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, rest) = line.split_once(word)?;
            Some(rest.trim().to_owned())
        })
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn at_work() -> Option<SharedObject> {
    let path = std::env::var_os("WORK_POOL")?;
    Some(Pool::open(path).unwrap().attach_shared(NAME).unwrap())
}

fn kind<T>(result: indelible::Result<T>) -> ErrorKind {
    result.err().expect("it is refused").kind()
}

fn folder() -> TempDir {
    TempDir::new().unwrap()
}
