//! A store in memory whose calls fail as told, a clock that only waits move, and pools compared.

use indelible::{Pool, PoolOptions};
use indelible_replicate::{
    Bucket, Claim, Clock, Position, ReplicateError, Restored, Shipped, Shipper, StoreAuthority, Trouble,
    restore,
};
use indelible_store::format::entry::{FLAG_OVERLAY, FLAG_SPARSE};
use indelible_store::store::Attributes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

pub const PAGE: usize = 4096;
pub const LEASE: Duration = Duration::from_secs(10);

/// A put that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// 429, 500: nothing is there.
    Busy,
    /// A timeout: nothing is there.
    Lost,
    /// A timeout: it is there.
    Landed,
    /// Half an upload: nothing is there, and the connection is gone.
    Half,
    /// It arrives when the next call is over.
    Late,
    DiesBefore,
    DiesAfter,
}

pub const FAULTS: [Fault; 5] = [Fault::Busy, Fault::Lost, Fault::Landed, Fault::Half, Fault::Late];

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Vec<u8>>,
    puts: u64,
    fault: Option<(u64, Fault)>,
    late: Vec<(String, Vec<u8>)>,
    dead: bool,
}

/// A store; `dead` once its process died.
#[derive(Default)]
pub struct Memory(Mutex<State>);

impl Memory {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// The `nth` put from now on, from 1, has this fault.
    pub fn fail(&self, nth: u64, fault: Fault) {
        let mut state = self.state();
        state.fault = Some((state.puts + nth, fault));
    }

    /// Another process, which sees the objects.
    pub fn revive(&self) {
        let mut state = self.state();
        (state.dead, state.fault) = (false, None);
    }

    pub fn puts(&self) -> u64 {
        self.state().puts
    }

    pub fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        self.state().objects.clone()
    }

    pub fn set(&self, objects: BTreeMap<String, Vec<u8>>) {
        self.state().objects = objects;
    }

    fn put_as(&self, name: &str, bytes: &[u8], new: bool) -> Result<(), Trouble> {
        let mut guard = self.state();
        let state = &mut *guard;
        if state.dead {
            return Err(Trouble::Refused("the process is dead".into()));
        }
        let late = std::mem::take(&mut state.late);
        state.puts += 1;
        let puts = state.puts;
        let fault = state.fault.take_if(|(nth, _)| *nth == puts).map(|(_, fault)| fault);
        let put = |state: &mut State| {
            if new && state.objects.contains_key(name) {
                return Err(Trouble::Taken);
            }
            state.objects.insert(name.into(), bytes.into());
            Ok(())
        };
        let unclear = |why: &str| Err(Trouble::Unclear(why.into()));
        let done = match fault {
            None => put(state),
            Some(Fault::Busy) => unclear("429 Too Many Requests"),
            Some(Fault::Lost) => unclear("timed out"),
            Some(Fault::Half) => unclear("the connection was closed"),
            Some(Fault::Landed) => put(state).and_then(|()| unclear("timed out")),
            Some(Fault::Late) => {
                if new {
                    state.late.push((name.into(), bytes.into()));
                }
                unclear("timed out")
            }
            Some(Fault::DiesBefore) => {
                state.dead = true;
                Err(Trouble::Refused("the process is dead".into()))
            }
            Some(Fault::DiesAfter) => {
                let _ = put(state);
                state.dead = true;
                Err(Trouble::Refused("the process is dead".into()))
            }
        };
        // A delayed put has its condition, too.
        for (name, bytes) in late {
            state.objects.entry(name).or_insert(bytes);
        }
        done
    }
}

impl Bucket for Memory {
    fn get(&self, name: &str) -> Result<Vec<u8>, Trouble> {
        let state = self.state();
        match state.dead {
            true => Err(Trouble::Refused("the process is dead".into())),
            false => state.objects.get(name).cloned().ok_or(Trouble::Missing),
        }
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        self.put_as(name, bytes, true)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        self.put_as(name, bytes, false)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, Trouble> {
        let state = self.state();
        if state.dead {
            return Err(Trouble::Refused("the process is dead".into()));
        }
        let folder = format!("{folder}/");
        Ok(state.objects.keys().filter(|name| name.starts_with(&folder)).cloned().collect())
    }
}

/// Time passes while a process waits, at its own speed; after a number of waits it is stopped.
pub struct Ticks {
    state: Mutex<(Duration, u32)>,
    /// Percent of true time.
    pub speed: u32,
}

impl Default for Ticks {
    fn default() -> Self {
        Ticks::at(100)
    }
}

impl Ticks {
    pub fn at(speed: u32) -> Self {
        Ticks { state: Mutex::new((Duration::ZERO, 1000)), speed }
    }

