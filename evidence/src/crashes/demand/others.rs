use super::found::{Found, PAGES};
use super::ledger::Moment;
use super::memory::lock;
use super::process::{Life, Seat};
use super::world::{Copied, Filler, Verdict, World};
use super::{LARGE, OBJECTS, OnCopy, Step};
use indelible::{ErrorKind, PoolOptions};
use indelible_backup::{BackupError, Choice, RestoreOptions, backup_to, restore_stream};
use indelible_testing::SimMedium;
use indelible_testing::pool::Snapshot;
use indelible_testing::scenario::judge_by;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const LONGER: u64 = 1 << 20;
const LONGEST: u64 = 8 << 20;
const SNAPSHOTS: u64 = 6;
const FILLER: &str = "fill ";

/// Fillers are never written: their bytes prove nothing.
pub(super) fn is_no_filler(name: &str) -> bool {
    !name.starts_with(FILLER)
}

impl World {
    pub(super) fn other(&self, seat: &mut Seat, step: &Step) -> Verdict {
        let Some(life) = self.live(seat)? else { return Ok(()) };
        match step {
            Step::Read { object } => self.read(life, *object),
            Step::Recover => self.recover(life),
            Step::Collect => match life.pool.collect(&mut |_, _| {}) {
                Ok(_) => Ok(()),
                Err(error) => self.expect(life, &error, &[]),
            },
            Step::Snapshot { object } => self.snapshot(life, *object),
            Step::Backup => self.backup(life),
            Step::Resize { object, pages } => self.resize(life, *object, *pages),
            Step::Lengthen => self.lengthen(life),
            Step::Fill => self.fill(life),
            Step::Empty => self.empty(life),
            Step::CopyFile => {
                let (moment, bytes) = (lock(&self.ledger).now(), self.medium.to_bytes());
                let medium = SimMedium::from_bytes(&bytes, self.config);
                *lock(&self.copy) = Some(Arc::new(Copied { medium, moment }));
                Ok(())
            }
            Step::OnCopy(call) => self.on_copy(life, *call),
            _ => Ok(()),
        }
    }

    fn read(&self, life: &Life, object: usize) -> Verdict {
        let holder = self.holder(object);
        if life.objects.contains_key(&object) {
            return Ok(());
        }
        match life.pool.attach_read(OBJECTS[object]) {
            Ok(_) if self.is_at_once() => Ok(()),
            Ok(_) if holder.is_some_and(|holder| !holder.left) => Err("another process has it".into()),
            Ok(reader) => {
                let mut ledger = lock(&self.ledger);
                let found = Found::in_bytes(object, &ledger.transactions, reader.as_slice())?;
                ledger.look(object, &found)?;
                if !self.faulted.load(Ordering::Relaxed) {
                    ledger.object_durable(object);
                }
                ledger.promise(&self.medium);
                Ok(())
            }
            Err(error) => {
                let held: &[_] = if holder.is_some() { &[ErrorKind::Held] } else { &[] };
                self.expect(life, &error, held)
            }
        }
    }

    fn recover(&self, life: &Life) -> Verdict {
        match life.pool.recover() {
            Ok(_) if self.is_at_once() || life.medium.is_dead() => Ok(()),
            Ok(_) => {
                let living = lock(&self.living).clone();
                lock(&self.ledger).lives_durable(|life| !living.contains(&life));
                self.promise();
                Ok(())
            }
            Err(error) => self.expect(life, &error, &[]),
        }
    }

    fn snapshot(&self, life: &Life, object: usize) -> Verdict {
        let nth = self.names.fetch_add(1, Ordering::Relaxed);
        if nth >= SNAPSHOTS {
            return Ok(());
        }
        let (name, before) = (format!("kept {nth}"), lock(&self.ledger).now().must);
        match life.pool.snapshot(OBJECTS[object], &name, b"") {
            Ok(()) => {
                lock(&self.ledger).kept(name, object, before);
                Ok(())
            }
            Err(error) => self.expect(life, &error, &[]),
        }
    }

