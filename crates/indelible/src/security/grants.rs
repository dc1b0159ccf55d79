use super::layout::{RuleKind, Rules};
use super::{name_of, read};
use crate::error::{Cause, Error, Result, SecurityError};
use crate::far::Rights;
use crate::pool::{Pool, Seen};
use indelible_store::Mutant;
use indelible_store::error::StoreError;
use std::collections::{BTreeMap, HashMap};

const MOST: usize = 1024;

/// Without contexts everything is allowed.
pub(crate) struct Grants {
    names: Vec<String>,
    attached: Vec<usize>,
    contexts: Vec<Loaded>,
}

struct Loaded {
    id: [u8; 16],
    seen: Seen,
    default: Rights,
    rights: HashMap<[u8; 16], Stated>,
    from: Vec<(usize, Rights)>,
}

#[derive(Clone, Copy, Default)]
struct Stated {
    capability: Option<Rights>,
    mask: Option<Rights>,
}

impl Grants {
    /// # Errors
    /// A context cannot be read, as `NotFound`; `Unsuitable`: it is no security context, or it is
    /// delegated to itself.
    pub(crate) fn of<S: AsRef<str>>(pool: &Pool, names: &[S]) -> Result<Grants, Cause> {
        let mut ids = Vec::new();
        for name in names {
            let found = pool.inner().store.find(name.as_ref());
            ids.push(found.map_err(|error| unreadable(pool, name.as_ref(), error.into()))?.entry.id);
        }
        let names = names.iter().map(|name| name.as_ref().to_owned()).collect();
        load(pool, names, &ids)
    }

    /// A destroyed context gives nothing.
    pub(crate) fn newer(&self, pool: &Pool) -> Result<Option<Grants>, Cause> {
        for context in &self.contexts {
            let seen = Seen::now(pool, &context.id)?;
            if seen != context.seen || seen.written {
                let ids: Vec<[u8; 16]> =
                    self.attached.iter().map(|number| self.contexts[*number].id).collect();
                return load(pool, self.names.clone(), &ids).map(Some);
            }
        }
        Ok(None)
    }

    pub(super) fn has_read(&self, id: &[u8; 16]) -> bool {
        self.contexts.iter().any(|context| context.id == *id)
    }

    pub(crate) fn are_limited(&self) -> bool {
        !self.attached.is_empty()
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn shown(&self) -> String {
        self.names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn to(&self, object: &[u8; 16]) -> Rights {
        if !self.are_limited() || Mutant::ContextIgnored.is_on() {
            return Rights::ALL;
        }
        self.each_to(object).into_iter().fold(Rights::NONE, |all, rights| all | rights)
    }

    pub(crate) fn each_to(&self, object: &[u8; 16]) -> Vec<Rights> {
        let mut given: Vec<Rights> = Vec::with_capacity(self.contexts.len());
        for context in &self.contexts {
            let stated = context.rights.get(object).copied().unwrap_or_default();
            let own = stated.capability.unwrap_or(context.default);
            let all = context.from.iter().fold(own, |all, (from, most)| all | given[*from].and(*most));
            let mask = stated.mask.filter(|_| !Mutant::MaskIgnored.is_on());
            given.push(all.and(mask.unwrap_or(Rights::ALL)));
        }
        self.attached.iter().map(|number| given[*number]).collect()
    }
}

enum Progress {
    Begun,
    Read(usize),
}

struct Reader<'a> {
    pool: &'a Pool,
    progress: BTreeMap<[u8; 16], Progress>,
    contexts: Vec<Loaded>,
}

fn load(pool: &Pool, names: Vec<String>, ids: &[[u8; 16]]) -> Result<Grants, Cause> {
    let mut reader = Reader { pool, progress: BTreeMap::new(), contexts: Vec::new() };
    let attached = ids.iter().map(|id| reader.read(id)).collect::<Result<_, Cause>>()?;
    Ok(Grants { names, attached, contexts: reader.contexts })
}

impl Reader<'_> {
    fn read(&mut self, id: &[u8; 16]) -> Result<usize, Cause> {
        match self.progress.get(id) {
            Some(Progress::Read(number)) => return Ok(*number),
            Some(Progress::Begun) => {
                return Err(unreadable(self.pool, &name_of(id), SecurityError::Circle.into()));
            }
            None if self.progress.len() == MOST => {
                return Err(unreadable(self.pool, &name_of(id), SecurityError::TooMany(MOST).into()));
            }
            None => self.progress.insert(*id, Progress::Begun),
        };
        let seen = Seen::now(self.pool, id)?;
        let rules = match read(self.pool, &name_of(id)) {
            Ok(rules) => rules,
            Err(Cause::Store(StoreError::NotFound)) => Rules { default: None, rules: Vec::new() },
            Err(cause) => return Err(unreadable(self.pool, &name_of(id), cause)),
        };
        let mut of = Loaded {
            id: *id,
            seen,
            default: rules.default.unwrap_or(Rights::NONE),
            rights: HashMap::new(),
            from: Vec::new(),
        };
        for rule in rules.rules {
            let rights = rule.rights.unwrap_or(Rights::NONE);
            match rule.kind {
                RuleKind::Capability => of.rights.entry(rule.target).or_default().capability = Some(rights),
                RuleKind::Mask => of.rights.entry(rule.target).or_default().mask = Some(rights),
                RuleKind::Delegation => of.from.push((self.read(&rule.target)?, rights)),
            }
        }
        self.contexts.push(of);
        self.progress.insert(*id, Progress::Read(self.contexts.len() - 1));
        Ok(self.contexts.len() - 1)
    }
}

fn unreadable(pool: &Pool, name: &str, cause: Cause) -> Cause {
    let name = pool.stat(name).map_or_else(|_| name.to_owned(), |stat| stat.name);
    SecurityError::Unreadable(Error::new("read", cause).object(&name)).into()
}
