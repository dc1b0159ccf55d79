use super::content::{Content, PIECE};
use super::random::gamma;
use super::{Meter, Personality, Step};
use crate::Result;
use crate::file_backends::{File, FileBackend, Purpose};
use crate::pattern::Random;
use std::sync::Mutex;
use std::time::Instant;

struct Entry {
    name: String,
    size: usize,
    key: u64,
    len: usize,
}

pub struct Actor {
    personality: &'static Personality,
    entries: Vec<Entry>,
    present: Vec<usize>,
    absent: Vec<usize>,
    random: Random,
    content: Content,
    buffer: Vec<u8>,
    pub meter: Meter,
}

pub struct Journal<'v> {
    file: Mutex<(Box<dyn File + 'v>, usize)>,
}

const LOG: &str = "log";
const LOG_KEY: u64 = 1;
const MOST: usize = 64 << 20;
const LOG_MOST: usize = 1 << 30;

impl<'v> Journal<'v> {
    pub fn create(backend: &'v dyn FileBackend, len: usize) -> Result<Self> {
        backend.folder("")?;
        let mut file = backend.create(LOG, len, LOG_MOST)?;
        file.append(Content::new().of(LOG_KEY, 0, len))?;
        Ok(Journal { file: Mutex::new((file, len)) })
    }

    fn append(&self, content: &Content, len: usize) -> Result<()> {
        let mut guard = self.file.lock().map_err(|_| "a thread panicked")?;
        let (file, at) = &mut *guard;
        file.append(content.of(LOG_KEY, *at, len))?;
        *at += len;
        Ok(())
    }

    pub fn verify(self, backend: &dyn FileBackend) -> Result<()> {
        let (file, len) = self.file.into_inner().map_err(|_| "a thread panicked")?;
        file.close()?;
        read(backend, LOG, &Content::new(), LOG_KEY, len, &mut Vec::new())
    }
}

fn read(
    backend: &dyn FileBackend,
    name: &str,
    content: &Content,
    key: u64,
    len: usize,
    buffer: &mut Vec<u8>,
) -> Result<()> {
    let mut file = backend.open(name, Purpose::Read)?;
    file.read(buffer)?;
    if buffer.len() != len {
        return Err(format!("{name}: {} bytes where {len} were written", buffer.len()).into());
    }
    content.check(key, buffer)?;
    file.close()
}

fn path(thread: usize, mut number: usize, width: usize) -> String {
    let mut path = format!("f{:04}", number % width);
    while number >= width {
        number /= width;
        path = format!("d{:02}/{path}", number % width);
    }
    format!("t{thread}/{path}")
}

impl Actor {
    pub fn new(personality: &'static Personality, thread: usize, threads: usize) -> Self {
        let mut random = Random::new(thread as u64);
        let count = personality.files() / threads;
        let entry = |number| Entry {
            name: path(thread, number, personality.width),
            size: gamma(&mut random, personality.mean),
            key: 0,
            len: 0,
        };
        let entries: Vec<Entry> = (0..count).map(entry).collect();
        let mut numbers: Vec<usize> = (0..count).collect();
        random.shuffle(&mut numbers);
        let absent = numbers.split_off(count * personality.filled / 100);
        Actor {
            personality,
            entries,
            present: numbers,
            absent,
            random,
            content: Content::new(),
            buffer: Vec::new(),
            meter: Meter::default(),
        }
    }

    pub fn populate(&mut self, backend: &dyn FileBackend) -> Result<()> {
        for entry in &self.entries {
            backend.folder(entry.name.rsplit_once('/').map_or("", |(folder, _)| folder))?;
        }
        for number in self.present.clone() {
            let size = self.entries[number].size;
            let mut file = self.create(backend, number, size)?;
            self.append(&mut *file, number, size)?;
            file.close()?;
        }
        Ok(())
    }

