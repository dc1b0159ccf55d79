use indelible::{Class, CreateOptions, EpochBounds, Error, Pool, TxCell, TxObject, transaction};
use indelible_guard::detector::FileDetector;
use indelible_guard::{
    Budget, Config, Departed, Detector, Guard, Note, Recover, RoundReport, Status, Stop, status,
};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub type Cells = [TxCell<u64>; 64];
pub const PATIENCE: Duration = Duration::from_secs(60);

pub const AMPLE: Budget =
    Budget { hold_up: Duration::from_secs(61), safety: Duration::from_secs(1), bandwidth: Some(1 << 20) };

pub struct Rig {
    pub dir: TempDir,
    pub pool: PathBuf,
    pub socket: PathBuf,
    pub power: PathBuf,
    guard: Option<(Stop, JoinHandle<()>)>,
    pub notes: Arc<Mutex<Vec<Note>>>,
}

impl Rig {
    pub fn without_guard() -> Rig {
        let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).or_else(|_| TempDir::new()).unwrap();
        let path = |name: &str| dir.path().join(name);
        let (pool, socket, power) = (path("p.pmo"), path("guard.sock"), path("power"));
        let made = Pool::format(&pool, 16 << 20).unwrap();
        for name in ["a", "b"] {
            made.create_with(name, &CreateOptions::new(4096).class(Class::OnDemand)).unwrap();
        }
        Rig { dir, pool, socket, power, guard: None, notes: Arc::default() }
    }

    pub fn new(budget: Budget) -> Rig {
        let mut rig = Rig::without_guard();
        let detector = FileDetector::new(&rig.power);
        rig.guard(budget, vec![Box::new(detector)]);
        rig
    }

    pub fn guard(&mut self, budget: Budget, detectors: Vec<Box<dyn Detector>>) {
        self.guard_with(budget, detectors, Arc::new(recover));
    }

    pub fn guard_with(&mut self, budget: Budget, detectors: Vec<Box<dyn Detector>>, recover: Recover) {
        let notes = self.notes.clone();
        let note = Box::new(move |note: &Note| notes.lock().unwrap().push(note.clone()));
        let config = Config { socket: self.socket.clone(), budget, detectors, recover, note };
        let guard = Guard::start(config).unwrap();
        let stop = guard.stop();
        self.guard = Some((stop, std::thread::spawn(move || guard.run().unwrap())));
    }

    pub fn end(&mut self) {
        if let Some((stop, thread)) = self.guard.take() {
            stop.stop();
            thread.join().unwrap();
        }
    }

    pub fn status(&self) -> Status {
        status(&self.socket, PATIENCE).unwrap()
    }

    pub fn registered(&self, count: usize) {
        until("writers register", || self.status().writers.len() == count);
    }

    pub fn fail(&self) -> RoundReport {
        std::fs::write(&self.power, "failing").unwrap();
        let of_power = |round: &RoundReport| round.cause.starts_with("file ");
        until("a round ends", || self.status().last.as_ref().is_some_and(of_power));
        self.status().last.unwrap()
    }

    pub fn durable(&self) -> u64 {
        let pool = Pool::open(&self.pool).unwrap();
        let seen = pool.attach_snapshot_anywhere("b", b"").unwrap();
        u64::from_le_bytes(seen.as_slice()[..8].try_into().unwrap())
    }

    pub fn writer(&self, kind: &str) -> Writer {
        self.writer_with(kind, None)
    }

    pub fn writer_with(&self, kind: &str, mutant: Option<&str>) -> Writer {
        self.writer_of(kind, mutant, &self.socket)
    }

    pub fn writer_at(&self, kind: &str, socket: &Path) -> Writer {
        self.writer_of(kind, None, socket)
    }

    fn writer_of(&self, kind: &str, mutant: Option<&str>, socket: &Path) -> Writer {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "support::writer", "--nocapture", "--ignored"]);
        command.env("GUARD_POOL", &self.pool).env("GUARD_SOCKET", socket).env("GUARD_KIND", kind);
        if let Some(mutant) = mutant {
            command.env("INDELIBLE_MUTANT", mutant);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Writer { child, output }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.end();
    }
}

pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::yield_now();
    }
}

/// Recovers in this process; the tool uses a separate one.
pub fn recover(departed: &Departed) -> Result<(), String> {
    let pool = Pool::open(&departed.pool).map_err(|error| error.to_string())?;
    pool.set_wait(Duration::from_secs(5));
    pool.recover_memory(departed.number).map(drop).map_err(|error| error.to_string())
}

pub struct Writer {
    pub child: Child,
    output: BufReader<ChildStdout>,
}

impl Writer {
    pub fn said(&mut self) -> Option<u64> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some((_, number)) = line.strip_suffix('\n').and_then(|line| line.split_once("ROUND ")) {
                return Some(number.parse().unwrap());
            }
        }
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.kill();
    }
}

pub fn step(a: &TxObject<Cells>, b: &TxObject<Cells>) -> u64 {
    transaction(&[a, b], |tx| {
        tx.update(&a[8], |value| value + 1)?;
        tx.update(&b[8], |value| value + 1)?;
        let number = tx.read(&b[0])? + 1;
        tx.write(&b[0], number)?;
        Ok::<_, Error>(number)
    })
    .unwrap()
}

pub fn attach(pool: &Path, socket: &Path) -> (Pool, TxObject<Cells>, TxObject<Cells>) {
    let pool = Pool::open(pool).unwrap();
    pool.set_guard(socket);
    // Only explicit requests make commits durable.
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 1 << 40 });
    let [a, b] = ["a", "b"].map(|name| pool.attach_transactional(name).unwrap());
    (pool, a, b)
}

/// Commits until killed (`busy`), or a few times and then waits (`idle`), or leaves a transaction
/// open (`stuck`).
#[test]
#[ignore = "run by the other tests as a process of its own"]
fn writer() {
    let (Some(pool), Some(socket)) = (std::env::var_os("GUARD_POOL"), std::env::var_os("GUARD_SOCKET"))
    else {
        return;
    };
    let kind = std::env::var("GUARD_KIND").unwrap();
    let (_pool, a, b) = attach(Path::new(&pool), Path::new(&socket));
    let mut number = 0;
    let say = |number: u64| println!("ROUND {number}");
    while number < 20 || kind == "busy" {
        number = step(&a, &b);
        if number < 20 || kind != "stuck" {
            say(number);
        }
    }
    let park = || -> indelible::Result<()> {
        loop {
            std::thread::park();
        }
    };
    match kind.as_str() {
        "stuck" => a.transaction(|tx| {
            tx.read(&a[0])?;
            say(number);
            park()
        }),
        _ => park(),
    }
    .unwrap();
}
