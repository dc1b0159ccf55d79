use super::space::{Claim, Owner};
use super::{Cure, Found, Meter, Severity, Survey};
use crate::error::{Part, StoreError};
use crate::format::entry::{
    CLASS_PSYNC, Entry, FLAG_BASE, FLAG_CONTENT, FLAG_DELETED, FLAG_FOREIGN, FLAG_HIDDEN, FLAG_OVERLAY,
    FLAG_READ_ONLY, FLAG_TIED, FLAG_VOLATILE, NO_LANE, PROGRESS, Progress, SIZE, STATE_W,
};
use crate::format::root::TreeId;
use crate::format::{DATA, PAGE, TABLE_ROOT};
use crate::medium::{LockKey, LockMode, Locks, Medium};
use crate::table::{check_name, entry_hash, id_key};
use zerocopy::FromBytes;

#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Object {
    pub offset: u64,
    pub hash: u64,
    pub id: (u64, u64),
    pub primary: u64,
    pub pages: u64,
    pub address: u64,
    pub reserved: u64,
    pub binding: u64,
    pub created: u64,
    pub lane: u32,
    pub bound: bool,
    pub hidden: bool,
    pub deleted: bool,
    pub foreign: bool,
    pub is_base: bool,
    /// Users according to its entry.
    pub users: u64,
    /// The base's entry and the pages based on it; 0: none.
    pub base: u64,
    pub based: u64,
    /// First page and length of its bitmap.
    pub bitmap: (u64, u64),
    /// First page and length of its list of ties.
    pub ties: (u64, u64),
    pub tied: bool,
}

impl Object {
    pub(in crate::store) fn of(offset: u64, entry: &Entry, seed: u64) -> Object {
        Object {
            offset,
            hash: entry_hash(seed, entry),
            id: id_key(&entry.id),
            primary: entry.primary.get(),
            pages: entry.pages.get(),
            address: entry.address.get(),
            reserved: entry.reserved.get(),
            binding: entry.binding.get(),
            created: entry.created.get(),
            lane: entry.lane.get(),
            bound: entry.state == STATE_W && entry.lane.get() != NO_LANE,
            hidden: entry.has(FLAG_HIDDEN),
            deleted: entry.has(FLAG_DELETED),
            foreign: entry.has(FLAG_FOREIGN),
            is_base: entry.has(FLAG_BASE),
            users: entry.users.get(),
            base: if entry.has(FLAG_OVERLAY) { entry.base.get() } else { 0 },
            based: if entry.has(FLAG_OVERLAY) { entry.based.get() } else { 0 },
            bitmap: (entry.overlay.get(), entry.bitmap_pages()),
            ties: (entry.ties.get(), entry.ties_pages()),
            tied: false,
        }
    }

    pub(in crate::store) fn claims(&self) -> impl Iterator<Item = Claim> + use<> {
        let owner = Owner::Object(self.offset);
        let others = [self.bitmap, self.ties].into_iter().filter(|(_, pages)| *pages > 0);
        std::iter::once((self.primary, self.pages))
            .chain(others)
            .map(move |(first, pages)| Claim::new(first, pages, owner))
    }

    pub(in crate::store) fn addresses(&self) -> Option<Claim> {
        (!self.foreign).then(|| Claim::new(self.address, self.reserved, Owner::Object(self.offset)))
    }

    pub(in crate::store) fn is_left(&self) -> bool {
        self.hidden && (!self.is_base || self.users == 0) && !self.tied
    }

    pub(in crate::store) fn left_by(&self) -> &'static str {
        match (self.is_base, self.deleted) {
            (true, _) => "a base that nothing rests on",
            (false, true) => "deleted, and no process has it attached any more",
            (false, false) => "left by a resize that was cut short",
        }
    }
}

#[derive(Clone, Copy)]
struct Mention {
    offset: u64,
    hash: Option<u64>,
    id: Option<(u64, u64)>,
}

impl Survey {
    pub(super) fn read_objects(&mut self, meter: &mut Meter<'_>) {
        let mut page = (u64::MAX, [0; PAGE as usize]);
        if let Some(brief) = &mut self.brief {
            let virgin = self.root.map_or(0, |root| root.virgin.get().div_ceil(PAGE));
            let (from, len) = self.window;
            let pages = (DATA / PAGE, virgin.min(self.len / PAGE));
            brief.expect_objects(pages, (from, from.saturating_add(len)));
            let offsets = std::mem::take(&mut brief.offsets);
            for offset in &offsets {
                self.read_mentioned(Mention { offset: *offset, hash: None, id: None }, &mut page, meter);
            }
            if let Some(brief) = &mut self.brief {
                brief.offsets = offsets;
            }
        } else {
            for mention in self.mentions() {
                self.read_mentioned(mention, &mut page, meter);
            }
        }
        self.judge_names();
        self.judge_ids();
        self.judge_bindings_differ();
        self.judge_bases();
        self.judge_ties();
        self.judge_left();
        let known = self.trees[TreeId::Names as usize].complete;
        if let Some(root) = self.root.filter(|_| known) {
            let (counted, found) = (root.objects.get(), self.trees[TreeId::Names as usize].keys);
            if counted != found {
                let what = format!("the root counts {counted} objects, there are {found}");
                self.find(Severity::Error, Part::Root, TABLE_ROOT, Cure::Rebuild, what);
            }
        }
    }

