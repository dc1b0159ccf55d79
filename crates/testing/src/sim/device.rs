use super::config::Discard;
use super::errors::Asker;
use super::event::{EventKind, Extent};
use super::fault::{Fault, OpKind};
use super::medium::{Shared, SimMedium};
use super::pages::PAGE;
use crate::seed::derived;
use indelible_store::format::TABLE_ROOT;
use indelible_store::medium::{
    Capabilities, Extended, Fatal, LockKey, LockMode, Locks, Medium, MediumError, ReserveError, Transfers,
};
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

const NOISY_PAGES: u64 = 16;

impl SimMedium {
    fn plain(&self, kind: EventKind, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        let (mut shared, fault) = self.enter(OpKind::Write)?;
        self.check_change(offset, bytes.len() as u64)?;
        shared.heal(offset, bytes.len() as u64)?;
        let visible =
            fault.map_or(bytes.len() as u64, |fault| self.visible_part(&shared, fault, bytes.len() as u64));
        if visible > 0 {
            let extent = Extent::bytes(offset, &bytes[..visible as usize]);
            shared.log(self.holder, kind, vec![extent]);
        }
        fault.map_or(Ok(()), |fault| Err(fault.error().into()))
    }

    fn visible_part(&self, shared: &Shared, fault: Fault, len: u64) -> u64 {
        match fault {
            Fault::Io | Fault::NoSpace | Fault::Gone(_) => 0,
            Fault::KillLate | Fault::After => len,
            Fault::Short | Fault::Kill => derived(shared.seed, shared.recording.next()).u64(..=len),
        }
    }

    fn fail(&self, shared: &mut Shared, event: EventKind, fault: Fault) {
        let no_space = fault == Fault::NoSpace;
        let asker = if event == EventKind::BarrierFailed { Asker::Barrier } else { Asker::DurableWrite };
        shared.lose(self.holder, event, no_space);
        if derived(shared.seed, shared.recording.next()).bool() {
            // The file system lost more.
            shared.lose(self.holder, EventKind::WritebackFailed { offset: 0, len: shared.len }, no_space);
        }
        let _told = shared.report(self.holder, asker);
    }

    fn discarded(&self, shared: &Shared, offset: u64, len: u64) -> Vec<Extent> {
        let mut rng = derived(shared.seed, shared.recording.next());
        let effect = match self.config.discard {
            Discard::Any => {
                *rng.choice(&[Discard::Keep, Discard::Zero, Discard::Noise]).unwrap_or(&Discard::Noise)
            }
            fixed => fixed,
        };
        match effect {
            Discard::Keep => return Vec::new(),
            Discard::Zero => return vec![Extent::zeros(offset, len)],
            Discard::Noise | Discard::Any => {}
        }
        let end = offset + len;
        let (first, last) = (offset / PAGE, (end - 1) / PAGE);
        let mut pages = shared.volatile.present(offset, len);
        pages.extend((first..=last).take(NOISY_PAGES as usize));
        pages.extend((first..=last).rev().take(NOISY_PAGES as usize));
        pages.sort_unstable();
        pages.dedup();
        let noise = |page: u64| {
            let (from, to) = ((page * PAGE).max(offset), ((page + 1) * PAGE).min(end));
            let mut bytes = vec![0; (to - from) as usize];
            rng.fill(&mut bytes);
            Extent::bytes(from, &bytes)
        };
        pages.into_iter().map(noise).collect()
    }
}

impl Medium for SimMedium {
    fn len(&self) -> u64 {
        self.length()
    }

    fn read_only(&self) -> bool {
        !self.writable
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        let (mut shared, fault) = self.enter(OpKind::Read)?;
        self.check_bounds(offset, buf.len() as u64)?;
        if let Some(fault) = fault {
            return Err(fault.error());
        }
        shared.check_readable(offset, buf.len() as u64)?;
        if let Some(watch) = &mut shared.watch {
            watch.read(offset, buf.len() as u64);
        }
        shared.volatile.read(offset, buf);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.plain(EventKind::Write, offset, bytes)
    }

    fn stream(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        self.plain(EventKind::Stream, offset, bytes)
    }

    fn write_durable(&self, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        let (mut shared, fault) = self.enter(OpKind::WriteDurable)?;
        self.check_change(offset, bytes.len() as u64)?;
        shared.heal(offset, bytes.len() as u64)?;
        let len = bytes.len() as u64;
        let visible = match fault {
            None | Some(Fault::Io | Fault::Gone(_)) => len,
            Some(Fault::NoSpace) => {
                let mut rng = derived(shared.seed, shared.recording.next());
                [0, len, rng.u64(..=len)][rng.usize(..3)]
            }
            Some(fault) => self.visible_part(&shared, fault, len),
        };
        let extent = Extent::bytes(offset, &bytes[..visible as usize]);
        let write = shared.log(self.holder, EventKind::WriteDurable, vec![extent]);
        let own = EventKind::PersistFailed { offset, len };
        if let Some(fault) = fault {
            if !matches!(fault, Fault::Kill | Fault::KillLate) {
                self.fail(&mut shared, own, fault);
            }
            return Err(fault.error().into());
        }
        // Others see the bytes before they are durable, and may rely on them too early.
        let mut shared = self.let_others_run(shared);
        shared.report(self.holder, Asker::DurableWrite)?;
        shared.log(self.holder, EventKind::Persisted { write, offset, len: visible }, Vec::new());
        Ok(())
    }