    fn backup(&self, life: &Life) -> Verdict {
        let (before, mut bytes) = (lock(&self.ledger).now().must, Vec::new());
        let choice = Choice { snapshots: false, ..Choice::default() };
        match backup_to(&life.pool, &choice, &mut bytes, &mut |_, _| {}) {
            Ok(_) => {}
            Err(BackupError::Pool(error)) => return self.expect(life, &error, &[]),
            Err(_) if self.is_at_once() || self.faulted.load(Ordering::Relaxed) || life.medium.is_dead() => {
                return Ok(());
            }
            Err(_) if !lock(&self.filled).is_empty() => return Ok(()),
            Err(error) => return Err(format!("backup: {error}")),
        }
        let restored = || -> Result<SimMedium, Box<dyn std::error::Error>> {
            let folder = tempfile::tempdir_in("/dev/shm")?;
            let path = folder.path().join("restored");
            let (how, options) = (RestoreOptions::default(), PoolOptions::new());
            restore_stream(&mut &bytes[..], Path::new("the stream"), &path, &how, &options, &mut |_, _| {})?;
            Ok(SimMedium::from_bytes(&std::fs::read(path)?, self.config))
        };
        let medium = restored().map_err(|error| format!("restore: {error}"))?;
        let ledger = lock(&self.ledger);
        let moment = Moment { must: before, may: ledger.now().may };
        let judged = |found: &Snapshot| ledger.judge(&moment, &ledger.found_in(found)?);
        judge_by(&medium, judged).map(drop).map_err(|cause| format!("in the backup: {cause}"))
    }

    fn resize(&self, life: &Life, object: usize, pages: u64) -> Verdict {
        let pages = if object == LARGE { pages + PAGES as u64 } else { pages };
        let holder = self.holder(object);
        match life.pool.resize(OBJECTS[object], pages.max(1) * 4096, b"") {
            Ok(()) if holder.is_some_and(|holder| !holder.left) && !self.is_at_once() => {
                Err("a process has it".into())
            }
            Ok(()) => Ok(()),
            Err(error) => {
                let held: &[_] = if holder.is_some() { &[ErrorKind::Held] } else { &[] };
                self.expect(life, &error, held)
            }
        }
    }

    fn lengthen(&self, life: &Life) -> Verdict {
        let now = match life.pool.info() {
            Ok(info) => info.length,
            Err(error) => return self.expect(life, &error, &[]),
        };
        if now >= LONGEST {
            return Ok(());
        }
        match life.pool.grow(now + LONGER) {
            Ok(_) => Ok(()),
            Err(error) => {
                let others: &[_] = if self.is_at_once() { &[ErrorKind::BadSize] } else { &[] };
                self.expect(life, &error, others)
            }
        }
    }

    fn fill(&self, life: &Life) -> Verdict {
        let mut size = 2_u64 << 20;
        while size >= 4096 {
            let name = format!("{FILLER}{}", self.names.fetch_add(1, Ordering::Relaxed) + SNAPSHOTS);
            match life.pool.create(&name, size) {
                Ok(()) => lock(&self.filled).push(Filler { name, in_doubt: false }),
                Err(error) => {
                    self.expect(life, &error, &[ErrorKind::NoRoom, ErrorKind::NoSpace])?;
                    if life.medium.is_dead() {
                        lock(&self.filled).push(Filler { name, in_doubt: true });
                    }
                    size /= 2;
                }
            }
            if life.medium.is_dead() {
                break;
            }
        }
        Ok(())
    }

    fn empty(&self, life: &Life) -> Verdict {
        let filled = std::mem::take(&mut *lock(&self.filled));
        for Filler { name, in_doubt } in filled {
            if let Err(error) = life.pool.destroy(&name) {
                self.expect(life, &error, if in_doubt { &[ErrorKind::NotFound] } else { &[] })?;
                if error.kind() != ErrorKind::NotFound {
                    let in_doubt = in_doubt || life.medium.is_dead();
                    lock(&self.filled).push(Filler { name, in_doubt });
                }
            }
        }
        Ok(())
    }

    fn on_copy(&self, life: &Life, call: OnCopy) -> Verdict {
        let Some(copy) = lock(&self.copy).clone() else { return Ok(()) };
        let pool =
            self.open(Arc::new(copy.medium.handle()), true).map_err(|error| format!("copy: {error}"))?;
        // Commits in memory are the original's, and other programs have the addresses.
        let refused = [ErrorKind::Gone, ErrorKind::AddressTaken, ErrorKind::Held];
        match call {
            OnCopy::Collect => pool.collect(&mut |_, _| {}).map(drop),
            OnCopy::Recover => pool.recover().map(drop),
            OnCopy::Read => return self.read_copy(life, &copy, &pool, &refused),
        }
        .or_else(|error| self.expect(life, &error, &refused))
    }

    fn read_copy(
        &self,
        life: &Life,
        copy: &Copied,
        pool: &indelible::Pool,
        refused: &[ErrorKind],
    ) -> Verdict {
        let mut all = Vec::new();
        for (object, name) in OBJECTS.iter().enumerate() {
            all.push(match pool.attach_read(name) {
                Ok(reader) => {
                    let ledger = lock(&self.ledger);
                    Some(Found::in_bytes(object, &ledger.transactions, reader.as_slice())?)
                }
                Err(error) => {
                    self.expect(life, &error, refused)?;
                    None
                }
            });
        }
        lock(&self.ledger).judge(&copy.moment, &all).map_err(|cause| format!("in the copy: {cause}"))
    }
}