    fn read_mentioned(
        &mut self,
        mention: Mention,
        page: &mut (u64, [u8; PAGE as usize]),
        meter: &mut Meter<'_>,
    ) {
        meter.step(1);
        let at = mention.offset / PAGE * PAGE;
        if !self.is_table_page(at) || !mention.offset.is_multiple_of(SIZE) {
            let what = "a tree leads to an entry here, where none can be";
            self.find(Severity::Error, Part::Entry, mention.offset, Cure::Rebuild, what);
            return;
        }
        if page.0 != at {
            page.0 = u64::MAX;
            if let Err(error) = self.medium.read(at, &mut page.1) {
                let what = format!("it cannot be read: {error}");
                self.find(Severity::Error, Part::Entry, mention.offset, Cure::Drop, what);
                self.damaged.push(mention.offset);
                return;
            }
            page.0 = at;
        }
        self.read_object(mention, &page.1[(mention.offset - at) as usize..]);
    }

    fn mentions(&mut self) -> Vec<Mention> {
        let mut all = Vec::new();
        for &((hash, low), offset) in &self.trees[TreeId::Names as usize].slots {
            // A key that contradicts its value cannot be found by name.
            let hash = (low == offset).then_some(hash);
            all.push(Mention { offset, hash, id: None });
        }
        for &(id, offset) in &self.trees[TreeId::Ids as usize].slots {
            all.push(Mention { offset, hash: None, id: Some(id) });
        }
        all.sort_unstable_by_key(|mention| (mention.offset, mention.hash, mention.id));
        let mut twice = Vec::new();
        all.dedup_by(|later, first| {
            if later.offset != first.offset {
                return false;
            }
            if (later.hash.is_some() && first.hash.is_some()) || (later.id.is_some() && first.id.is_some()) {
                twice.push(first.offset);
            }
            first.hash = first.hash.or(later.hash);
            first.id = first.id.or(later.id);
            true
        });
        for offset in twice {
            let what = "two names, or two IDs, lead to this entry";
            self.find(Severity::Error, Part::Entry, offset, Cure::Rebuild, what);
        }
        all
    }

    fn read_object(&mut self, mention: Mention, bytes: &[u8]) {
        let offset = mention.offset;
        let (Ok((entry, rest)), seed) = (Entry::read_from_prefix(bytes), self.seed) else { return };
        if !entry.verify(seed, offset, self.len) || entry.primary.get() < DATA / PAGE {
            let found = Found(Severity::Error, Part::Entry, offset, Cure::Drop);
            self.find_of(offset, found, "the entry is damaged");
            self.damaged.push(offset);
            return;
        }
        let object = Object::of(offset, &entry, seed);
        let is_kept = match &mut self.brief {
            Some(brief) => brief.object(&object),
            None => {
                self.compare(mention, &object);
                self.claims.extend(object.claims());
                true
            }
        };
        self.judge_entry(&object, &entry);
        if Progress::read_from_prefix(rest).is_ok_and(|(line, _)| is_damaged(&line, &entry, seed)) {
            self.progress.push(offset);
        }
        self.report.contents += u64::from(entry.has(FLAG_CONTENT) && !object.hidden);
        self.report.objects += 1;
        if is_kept {
            self.objects.push(object);
        }
    }

    fn compare(&mut self, mention: Mention, object: &Object) {
        if mention.hash != Some(object.hash) {
            let rebuild = Found(Severity::Error, Part::Entry, object.offset, Cure::Rebuild);
            let title = super::space::title(TreeId::Names);
            self.find_of(object.offset, rebuild, format!("the {title} does not lead to it"));
        }
        if mention.id != Some(object.id) {
            self.unidentified.push(object.offset);
        }
    }

    fn judge_entry(&mut self, object: &Object, entry: &Entry) {
        let offset = object.offset;
        let name = entry.name();
        if let Some(unknown) = entry.unknown() {
            self.later.get_or_insert(StoreError::ObjectFeature { unknown });
        }
        let fault = if !entry.has_pages_for_size() {
            Some("its size and the pages of its extent differ")
        } else if entry.undefined().is_some() {
            Some("it has a class, a retention model or flags that are not defined")
        } else if has_later_fields(entry) {
            Some("it has a shadow, keys, types, memory, or parts of a base or of ties, which are not defined")
        } else if entry.has(FLAG_VOLATILE) != (entry.volatile_boot != [0; 16]) {
            Some("it is volatile and names no boot, or the other way round")
        } else if entry.has(FLAG_CONTENT) && !entry.has(FLAG_READ_ONLY) {
            Some("its ID is that of its content, which can be changed")
        } else if object.deleted && !object.hidden {
            Some("it is deleted, and its name still leads to it")
        } else if !object.hidden && check_name(&name).is_err() {
            Some("its name is not a valid one")
        } else if entry.state != STATE_W && entry.lane.get() != NO_LANE {
            Some("it is detached and has a lane")
        } else {
            None
        };
        if let Some(what) = fault {
            self.find_of(offset, Found(Severity::Warning, Part::Entry, offset, Cure::None), what);
        }
        if self.root.is_some_and(|root| object.binding >= root.next_binding.get()) {
            let cure = if object.binding == u64::MAX { Cure::Manual } else { Cure::Rebuild };
            let found = Found(Severity::Error, Part::Root, TABLE_ROOT, cure);
            self.find_of(offset, found, "its binding number was not given out yet");
        }
    }