    fn barrier(&self) -> Result<(), Fatal> {
        let (mut shared, fault) = self.enter(OpKind::Barrier)?;
        if let Some(fault) = fault {
            if !matches!(fault, Fault::Kill | Fault::KillLate) {
                self.fail(&mut shared, EventKind::BarrierFailed, fault);
            }
            return Err(fault.error().into());
        }
        let before = shared.recording.next();
        let mut shared = self.let_others_run(shared);
        shared.report(self.holder, Asker::Barrier)?;
        shared.log(self.holder, EventKind::Barrier { before }, Vec::new());
        Ok(())
    }

    fn check_writeback(&self) -> Result<(), Fatal> {
        let (mut shared, fault) = self.enter(OpKind::Verify)?;
        match fault {
            Some(fault) => Err(fault.error().into()),
            None => Ok(shared.report(self.holder, Asker::DurableWrite)?),
        }
    }

    fn check_barriers(&self) -> Result<(), Fatal> {
        let (mut shared, fault) = self.enter(OpKind::Verify)?;
        match fault {
            Some(fault) => Err(fault.error().into()),
            None => Ok(shared.report(self.holder, Asker::Barrier)?),
        }
    }

    fn unwritten(&self, offset: u64, len: u64) -> Result<Vec<Range<u64>>, MediumError> {
        let (shared, fault) = self.enter(OpKind::Verify)?;
        self.check_bounds(offset, len)?;
        match fault {
            Some(fault) => Err(fault.error()),
            None => Ok(shared.blocks.unwritten(offset, len)),
        }
    }

    fn zero(&self, offset: u64, len: u64) -> Result<(), Fatal> {
        let (mut shared, fault) = self.enter(OpKind::Zero)?;
        self.check_change(offset, len)?;
        shared.heal(offset, len)?;
        let visible = fault.map_or(len, |fault| self.visible_part(&shared, fault, len));
        if visible > 0 {
            shared.log(self.holder, EventKind::Zero, vec![Extent::zeros(offset, visible)]);
        }
        fault.map_or(Ok(()), |fault| Err(fault.error().into()))
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<(), ReserveError> {
        let (_shared, fault) = self.enter(OpKind::Reserve)?;
        self.check_change(offset, len)?;
        match fault {
            None => Ok(()),
            Some(Fault::NoSpace) => Err(ReserveError::NoSpace),
            Some(fault) => Err(fault.error().into()),
        }
    }

    fn extend(&self, len: u64) -> Result<Extended, ReserveError> {
        let (mut shared, fault) = self.enter(OpKind::Extend)?;
        if !self.writable {
            return Err(MediumError::ReadOnly.into());
        }
        let zeros_from = shared.len;
        if matches!(fault, None | Some(Fault::After | Fault::KillLate)) && len > zeros_from {
            shared.len = len;
            shared.log(self.holder, EventKind::Extended(len), Vec::new());
            self.know(len);
        }
        match fault {
            None => Ok(Extended { len: shared.len, zeros_from }),
            Some(Fault::NoSpace) => Err(ReserveError::NoSpace),
            Some(fault) => Err(fault.error().into()),
        }
    }

    fn discard(&self, offset: u64, len: u64) {
        let Ok((mut shared, fault)) = self.enter(OpKind::Discard) else {
            return;
        };
        if matches!(fault, Some(Fault::Kill | Fault::KillLate))
            || len == 0
            || self.check_change(offset, len).is_err()
        {
            return;
        }
        let extents = self.discarded(&shared, offset, len);
        shared.log(self.holder, EventKind::Discard, extents);
    }

    fn shared_word(&self, offset: u64) -> Option<&AtomicU64> {
        let place = offset.checked_sub(TABLE_ROOT)?;
        let shared = self.lock();
        let lives = shared.processes.get(&self.holder).is_some_and(|process| !process.dead);
        let has = lives && self.writable && !self.config.disk && offset.is_multiple_of(8);
        if has { self.words.get(place as usize / 8) } else { None }
    }

    fn capabilities(&self) -> Capabilities {
        let of = if self.config.disk { Capabilities::DISK } else { Capabilities::MEMORY };
        Capabilities { tear_unit: self.config.tear_unit.bytes(), ..of }
    }

    fn transfers(&self) -> Transfers {
        self.config.transfers
    }

    fn verify(&self) -> Result<(), MediumError> {
        let (shared, fault) = self.enter(OpKind::Verify)?;
        self.know(shared.len);
        fault.map_or(Ok(()), |fault| Err(fault.error()))
    }
}

impl Locks for SimMedium {
    fn try_lock(&self, key: LockKey, mode: LockMode) -> Result<bool, MediumError> {
        let (mut shared, fault) = self.enter(OpKind::Lock)?;
        if let Some(fault) = fault {
            return Err(fault.error());
        }
        // The kernel grants write locks only on files opened for writing.
        if mode == LockMode::Exclusive && !self.writable {
            return Err(MediumError::ReadOnly);
        }
        Ok(shared.locks.try_lock(self.holder, key, mode))
    }

    fn unlock(&self, key: LockKey) {
        self.lock().locks.unlock(self.holder, key);
        super::turns::pass();
    }

    fn probe(&self, key: LockKey) -> Result<Option<LockMode>, MediumError> {
        Ok(self.lock().locks.strongest_other(self.holder, key))
    }

    fn pause(&self, moment: Duration) {
        if !super::turns::pause() {
            std::thread::sleep(moment);
        }
    }
}