    pub fn round(&mut self, backend: &dyn FileBackend, log: Option<&Journal<'_>>) -> Result<()> {
        let mut open: Option<(Box<dyn File + '_>, usize)> = None;
        let mut first = 0;
        for step in self.personality.steps {
            let at = self.random.below(self.present.len() as u64) as usize;
            let any = *self.present.get(at).ok_or("no file is left")?;
            let size = 1 + self.random.below(self.personality.append as u64) as usize;
            let start = Instant::now();
            match (*step, &mut open) {
                (Step::Create, _) => {
                    let number =
                        self.absent.swap_remove(self.random.below(self.absent.len() as u64) as usize);
                    let whole = self.personality.steps.contains(&Step::WriteWhole);
                    first = if whole { self.entries[number].size } else { size };
                    open = Some((self.create(backend, number, first)?, number));
                    self.present.push(number);
                }
                (Step::WriteWhole, Some((file, number))) => self.append(&mut **file, *number, first)?,
                (Step::Append, Some((file, number))) => {
                    let size = if self.entries[*number].len == 0 { first } else { size };
                    self.append(&mut **file, *number, size)?;
                }
                (Step::AppendToLog, _) => log.ok_or("no log")?.append(&self.content, size)?,
                (Step::Open(purpose), _) => {
                    open = Some((backend.open(&self.entries[any].name, purpose)?, any))
                }
                (Step::Read, Some((file, number))) => {
                    file.read(&mut self.buffer)?;
                    self.check(*number)?;
                }
                (Step::Close, _) => open.take().ok_or("nothing to close")?.0.close()?,
                (Step::Delete, _) => {
                    backend.delete(&self.entries[any].name)?;
                    self.absent.push(self.present.swap_remove(at));
                }
                (Step::Stat, _) => {
                    if backend.size(&self.entries[any].name)? != self.entries[any].len as u64 {
                        return Err(format!("{}: another size", self.entries[any].name).into());
                    }
                }
                (step, None) => return Err(format!("{step:?} without a file").into()),
            }
            self.meter.add(*step, start.elapsed());
        }
        Ok(())
    }

    pub fn verify(&mut self, backend: &dyn FileBackend) -> Result<()> {
        for number in &self.present {
            let entry = &self.entries[*number];
            read(backend, &entry.name, &self.content, entry.key, entry.len, &mut self.buffer)?;
        }
        Ok(())
    }

    fn create<'v>(
        &mut self,
        backend: &'v dyn FileBackend,
        number: usize,
        len: usize,
    ) -> Result<Box<dyn File + 'v>> {
        let entry = &mut self.entries[number];
        (entry.key, entry.len) = (self.random.next(), 0);
        backend.create(&entry.name, len, MOST)
    }

    fn append(&mut self, file: &mut dyn File, number: usize, len: usize) -> Result<()> {
        let entry = &mut self.entries[number];
        let end = entry.len + len;
        while entry.len < end {
            let piece = (end - entry.len).min(PIECE);
            file.append(self.content.of(entry.key, entry.len, piece))?;
            entry.len += piece;
        }
        Ok(())
    }

    fn check(&self, number: usize) -> Result<()> {
        let entry = &self.entries[number];
        if self.buffer.len() != entry.len {
            let found = self.buffer.len();
            return Err(format!("{}: {found} bytes where {} were written", entry.name, entry.len).into());
        }
        self.content.check(entry.key, &self.buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Medium;
    use crate::file_backends;
    use crate::personalities::ALL;

    #[test]
    fn folders_are_as_wide_as_they_are_told() {
        assert_eq!(path(1, 7, 20), "t1/f0007");
        assert_eq!(path(0, 47, 20), "t0/d02/f0007");
        assert_eq!(path(0, 847, 20), "t0/d02/d02/f0007");
        assert_eq!(path(0, 847, 1_000_000), "t0/f0847");
    }

    #[test]
    fn everybody_keeps_every_personality_s_files() {
        let dir = std::env::temp_dir().join(format!("backends-{}", std::process::id()));
        for contestant in file_backends::all() {
            for personality in &ALL {
                let own = dir.join(contestant.name).join(personality.name);
                std::fs::create_dir_all(&own).unwrap();
                let place = file_backends::Place { medium: Medium::File, dir: &own, len: 512 << 20 };
                let backend = (contestant.open)(&place).unwrap();
                let log = personality.log.then(|| Journal::create(&*backend, 100).unwrap());
                let mut actor = Actor::new(personality, 0, 20);
                actor.populate(&*backend).unwrap();
                for _ in 0..5 {
                    actor.round(&*backend, log.as_ref()).unwrap();
                }
                actor.verify(&*backend).unwrap();
                if let Some(log) = log {
                    log.verify(&*backend).unwrap();
                }
                assert_eq!(actor.meter.operations(), 5 * personality.steps.len() as u64);
            }
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