    fn judge_left(&mut self) {
        let left: Vec<Object> = self.objects.iter().filter(|object| object.is_left()).copied().collect();
        for object in left {
            if !self.is_held(LockKey::Object(object.offset)) {
                let found = Found(Severity::Note, Part::Entry, object.offset, Cure::Reap);
                self.find_of(object.offset, found, format!("{} ({} pages)", object.left_by(), object.pages));
            }
        }
    }

    fn judge_names(&mut self) {
        let mut hashes: Vec<_> =
            self.objects.iter().filter(|o| !o.hidden).map(|o| (o.hash, o.offset)).collect();
        hashes.sort_unstable();
        let mut doubled = Vec::new();
        for pair in hashes.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            if self.name_at(pair[0].1) == self.name_at(pair[1].1) {
                doubled.push(pair[1].1);
            }
        }
        for offset in doubled {
            let found = Found(Severity::Error, Part::Entry, offset, Cure::Manual);
            self.find_of(
                offset,
                found,
                "another object has the same name: only one of them can be reached by it",
            );
        }
    }

    fn judge_ids(&mut self) {
        let unidentified = std::mem::take(&mut self.unidentified);
        if unidentified.is_empty() {
            return;
        }
        let mut ids: Vec<_> = self.objects.iter().map(|object| (object.id, object.offset)).collect();
        ids.sort_unstable();
        for offset in unidentified {
            let id = self.object(offset).map_or((0, 0), |object| object.id);
            let from = ids.partition_point(|(other, _)| *other < id);
            let same = ids[from..].iter().take_while(|(other, _)| *other == id).count();
            let (cure, what) = if same > 1 {
                (Cure::Manual, "another object has its ID, and is found by it".to_owned())
            } else {
                let title = super::space::title(TreeId::Ids);
                (Cure::Rebuild, format!("the {title} does not lead to it"))
            };
            self.find_of(offset, Found(Severity::Error, Part::Entry, offset, cure), what);
        }
    }

    fn judge_bindings_differ(&mut self) {
        let mut bindings: Vec<_> =
            self.objects.iter().filter(|o| o.binding != 0).map(|o| (o.binding, o.offset)).collect();
        bindings.sort_unstable();
        let doubled: Vec<_> =
            bindings.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1).collect();
        for offset in doubled {
            let found = Found(Severity::Error, Part::Entry, offset, Cure::Manual);
            self.find_of(offset, found, "another object has the same binding number");
        }
    }

    pub(super) fn judge_progress(&mut self) {
        let suspects = std::mem::take(&mut self.progress);
        for offset in suspects {
            let waits = self.lanes.iter().any(|lane| lane.waiting.contains_key(&offset));
            let writing = self.held_as(LockKey::Object(offset)) == Some(LockMode::Exclusive);
            let found = |severity, cure| Found(severity, Part::Progress, offset + PROGRESS, cure);
            if waits {
                self.find_of(offset, found(Severity::Note, Cure::None), "torn; recovery writes it again");
            } else if writing {
                self.find_of(offset, found(Severity::Note, Cure::None), "it is being written");
            } else {
                self.progress.push(offset);
                self.find_of(offset, found(Severity::Error, Cure::Rewrite), "the progress line is damaged");
            }
        }
    }

    /// If unknown, exclusive.
    pub(super) fn held_as(&self, key: LockKey) -> Option<LockMode> {
        self.medium.probe(key).unwrap_or(Some(LockMode::Exclusive))
    }

    pub(super) fn is_held(&self, key: LockKey) -> bool {
        self.held_as(key).is_some()
    }
}

/// Whether a reserved field is set.
fn has_later_fields(entry: &Entry) -> bool {
    let of_base = [entry.base, entry.overlay, entry.based].iter().any(|field| field.get() != 0);
    let of_ties = [entry.ties, entry.tie_count, entry.ties_sum].iter().any(|field| field.get() != 0);
    let pages = [entry.shadow, entry.types, entry.reserved3];
    pages.iter().any(|field| field.get() != 0)
        || of_ties && !entry.has(FLAG_TIED)
        || of_base && !entry.has(FLAG_OVERLAY)
        || entry.users.get() != 0 && !entry.has(FLAG_BASE)
        || entry.memory.get() != 0 && entry.class == CLASS_PSYNC
}

pub(in crate::store) fn is_damaged(line: &Progress, entry: &Entry, seed: u64) -> bool {
    line.of(&entry.id, seed).is_none()
}