    pub fn pass(&self, time: Duration) {
        self.state.lock().unwrap().0 += time * self.speed / 100;
    }
}

impl Clock for Ticks {
    fn now(&self) -> Duration {
        self.state.lock().unwrap().0
    }

    fn wait(&self, time: Duration) -> bool {
        let mut state = self.state.lock().unwrap();
        state.0 += time;
        state.1 = state.1.saturating_sub(1);
        state.1 > 0
    }
}

pub fn claim(pool: &Pool, owner: &str) -> Claim {
    Claim::of(pool, owner).unwrap()
}

/// Ships what there is as a process of its own.
pub fn ship_once(bucket: &dyn Bucket, pool: &Pool) -> Result<Option<Shipped>, ReplicateError> {
    let clock = Ticks::default();
    let mut authority = StoreAuthority::new(bucket, &clock, LEASE);
    let mut shipper = Shipper::begin(pool, b"", &mut authority, &claim(pool, "once"))?;
    let shipped = shipper.tick();
    shipper.end();
    shipped
}

pub fn restore_to(
    bucket: &dyn Bucket,
    path: &Path,
    at: Option<Position>,
) -> Result<Restored, ReplicateError> {
    let _ = std::fs::remove_file(path);
    restore(bucket, &Ticks::default(), path, at, &PoolOptions::new(), &mut |_, _| {})
}

/// Attributes and bytes by name.
pub type Content = BTreeMap<String, (Attributes, Vec<u8>)>;

/// A pool's objects, without the shipper's snapshots.
pub fn content(pool: &Pool) -> Content {
    let names = pool.list().map(|stat| stat.unwrap().name).filter(|name| !name.starts_with("pmo-replica."));
    let one = |name: String| {
        let store = pool.store();
        let (object, status) = store.stat(&name).unwrap();
        let mut attributes = Attributes { psyncs: status.psyncs, ..Attributes::of(&object) };
        // A restored object shares no pages, and one that does is sparse.
        if object.entry.has(FLAG_OVERLAY) {
            attributes.flags &= !(FLAG_OVERLAY | FLAG_SPARSE);
        }
        let mut reader = store.attach_still(&name, indelible_store::table::Key(b"")).unwrap();
        let mut bytes = vec![0; attributes.size as usize];
        let (object, layers) = (*reader.object(), reader.take_layers());
        indelible_store::table::read_pages(&**store.device(), &object, layers.as_ref(), 0, &mut bytes)
            .unwrap();
        store.end_snapshot(reader).unwrap();
        (name, (attributes, bytes))
    };
    names.collect::<Vec<_>>().into_iter().map(one).collect()
}

/// How two pools differ; `None`: not at all.
pub fn difference(found: &Content, wanted: &Content) -> Option<String> {
    let (names, others) = (found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    if names != others {
        return Some(format!("objects {names:?}, not {others:?}"));
    }
    for (name, (attributes, bytes)) in found {
        let (wanted_attributes, wanted_bytes) = &wanted[name];
        if attributes != wanted_attributes {
            return Some(format!("{name}: {attributes:?}, not {wanted_attributes:?}"));
        }
        if let Some(at) = bytes.iter().zip(wanted_bytes).position(|(a, b)| a != b) {
            return Some(format!("{name}: byte {at} is {}, not {}", bytes[at], wanted_bytes[at]));
        }
    }
    None
}

/// Random numbers of a seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 16) % end
    }
}

/// A folder in memory, and a pool in it.
pub struct Place {
    pub folder: tempfile::TempDir,
    pub pool: PathBuf,
}

impl Place {
    pub fn new() -> Place {
        let shm = Path::new("/dev/shm");
        let folder = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() }.unwrap();
        let pool = folder.path().join("pool.pmo");
        Place { folder, pool }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
