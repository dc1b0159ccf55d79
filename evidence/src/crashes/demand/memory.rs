use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

const FOLDER: &str = "/dev/shm";

pub(super) fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

type Files = Vec<(PathBuf, Vec<u8>)>;

#[derive(Clone)]
pub(super) struct Memory {
    prefix: String,
    saved: Arc<Mutex<Option<Files>>>,
}

impl Memory {
    pub(super) fn of(pool: [u8; 16]) -> Memory {
        let id: String = pool.iter().map(|byte| format!("{byte:02x}")).collect();
        Memory { prefix: format!("indelible-{id}"), saved: Arc::default() }
    }

    fn files(&self) -> impl Iterator<Item = PathBuf> {
        let all = fs::read_dir(FOLDER).into_iter().flatten().flatten();
        let own = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(&self.prefix);
        all.filter(move |entry| own(&entry.file_name())).map(|entry| entry.path())
    }

    pub(super) fn save(&self) {
        let files = self.files().filter_map(|path| Some((path.clone(), fs::read(path).ok()?))).collect();
        lock(&self.saved).get_or_insert(files);
    }

    pub(super) fn restore(&self) -> Result<(), String> {
        for (path, bytes) in lock(&self.saved).take().unwrap_or_default() {
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            match made {
                Ok(mut file) => file.write_all(&bytes).map_err(|error| format!("{path:?}: {error}"))?,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("{path:?}: {error}")),
            }
        }
        Ok(())
    }

    pub(super) fn forget(&self) {
        lock(&self.saved).take();
    }

    pub(super) fn clear(&self) {
        self.forget();
        self.files().for_each(|path| drop(fs::remove_file(path)));
    }
}

pub(super) struct Addresses(usize);

const SLOTS: usize = 16;
static USED: Mutex<[bool; SLOTS]> = Mutex::new([false; SLOTS]);
static FREED: Condvar = Condvar::new();

impl Addresses {
    pub(super) fn take() -> Addresses {
        let mut used = lock(&USED);
        loop {
            if let Some(free) = used.iter().position(|used| !used) {
                used[free] = true;
                return Addresses(free);
            }
            used = FREED.wait(used).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn start(&self) -> u64 {
        0x5a00_0000_0000 + ((self.0 as u64) << 40)
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        lock(&USED)[self.0] = false;
        FREED.notify_one();
    }
}
