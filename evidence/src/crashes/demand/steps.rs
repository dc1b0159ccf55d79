use super::found::{CELLS, Found, PAGES, cell_of};
use super::memory::lock;
use super::process::{Life, Object, Seat};
use super::transaction::Line;
use super::world::{Holder, Verdict, World};
use super::{LARGE, TRANSACTIONAL};
use indelible::{Error, ErrorKind, transaction};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The attached ones of these that can be in one transaction.
fn together(life: &Life, objects: &[usize]) -> Vec<(usize, Arc<Object>)> {
    let named = |(object, attached): (&usize, &Arc<Object>)| {
        objects.contains(object).then(|| (*object, attached.clone()))
    };
    let mut parts: Vec<_> = life.objects.iter().filter_map(named).collect();
    let apart = parts.first().is_some_and(|(_, first)| first.apart);
    parts.retain(|(_, part)| part.apart == apart);
    parts
}

impl World {
    pub(super) fn attach(&self, seat: &mut Seat, object: usize, apart: bool) -> Verdict {
        let (apart, holder, process) = (apart && object == TRANSACTIONAL, self.holder(object), seat.number);
        let Some(life) = self.live(seat)? else { return Ok(()) };
        if life.objects.contains_key(&object) {
            return Ok(());
        }
        match Object::attach(&life.pool, object, apart) {
            Ok(attached) => {
                if holder.is_some_and(|holder| holder.process != process && !holder.left)
                    && !self.is_at_once()
                {
                    return Err("another process has it".into());
                }
                self.hold(object, Some(Holder { process, left: false }));
                life.objects.insert(object, Arc::new(attached));
                self.look(life, object)
            }
            Err(error) => {
                let held: &[_] = if holder.is_some() { &[ErrorKind::Held] } else { &[] };
                self.expect(life, &error, held)
            }
        }
    }

    fn look(&self, life: &Life, object: usize) -> Verdict {
        let attached = &life.objects[&object];
        let (all, cells) = (lock(&self.ledger).transactions.clone(), attached.cells());
        let values = transaction(&[attached.part()], |tx| {
            let mut values = BTreeMap::from([(0, tx.read(&cells[0])?)]);
            for (number, one) in all.iter().enumerate().skip(1) {
                let pages = if one.is_wide_in(object) { PAGES } else { 1 };
                for page in 0..pages {
                    let cell = page * CELLS + cell_of(number);
                    values.insert(cell, tx.read(&cells[cell])?);
                }
            }
            Ok::<_, Error>(values)
        });
        match values {
            Ok(values) => {
                let found = Found::look(object, &all, |cell| Ok(values[&cell]))?;
                let mut ledger = lock(&self.ledger);
                ledger.look(object, &found)?;
                ledger.object_durable(object);
                ledger.promise(&self.medium);
                Ok(())
            }
            Err(error) => self.expect(life, &error, &[]),
        }
    }

    pub(super) fn commit_to(
        &self,
        life: &Life,
        (objects, wide): (&[(usize, Arc<Object>)], bool),
        thread: u32,
        within: impl FnOnce(&mut indelible::Tx<'_>),
    ) -> Result<Option<usize>, String> {
        let Some((_, first)) = objects.first() else { return Ok(None) };
        let numbers: Vec<_> = objects.iter().map(|(object, _)| *object).collect();
        let line = Line { life: life.number, apart: first.apart };
        let Some(number) = lock(&self.ledger).begin(&numbers, wide, line, thread) else { return Ok(None) };
        self.promise();
        let parts: Vec<_> = objects.iter().map(|(_, object)| object.part()).collect();
        let mut within = Some(within);
        let done = transaction(&parts, |tx| {
            for (object, attached) in objects {
                let cells = attached.cells();
                let before = tx.read(&cells[0])?;
                debug_assert!(before < number as u64);
                tx.write(&cells[0], number as u64)?;
                let pages = if wide && *object == LARGE { PAGES } else { 1 };
                for page in 0..pages {
                    tx.write(&cells[page * CELLS + cell_of(number)], number as u64)?;
                }
            }
            if let Some(within) = within.take() {
                within(tx);
            }
            Ok::<_, Error>(())
        });
        match done {
            Ok(()) => {
                lock(&self.ledger).returned(number);
                lock(&self.counts).commits += 1;
                self.promise();
                Ok(Some(number))
            }
            Err(error) => self.expect(life, &error, &[]).map(|()| None),
        }
    }

    pub(super) fn commit(&self, seat: &mut Seat, objects: &[usize], wide: bool) -> Verdict {
        let thread = seat.thread;
        let Some(life) = seat.life.as_ref() else { return Ok(()) };
        self.commit_to(life, (&together(life, objects), wide), thread, |_| {}).map(drop)
    }

    pub(super) fn look_at(&self, seat: &Seat, objects: &[usize]) -> Verdict {
        let Some(life) = seat.life.as_ref() else { return Ok(()) };
        let attached = together(life, objects);
        if attached.is_empty() {
            return Ok(());
        }
        let parts: Vec<_> = attached.iter().map(|(_, object)| object.part()).collect();
        let read = transaction(&parts, |tx| {
            attached.iter().try_for_each(|(_, object)| tx.read(&object.cells()[0]).map(drop))
        });
        match read {
            Ok(()) => {
                // Reads are durable with the stronger class.
                if attached.iter().any(|(object, _)| *object == TRANSACTIONAL) {
                    let mut ledger = lock(&self.ledger);
                    attached.iter().for_each(|(object, _)| ledger.object_durable(*object));
                    ledger.promise(&self.medium);
                }
                Ok(())
            }
            Err(error) => self.expect(life, &error, &[]),
        }
    }

    pub(super) fn detach(&self, seat: &mut Seat, object: usize) -> Verdict {
        let process = seat.number;
        let Some(life) = seat.life.as_mut() else { return Ok(()) };
        let Some(attached) = life.objects.remove(&object) else { return Ok(()) };
        let attached = Arc::into_inner(attached).ok_or("an action has the object")?;
        match attached.detach() {
            Ok(()) => {
                self.hold(object, None);
                let mut ledger = lock(&self.ledger);
                ledger.object_durable(object);
                ledger.promise(&self.medium);
                Ok(())
            }
            Err(error) => {
                self.hold(object, Some(Holder { process, left: true }));
                self.expect(life, &error, &[])
            }
        }
    }

    pub(super) fn leave(&self, seat: &mut Seat, object: usize, within: usize) -> Verdict {
        let (process, thread) = (seat.number, seat.thread);
        let Some(life) = seat.life.as_mut() else { return Ok(()) };
        if object == within || !life.objects.contains_key(&within) {
            return Ok(());
        }
        let Some(leaving) = life.objects.remove(&object) else { return Ok(()) };
        let (other, apart) = (life.objects[&within].clone(), leaving.apart);
        self.hold(object, (!apart).then_some(Holder { process, left: true }));
        self.commit_to(life, (&[(within, other)], false), thread, |_| drop(leaving)).map(drop)
    }
}
