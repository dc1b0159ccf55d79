use crate::dirty::{Advice, Rung};
use crate::error::Cause;
use crate::fault::{self, PredictionDepth, PredictionParams};
use crate::media::{self, Access, Media, MediaError, MediaKind, MediumChoice, MediumModel};
use crate::sys::PAGE;
use indelible_store::error::{Holder, StoreError};
use indelible_store::format::LANES;
use indelible_store::medium::{LockKey, LockMode, Others};
use indelible_store::store::{FormatOptions, Window};
use std::path::Path;
use std::time::Duration;

const LEAST_MEMORY: u64 = 1 << 20;

/// Kind of medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MediumKind {
    /// Determined from the path.
    #[default]
    Auto,
    /// A file on a block device: system calls, fdatasync.
    File,
    /// A file treated as persistent memory: stores and fences.
    Memory,
    /// A file on a DAX file system (`MAP_SYNC`).
    Dax,
    /// A device-DAX character device.
    DevDax,
    /// A device given to [`PoolOptions::on_device`].
    Other,
}

impl MediumKind {
    /// The words of `--medium`.
    pub const WORDS: [(&'static str, MediumKind); 5] = [
        ("auto", MediumKind::Auto),
        ("file", MediumKind::File),
        ("memory", MediumKind::Memory),
        ("dax", MediumKind::Dax),
        ("devdax", MediumKind::DevDax),
    ];

    /// Its word for `--medium`.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, kind)| *kind == self).map_or("other", |(word, _)| word)
    }

    fn choice(self) -> MediumChoice {
        match self {
            MediumKind::Auto | MediumKind::Other => MediumChoice::Auto,
            MediumKind::File => MediumChoice::File,
            MediumKind::Memory => MediumChoice::Memory,
            MediumKind::Dax => MediumChoice::Dax,
            MediumKind::DevDax => MediumChoice::DevDax,
        }
    }
}

impl From<MediaKind> for MediumKind {
    fn from(kind: MediaKind) -> Self {
        match kind {
            MediaKind::File => MediumKind::File,
            MediaKind::Memory => MediumKind::Memory,
            MediaKind::Dax => MediumKind::Dax,
            MediaKind::DevDax => MediumKind::DevDax,
            MediaKind::Other => MediumKind::Other,
        }
    }
}

/// How stores to an attached object are tracked: the rungs of the ladder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tracking {
    /// The best rung the kernel offers.
    #[default]
    Auto,
    /// userfaultfd write protection that the kernel lifts by itself, and `PAGEMAP_SCAN` (Linux
    /// 6.7).
    WpAsync,
    /// As [`WpAsync`](Tracking::WpAsync), and the kernel's log of page faults names the changed
    /// pages: the cost of a psync follows them, at any size of the object. Needs
    /// `perf_event_open`. Stores of *other processes* (`process_vm_writev`, debuggers) may be found
    /// by a later psync only.
    FaultLog,
    /// Memory protection and SIGSEGV; everywhere.
    Mprotect,
    /// The program marks its stores through pointers
    /// ([`Object::mark_dirty`](crate::Object::mark_dirty)); the heap and its
    /// [`collections`](crate::collections) mark theirs. An unmarked store may be lost.
    Explicit,
}

impl Tracking {
    /// The words of `--tracking`.
    pub const WORDS: [(&'static str, Tracking); 5] = [
        ("auto", Tracking::Auto),
        ("wp-async", Tracking::WpAsync),
        ("fault-log", Tracking::FaultLog),
        ("mprotect", Tracking::Mprotect),
        ("explicit", Tracking::Explicit),
    ];

    pub(crate) fn rung(self) -> Option<Rung> {
        match self {
            Tracking::Auto => None,
            Tracking::WpAsync => Some(Rung::WpAsync),
            Tracking::FaultLog => Some(Rung::FaultLog),
            Tracking::Mprotect => Some(Rung::Mprotect),
            Tracking::Explicit => Some(Rung::Explicit),
        }
    }

    pub(crate) fn of(rung: Rung) -> Tracking {
        match rung {
            Rung::WpAsync => Tracking::WpAsync,
            Rung::FaultLog => Tracking::FaultLog,
            Rung::Mprotect => Tracking::Mprotect,
            Rung::Explicit => Tracking::Explicit,
        }
    }

    pub(crate) fn check(self) -> Result<(), Cause> {
        if self.is_available() {
            return Ok(());
        }
        Err(Cause::Unsupported(format!("this kernel does not offer tracking by {self:?}")))
    }

    /// Whether this machine offers it.
    #[must_use]
    pub fn is_available(self) -> bool {
        self.rung().is_none_or(Rung::available)
    }
}

/// Options of opening or formatting a pool.
#[derive(Clone, Debug, Default)]
pub struct PoolOptions {
    pub(super) medium: MediumKind,
    pub(super) tracking: Tracking,
    pub(super) read_only: bool,
    pub(crate) allow_remote: bool,
    pub(super) fault_in: bool,
    pub(super) label: String,
    pub(super) force: bool,
    pub(super) window: Option<Window>,
    pub(super) untrusted: bool,
    pub(super) inherit_reads: bool,
    pub(super) ahead_limit: Option<u64>,
    pub(super) model: Option<MediumModel>,
    pub(super) prediction: PredictionDepth,
    pub(super) measure_prediction: bool,
    pub(super) memory_limit: Option<u64>,
    pub(crate) advice: Advice,
    pub(crate) wait: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) rung: Option<Rung>,
    pub(super) advice: Advice,
    pub(super) fault_in: bool,
    pub(super) untrusted: bool,
    pub(super) inherit_reads: bool,
    pub(super) ahead_limit: usize,
    pub(super) model: Option<MediumModel>,
    pub(super) prediction: PredictionParams,
    pub(super) memory_limit: Option<usize>,
}

