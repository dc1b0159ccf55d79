use super::*;

impl State {
    pub(super) fn go_on(&mut self, process: usize, broken: Broken) {
        let step = self.processes[process].step;
        match step {
            Step::Rest => {}
            Step::Judge { lane } => match self.judge(lane as usize, broken) {
                None => self.wrong = Some("a lane is refused"),
                Some((_, 0)) => self.then(process, Step::Redo { lane, log: self.judged(lane, broken) }),
                Some((_, end)) => {
                    if broken != Broken::VisibleIsDurable {
                        if !self.asks(process, broken) {
                            return;
                        }
                        let slots = &mut self.lanes[lane as usize].slots;
                        slots[..end as usize].iter_mut().for_each(Piece::persist);
                    }
                    self.then(process, Step::Redo { lane, log: self.judged(lane, broken) });
                }
            },
            Step::Redo { lane, log: (generation, end) } => {
                let redone = self.redo(lane, end, broken);
                self.recovered |= redone;
                let void = Step::TakeOver { lane, generation };
                let next = if redone { Step::MakeDurable { lane, generation } } else { void };
                self.then(process, next);
            }
            Step::MakeDurable { lane, generation } => {
                if broken != Broken::EarlyVoid {
                    if !self.asks(process, broken) {
                        return;
                    }
                    self.barrier();
                }
                self.then(process, Step::TakeOver { lane, generation });
            }
            Step::TakeOver { lane, generation } => {
                let (copy, generation) = self.take_over(lane as usize, generation, broken);
                let next = match copy {
                    None => Step::Bind { lane, generation },
                    Some(copy) => {
                        let headers = &mut self.lanes[lane as usize].headers;
                        if headers.iter().all(|copy| copy.seen.is_none()) {
                            headers[1 - copy as usize].write(Some(generation));
                        }
                        headers[copy as usize].write(Some(generation));
                        Step::Stated { lane, generation, copy }
                    }
                };
                self.then(process, next);
            }
            Step::Stated { lane, generation, copy } => {
                if self.asks(process, broken) {
                    self.lanes[lane as usize].headers[copy as usize].persist();
                    self.then(process, Step::Bind { lane, generation });
                }
            }
            Step::Bind { lane, generation } => {
                let is_held = self.processes[process].holds[lane as usize].is_some();
                self.publish(|table| {
                    if !is_held {
                        table.lanes[lane as usize] = (generation, table.next_binding);
                    }
                    (table.binding, table.lane) = (table.next_binding, Some(lane));
                    table.next_binding += 1;
                });
                self.then(process, Step::Bound { lane, generation });
            }
            Step::Bound { lane, generation } => {
                if broken != Broken::BoundLater {
                    if !self.asks(process, broken) {
                        return;
                    }
                    self.publish_durably();
                }
                let binding = self.table().binding;
                let own = &mut self.processes[process];
                let new = Hold { generation, sequence: 0, begun: false };
                own.holds[lane as usize].get_or_insert(new);
                (own.attached, own.step) = (Some((binding, lane)), Step::Rest);
                self.unlock(process);
                self.look();
            }
            Step::Written { value } => {
                if !self.asks(process, broken) {
                    return;
                }
                let Some((_, lane)) = self.processes[process].attached else { return };
                let hold = self.processes[process].holds[lane as usize].as_mut().expect("a lane");
                let slot = &mut self.lanes[lane as usize].slots[hold.sequence as usize];
                slot.write_back();
                hold.sequence += 1;
                self.acknowledged = self.acknowledged.max(value);
                self.then(process, Step::Apply { value });
            }
            Step::Apply { value } => {
                self.apply(value);
                self.then(process, Step::Rest);
            }
            Step::Voided => {
                if !self.asks(process, broken) {
                    return;
                }
                let Some((_, lane)) = self.processes[process].attached else { return };
                let hold = self.processes[process].holds[lane as usize].as_mut().expect("a lane");
                hold.generation += u8::from(broken != Broken::SameGeneration);
                (hold.sequence, hold.begun) = (0, true);
                let [first, second] = &mut self.lanes[lane as usize].headers;
                if broken != Broken::GenerationUnwritten {
                    first.write_back();
                }
                second.write(Some(hold.generation));
                self.then(process, Step::Rest);
            }
            Step::Left => {
                if self.asks(process, broken) {
                    self.publish_durably();
                    self.processes[process].attached = None;
                    self.unlock(process);
                    self.then(process, Step::Rest);
                }
            }
        }
    }

