use super::*;

impl State {
    pub(super) fn go_on(&mut self, process: usize, broken: Broken) {
        let own = self.processes[process].clone();
        let then = match own.doing {
            Doing::Nothing => Doing::Nothing,
            Doing::Made(object) => {
                let group = own.group.expect("a group");
                match broken {
                    Broken::BoundFirst => self.make_parts(process, object, broken),
                    _ => self.pools[ORIGINAL].stated[object] = Some((group, self.boot)),
                }
                Doing::Bound(object)
            }
            Doing::Bound(object) => {
                let value = self.pools[ORIGINAL].values[object];
                if let Some(part) = self.part(own.group.expect("a group"), Of::Object(object)) {
                    (part.value, part.filled) = (value, true);
                }
                if value != self.newest(object) {
                    self.wrong = Some("an object is attached without a commit that happened");
                }
                self.processes[process].views[object] = View::In { marked: false };
                Doing::Nothing
            }
            Doing::Forgotten(object) => {
                match broken {
                    Broken::RemovedFirst => self.pools[ORIGINAL].stated[object] = None,
                    _ => self.remove(own.group.expect("a group"), Of::Object(object)),
                }
                Doing::Nothing
            }
            Doing::Recovering { pool, group, members, next } => {
                self.recover_on(process, pool, group, members, next, broken)
            }
            Doing::Judged { pool, group, of } => {
                let may = broken == Broken::JudgedUnlocked || self.is_leftover(pool, group, broken);
                if may && self.part(group, of).is_some_and(|part| part.owner.is_none()) {
                    self.swept = true;
                    self.remove(group, of);
                }
                Doing::Nothing
            }
        };
        self.processes[process].doing = then;
    }

    pub(super) fn is_leftover(&self, pool: usize, group: u8, broken: Broken) -> bool {
        // The memory of this model is the original's.
        let is_own = pool == ORIGINAL || broken == Broken::SweptByCopy;
        is_own && !self.is_stated(pool, group, broken)
    }

    pub(super) fn make_parts(&mut self, process: usize, object: usize, broken: Broken) {
        let group = self.processes[process].group.expect("a group");
        if self.part(group, Of::Head).is_none() {
            self.make(group, Of::Head, process, broken);
        }
        self.make(group, Of::Object(object), process, broken);
    }

    pub(super) fn recover(
        &mut self,
        process: usize,
        pool: usize,
        group: u8,
        broken: Broken,
    ) -> Option<Doing> {
        if pool != ORIGINAL && broken != Broken::RecoveredByCopy {
            return None;
        }
        let members = [0, 1].map(|object| self.stated(pool, object, broken) == Some(group));
        let is_one = |part: &Part| match part.of {
            Of::Head => true,
            Of::Object(object) => members[object],
        };
        let parts = self.parts.iter().filter(|part| part.group == group && is_one(part));
        let used = parts.clone().any(|part| part.owner.is_some()) && broken != Broken::RecoveredUnlocked;
        let expected = 1 + members.iter().filter(|member| **member).count();
        if parts.count() < expected || used {
            return None;
        }
        let head = self.part(group, Of::Head)?;
        let log = head.log.filter(|_| broken != Broken::LogForgotten);
        let changed = log.map(|number| self.commits[number as usize - 1].changed);
        for part in self.parts.iter_mut().filter(|part| part.group == group && is_one(part)) {
            part.owner = Some(process);
            if let (Of::Object(object), Some(number)) = (part.of, log)
                && changed.is_some_and(|changed| changed[object])
            {
                part.value = number;
            }
        }
        Some(Doing::Recovering { pool, group, members, next: 0 })
    }

    /// The steps of a recovery: publish, update the entries, remove memory, remove the head.
    pub(super) fn recover_on(
        &mut self,
        process: usize,
        pool: usize,
        group: u8,
        members: [bool; OBJECTS],
        next: u8,
        broken: Broken,
    ) -> Doing {
        const LAST: u8 = 2 + 2 * OBJECTS as u8;
        let early = broken == Broken::RemovedEarly;
        let publish = |state: &mut State, object: usize| {
            let counts = |part: &&mut Part| part.filled || broken == Broken::UnfilledCounts;
            let value = state.part(group, Of::Object(object)).filter(counts).map(|part| part.value);
            if let (Some(value), true) = (value, members[object]) {
                state.pools[pool].values[object] = value;
            }
        };
        match next {
            0 if broken == Broken::RecoveredEach => publish(self, 0),
            0 => (0..OBJECTS).for_each(|object| publish(self, object)),
            1 if broken == Broken::RecoveredEach => publish(self, 1),
            1 => {}
            2..LAST => {
                let nth = usize::from(next) - 2;
                let object = nth % OBJECTS;
                match (nth < OBJECTS) != early {
                    _ if !members[object] => {}
                    true => self.pools[pool].stated[object] = None,
                    false => self.remove(group, Of::Object(object)),
                }
            }
            _ => {
                if !self.is_stated(pool, group, broken) {
                    self.remove(group, Of::Head);
                }
                self.parts.iter_mut().filter(|part| part.owner == Some(process)).for_each(|part| {
                    part.owner = part.owner.filter(|_| part.group != group);
                });
                self.recovered |= pool == ORIGINAL;
                return Doing::Nothing;
            }
        }
        Doing::Recovering { pool, group, members, next: next + 1 }
    }

    pub(super) fn commit(&mut self, process: usize, broken: Broken) {
        let number = self.commits.len() as u8 + 1;
        let own = &mut self.processes[process];
        let group = own.group.expect("a group");
        let changed = own.views.map(|view| matches!(view, View::In { .. }));
        for object in (0..OBJECTS).filter(|object| changed[*object]) {
            own.mark(object, true);
        }
        own.commit = Some((number, 0));
        self.commits.push(Commit { group, changed, acknowledged: false });
        let log = !matches!(broken, Broken::LogUnvalidated | Broken::LogClearedEarly);
        if let Some(head) = self.part(group, Of::Head) {
            head.log = log.then_some(number);
        }
    }

    /// Stores to the next object; after the last one the log ends.
    pub(super) fn store(&mut self, process: usize) {
        let own = &mut self.processes[process];
        let (number, next) = own.commit.expect("a commit");
        let group = own.group.expect("a group");
        let changed = self.commits[usize::from(number) - 1].changed;
        match (usize::from(next)..OBJECTS).find(|object| changed[*object]) {
            Some(object) => {
                self.processes[process].commit = Some((number, object as u8 + 1));
                if let Some(part) = self.part(group, Of::Object(object)) {
                    part.value = number;
                }
            }
            None => {
                let own = &mut self.processes[process];
                (own.commit, own.last) = (None, number);
                if let Some(head) = self.part(group, Of::Head) {
                    head.log = None;
                }
            }
        }
    }

    /// With published commits: the mark in its entry goes, then its memory.
    pub(super) fn leave(&mut self, process: usize, object: usize, broken: Broken) {
        self.processes[process].views[object] = View::Out;
        self.processes[process].doing = Doing::Forgotten(object);
        let group = self.processes[process].group.expect("a group");
        match broken {
            Broken::RemovedFirst => self.remove(group, Of::Object(object)),
            _ => self.pools[ORIGINAL].stated[object] = None,
        }
    }

    /// With unpublished commits: its memory stays, unknown to the space.
    pub(super) fn give_up(&mut self, process: usize, object: usize) {
        self.processes[process].views[object] = View::Out;
        let group = self.processes[process].group.expect("a group");
        if let Some(part) = self.part(group, Of::Object(object)) {
            part.owner = None;
        }
    }
}
