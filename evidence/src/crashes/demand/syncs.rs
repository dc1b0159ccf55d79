use super::Place;
use super::memory::lock;
use super::process::{Life, Object, Seat};
use super::threads::at_the_end;
use super::transaction::Line;
use super::world::{Verdict, World};
use indelible::{Error, ErrorKind, Pending, transaction};
use indelible_store::{Selected, with_seed};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

type Answer = (indelible::Result<()>, Pending);

fn ask(object: &Object) -> Answer {
    (object.tx_sync(), object.pending())
}

impl World {
    pub(super) fn sync(&self, seat: &mut Seat, object: usize, from: Place) -> Verdict {
        let thread = seat.thread;
        let Some(life) = seat.life.as_ref() else { return Ok(()) };
        let Some(attached) = life.objects.get(&object).cloned() else { return Ok(()) };
        let line = Line { life: life.number, apart: attached.apart };
        match from {
            Place::Between => {
                let answer = ask(&attached);
                self.answered(life, line, answer, |world| {
                    lock(&world.ledger).thread_durable(line, thread);
                })
            }
            Place::OnCommit => self.in_action(life, (object, attached), thread, true),
            Place::OnAbort => self.in_action(life, (object, attached), thread, false),
            Place::ThreadEnd => self.at_end(life, object, &attached),
            Place::Elsewhere => {
                let (selected, seed) = (Selected::here(), self.seed ^ u64::from(self.thread()) << 40);
                let there = attached.clone();
                let asked = std::thread::spawn(move || selected.run(|| with_seed(seed, || ask(&there))));
                let answer = asked.join().map_err(|_| "tx_sync panicked")?;
                self.answered(life, line, answer, |world| lock(&world.ledger).all_durable(line))
            }
            Place::Within => {
                let mut inside = None;
                let done = transaction(&[attached.part()], |_| {
                    inside = Some(attached.tx_sync());
                    Ok::<_, Error>(())
                });
                match (done, inside) {
                    (Err(error), _) => self.expect(life, &error, &[]),
                    (_, Some(Err(error))) => self.expect(life, &error, &[ErrorKind::InTransaction]),
                    _ => Err("tx_sync returned within a transaction".into()),
                }
            }
        }
    }

    fn answered(
        &self,
        life: &Life,
        line: Line,
        (answer, pending): Answer,
        acknowledge: impl FnOnce(&World),
    ) -> Verdict {
        if life.medium.is_dead() {
            return Ok(());
        }
        match answer {
            Ok(()) => acknowledge(self),
            Err(error) => self.expect(life, &error, &[])?,
        }
        if pending == Pending::default() && !line.apart {
            lock(&self.ledger).all_durable(line);
        }
        self.promise();
        Ok(())
    }

    fn in_action(
        &self,
        life: &Life,
        (object, attached): (usize, Arc<Object>),
        thread: u32,
        commits: bool,
    ) -> Verdict {
        let line = Line { life: life.number, apart: attached.apart };
        let answer: Rc<RefCell<Option<Answer>>> = Rc::default();
        let (there, of_action) = (attached.clone(), answer.clone());
        let action = move || drop(of_action.replace(Some(ask(&there))));
        let mut number = None;
        if commits {
            number =
                self.commit_to(life, (&[(object, attached)], false), thread, |tx| tx.on_commit(action))?;
        } else {
            let aborted = transaction(&[attached.part()], |tx| {
                tx.on_abort(action.clone());
                tx.write(&attached.cells()[0], u64::MAX)?;
                Err::<(), _>(life.pool.stat("missing").map(drop).expect_err("there is none"))
            });
            if aborted.is_ok() {
                return Err("a transaction that failed has committed".into());
            }
        }
        let Some(answer) = answer.take() else { return Ok(()) };
        self.answered(life, line, answer, |world| {
            let mut ledger = lock(&world.ledger);
            ledger.thread_durable(line, thread);
            if let Some(number) = number {
                debug_assert!(ledger.now().must >> number & 1 == 1);
            }
        })
    }

    fn at_end(&self, life: &Life, object: usize, attached: &Arc<Object>) -> Verdict {
        let line = Line { life: life.number, apart: attached.apart };
        let (thread, selected) = (self.thread(), Selected::here());
        let seed = self.seed ^ u64::from(thread) << 40;
        let answer: Arc<Mutex<Option<Answer>>> = Arc::default();
        let committed = std::thread::scope(|scope| {
            let (there, said) = (attached.clone(), answer.clone());
            let work = move || {
                let ending = there.clone();
                at_the_end(move || {
                    let done = selected.run(|| with_seed(seed, || ask(&ending)));
                    *lock(&said) = Some(done);
                });
                self.commit_to(life, (&[(object, there)], false), thread, |_| {})
            };
            // The scope's end does not wait for destructors.
            scope.spawn(move || selected.run(|| with_seed(seed, work))).join()
        });
        committed.map_err(|_| "a thread panicked")??;
        let Some(answer) = lock(&answer).take() else { return Err("the thread's end did not come".into()) };
        self.answered(life, line, answer, |world| lock(&world.ledger).thread_durable(line, thread))
    }

    pub(super) fn psync(&self, seat: &mut Seat, object: usize) -> Verdict {
        let process = seat.number;
        let Some(life) = seat.life.as_ref() else { return Ok(()) };
        let Some(attached) = life.objects.get(&object) else { return Ok(()) };
        let line = Line { life: life.number, apart: attached.apart };
        let answer = (attached.psync(), attached.pending());
        let done = answer.0.is_ok();
        self.answered(life, line, answer, |world| lock(&world.ledger).all_durable(line))?;
        if done && !line.apart && !life.medium.is_dead() {
            for holder in lock(&self.holders).iter_mut() {
                *holder = holder.filter(|holder| !(holder.left && holder.process == process));
            }
        }
        Ok(())
    }

    pub(super) fn pending(&self, seat: &mut Seat, object: usize) -> Verdict {
        let Some(life) = seat.life.as_ref() else { return Ok(()) };
        let Some(attached) = life.objects.get(&object) else { return Ok(()) };
        let line = Line { life: life.number, apart: attached.apart };
        self.answered(life, line, (Ok(()), attached.pending()), |_| {})
    }
}