    pub(super) fn then(&mut self, process: usize, step: Step) {
        self.processes[process].step = step;
    }

    /// Judges once more: after a failed write, seen pages may be gone.
    pub(super) fn judged(&self, lane: u8, broken: Broken) -> (u8, u8) {
        self.judge(lane as usize, broken).unwrap_or_default()
    }

    /// Redoes the counting batches. `false`: none.
    pub(super) fn redo(&mut self, lane: u8, end: u8, broken: Broken) -> bool {
        let table = self.table();
        let mut redone = false;
        for nth in 0..end {
            let Slot::Batch { binding, value, .. } = self.lanes[lane as usize].slots[nth as usize].seen
            else {
                continue;
            };
            let counts = binding == table.binding || broken == Broken::BindingIgnored;
            if table.lane == Some(lane) && binding >= table.lanes[lane as usize].1 && counts {
                for word in &mut self.words {
                    if broken != Broken::RedoOnlyDifferent || word.seen != value {
                        word.write(value);
                    }
                }
                redone = true;
            }
        }
        redone
    }

    /// The generation by a lane's witnesses, and its number of batches; `None`: the lane is
    /// refused.
    pub(super) fn judge(&self, lane: usize, broken: Broken) -> Option<(u8, u8)> {
        let at_least = self.table().lanes[lane].0;
        let Lane { headers, slots } = &self.lanes[lane];
        let mut copies = headers.map(|copy| copy.seen);
        if copies[0] == Some(0) && copies[1] > Some(0) {
            copies[0] = None;
        }
        if broken == Broken::FirstCopyAlone {
            copies[1] = None;
        }
        let first = match slots[0].seen {
            Slot::Batch { generation, sequence: 0, .. } => Some(generation),
            _ => None,
        };
        let first = first.filter(|first| *first >= at_least && broken != Broken::FirstCopyAlone);
        let stated = copies.into_iter().flatten().max().map(|stated| stated.max(at_least));
        let log = first.max(stated)?;
        let counts = |nth: u8| match slots[nth as usize].seen {
            Slot::Batch { generation, sequence, .. } => {
                sequence == nth && (generation == log || broken == Broken::AnyGeneration)
            }
            _ => false,
        };
        let end = (0..ROOM).take_while(|nth| counts(*nth)).count() as u8;
        // A batch behind the end proves that the one at the end was durable.
        let damaged = (end + 1..ROOM).any(|nth| match slots[nth as usize].seen {
            Slot::Batch { generation, sequence, .. } => generation == log && sequence == nth,
            _ => false,
        });
        (!damaged).then_some((log, end))
    }

    /// The header copy that the next holder writes, and its generation, as in `LaneLog::take_over`.
    pub(super) fn take_over(&self, lane: usize, generation: u8, broken: Broken) -> (Option<u8>, u8) {
        if broken == Broken::GenerationUnstated {
            return (None, generation + 1);
        }
        match self.lanes[lane].headers.map(|copy| copy.seen) {
            [Some(0), Some(0)] => (None, generation + 1),
            [Some(first), Some(second)] if second == first + 1 => (None, generation + 1),
            [Some(first), Some(second)] if first > second && broken != Broken::SureCopyRisked => {
                (Some(0), generation + 2)
            }
            [Some(_), _] => (Some(1), generation + 2),
            [None, _] => (Some(0), generation + 2),
        }
    }

    /// The object's lane, else one of the process's own, or a free one. `None`: another process has
    /// it.
    pub(super) fn choose(&self, process: usize, broken: Broken) -> Option<u8> {
        let table = self.table();
        let has = |process: &Process, lane: usize| process.holds[lane].is_some();
        let others = |lane: usize| {
            let mut all = self.processes.iter().enumerate();
            broken != Broken::LaneUnclaimed && all.any(|(other, one)| other != process && has(one, lane))
        };
        let own = &self.processes[process];
        let stale = table.lane.filter(|lane| table.binding >= table.lanes[*lane as usize].1);
        if let Some(lane) = stale {
            return (has(own, lane as usize) || !others(lane as usize)).then_some(lane);
        }
        let mut lanes = 0..self.lanes.len();
        let kept = lanes.clone().find(|lane| has(own, *lane));
        kept.or_else(|| lanes.find(|lane| !others(*lane))).map(|lane| lane as u8)
    }
}