impl Settings {
    pub(super) fn fills(&self) -> bool {
        self.fault_in || self.model.is_some()
    }
}

impl PoolOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        PoolOptions::default()
    }

    /// Forces the kind of medium.
    #[must_use]
    pub fn medium(mut self, medium: MediumKind) -> Self {
        self.medium = medium;
        self
    }

    /// Forces the tracking of stores.
    #[must_use]
    pub fn tracking(mut self, tracking: Tracking) -> Self {
        self.tracking = tracking;
        self
    }

    /// Opens the pool's file for reading only, without locks. Attaching copies the object; one with
    /// a writer is [`Held`](crate::ErrorKind::Held).
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Accepts network and user-space file systems, whose locks may not exclude other machines.
    #[must_use]
    pub fn allow_remote(mut self, allow: bool) -> Self {
        self.allow_remote = allow;
        self
    }

    /// Fills objects' pages on demand by a thread even where the file could be mapped; by default
    /// only for sparse objects on tmpfs, if userfaultfd also sees faults of the kernel. A full file
    /// system is then an error of psync, instead of a SIGBUS; psyncs cost several times as much.
    /// With userfaultfd for user code only, [`prefault`](crate::Object::prefault) pages for system
    /// calls.
    #[must_use]
    pub fn fault_in(mut self, fault_in: bool) -> Self {
        self.fault_in = fault_in;
        self
    }

    /// Most bytes of an attached object filled on demand before their first touch, until it is
    /// detached. By default unlimited.
    #[must_use]
    pub fn ahead_limit(mut self, bytes: u64) -> Self {
        self.ahead_limit = Some(bytes);
        self
    }

    /// Pages of a sealed object decrypted ahead of sequential or strided access. By default more,
    /// the longer the sequence.
    #[must_use]
    pub fn prediction(mut self, depth: PredictionDepth) -> Self {
        self.prediction = depth;
        self
    }

    /// Most memory that the kernel cannot reclaim, for each attached object, at least 1 MiB. Beyond
    /// it, psyncs give pages that they made durable back to the kernel, which reads them from the
    /// file again; cuts do so only with a limit that is set, as a system call that stores to such a
    /// page then may fail with `EFAULT`. By default a quarter of the memory that the process may
    /// use. Changed pages that no psync has covered stay; so do all of an object with marked pages
    /// ([`Object::mark_dirty`](crate::Object::mark_dirty)), and of one that is filled rather than
    /// mapped ([`fault_in`](Self::fault_in)), or was snapshotted or moved to grow since it was
    /// attached.
    ///
    /// A sealed object counts all its pages in memory, and drops the pages decrypted first; by
    /// default it has no limit. For system calls, [`prefault`](crate::Object::prefault) dropped
    /// pages. Without userfaultfd, attaching a sealed object with a limit is an error.
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// Measures the [prediction](crate::Object::prediction) by discarding predicted pages: slow.
    #[must_use]
    pub fn measure_prediction(mut self, measure: bool) -> Self {
        self.measure_prediction = measure;
        self
    }

    /// Models a slower or different medium. For measurements; not part of the stable interface.
    #[doc(hidden)]
    #[must_use]
    pub fn modelled(mut self, model: MediumModel) -> Self {
        self.model = Some(model);
        self
    }

    pub(super) fn model(&self, media: Media) -> Media {
        match self.model {
            Some(model) => media.modelled(model),
            None => media,
        }
    }

    /// Distrusts the pool's file: heaps are read-only, or [verified](crate::Heap::verify) first.
    #[must_use]
    pub fn untrusted(mut self, untrusted: bool) -> Self {
        self.untrusted = untrusted;
        self
    }

    /// Keeps objects attached for reading readable in forked children, which keep writers away;
    /// their other calls fail with [`Forked`](crate::ErrorKind::Forked).
    /// [`ReadObject::is_inherited`](crate::ReadObject::is_inherited) tells whether it worked.
    #[must_use]
    pub fn inherit_reads(mut self, inherit: bool) -> Self {
        self.inherit_reads = inherit;
        self
    }

    /// How long to wait for locks: see [`Pool::set_wait`](crate::Pool::set_wait).
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// A name for a new pool, at most 128 bytes.
    #[must_use]
    pub fn label(mut self, label: &str) -> Self {
        label.clone_into(&mut self.label);
        self
    }

    /// Formats over an existing pool or file, whose contents are lost.
    #[must_use]
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// Addresses for the objects of a new pool: `len` bytes from `start`, both multiples of 2 MiB.
    /// By default far from this host's other pools.
    #[must_use]
    pub fn window(mut self, start: u64, len: u64) -> Self {
        self.window = Some(Window { start, len });
        self
    }

    pub(super) fn settings(&self) -> Result<Settings, Cause> {
        let rung = self.tracking.rung();
        self.tracking.check()?;
        if self.fault_in && fault::reach().is_none() {
            let why = "pages are filled on demand only with userfaultfd (Linux 6.6), which this process does not have";
            return Err(Cause::Unsupported(why.into()));
        }
        if let Some(bytes) = self.memory_limit.filter(|bytes| *bytes < LEAST_MEMORY) {
            let why = format!(
                "an object takes at least {LEAST_MEMORY} bytes of memory: the limit of {bytes} is too low"
            );
            return Err(Cause::Unsupported(why));
        }
        Ok(Settings {
            rung,
            advice: self.advice,
            fault_in: self.fault_in,
            untrusted: self.untrusted,
            inherit_reads: self.inherit_reads,
            ahead_limit: self.ahead_limit.map_or(usize::MAX, |bytes| bytes as usize / PAGE),
            model: self.model,
            memory_limit: self.memory_limit.map(|bytes| bytes as usize / PAGE),
            prediction: PredictionParams { depth: self.prediction, measured: self.measure_prediction },
        })
    }

    pub(crate) fn as_media(&self, access: Access) -> media::OpenOptions {
        media::OpenOptions { choice: self.medium.choice(), access, allow_remote: self.allow_remote }
    }

    pub(super) fn as_format(
        &self,
        (zeroed, spare): (bool, bool),
        known: impl FnOnce() -> Vec<Window>,
    ) -> FormatOptions {
        let known = if self.window.is_none() { known() } else { Vec::new() };
        FormatOptions {
            label: self.label.clone(),
            force: self.force,
            zeroed,
            spare,
            window: self.window,
            known,
        }
    }

    pub(super) fn create_media(&self, path: &Path, len: u64) -> Result<Media, Cause> {
        let exists = path.exists();
        if exists && self.force {
            self.refuse_in_use(path)?;
        }
        let replace = exists && (self.force || !path.is_file());
        let options =
            media::CreateOptions { choice: self.medium.choice(), replace, allow_remote: self.allow_remote };
        // A page more, for the copy of the superblock.
        Ok(media::create(path, len.saturating_add(PAGE as u64), &options)?)
    }

    fn refuse_in_use(&self, path: &Path) -> Result<(), Cause> {
        let media = match media::open(path, &self.as_media(Access::ReadWrite)) {
            // As mktemp makes it.
            Err(MediaError::Empty { .. }) => return Ok(()),
            opened => opened?,
        };
        let device = media.device();
        let is_free = device.try_lock(LockKey::Table, LockMode::Exclusive).map_err(StoreError::from)?;
        let mut held = (!is_free).then_some(LockKey::Table);
        for lane in (0..LANES).map(LockKey::Lane) {
            if device.probe(lane).map_err(StoreError::from)?.is_some() {
                held = Some(lane);
            }
        }
        let Some(key) = held else { return Ok(()) };
        let process = device.holder(key).map(|process| Holder::Process { process, writer: true });
        let holder = process.unwrap_or(Holder::Unknown);
        Err(StoreError::Held { holder, others: Others::default(), passing: false }.into())
    }
}

/// File systems, partition tables and volume managers show in the first or last MiB.
pub(super) fn refuse_data(path: &Path, media: &Media) -> Result<(), Cause> {
    let device = media.device();
    let mut bytes = vec![0; device.len().min(1 << 20) as usize];
    let mut blank = true;
    // Some keep a copy of their first bytes, or all data, at the end.
    for at in [0, device.len() - bytes.len() as u64] {
        device.read(at, &mut bytes).map_err(StoreError::from)?;
        blank &= bytes.iter().all(|byte| *byte == 0);
    }
    if blank {
        return Ok(());
    }
    let (path, choice) = (path.to_owned(), "a new pool");
    Err(media::MediaError::Unsuitable {
        path,
        choice,
        why: "it is not blank; format with force to overwrite it",
    }
    .into())
}
