use crate::error::Part;
use std::fmt;

/// Per severity; the rest is counted.
const KEPT: usize = 10_000;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing is wrong.
    Note,
    /// A broken rule of the format, without loss or failure.
    Warning,
    /// Damage.
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::store) enum Cure {
    None,
    /// An attach or a repair recovers it.
    Recover,
    /// Rewrite a structure whose content is known.
    Rewrite,
    /// Rebuild the table from its entries.
    Rebuild,
    Reap,
    /// Correct a base's count of users.
    Count,
    /// Give up the object's ties.
    Untie,
    /// Give something up.
    Drop,
    /// No repair helps.
    Restore,
    Manual,
}

impl Cure {
    fn remedy(self) -> &'static str {
        match self {
            Cure::None => "nothing needs to be done",
            Cure::Recover => "the next attach recovers it, and so does repair",
            Cure::Rewrite => "repair rewrites it from intact structures",
            Cure::Rebuild => "repair builds the table's structures anew from its entries",
            Cure::Reap => "the next resize, snapshot or `pmo gc` removes it, and so does repair",
            Cure::Count => "repair counts them again",
            Cure::Untie => "`pmo untie` takes them back; repair drops them if it may drop what is damaged",
            Cure::Manual => "copy the data worth keeping, then destroy it",
            Cure::Restore => "restore the pool from a backup: repair cannot bring it back",
            Cure::Drop => "restore it from a backup, or let repair drop the damaged parts",
        }
    }
}

/// A finding.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Severity.
    pub severity: Severity,
    /// Structure concerned.
    pub part: Part,
    /// Its offset in the pool.
    pub offset: u64,
    /// Name of the object concerned.
    pub object: Option<String>,
    /// Description.
    pub what: String,
    /// Advice.
    pub remedy: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{severity}: {} at {}: ", self.part, self.offset)?;
        if let Some(object) = &self.object {
            write!(f, "object {object:?}: ")?;
        }
        write!(f, "{} ({})", self.what, self.remedy)
    }
}

/// Result of a check.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Findings, in the order of the check.
    pub findings: Vec<Finding>,
    /// Findings beyond the limit of their severity.
    pub left_off: u64,
    /// Objects with intact entries.
    pub objects: u64,
    /// Objects, among these, whose ID is the hash of their bytes, for
    /// [`Store::verify_content`](crate::store::Store::verify_content).
    pub contents: u64,
    /// Lanes that have space.
    pub lanes: u32,
    /// Unreplayed batches of dead writers.
    pub waiting: u64,
    cures: Vec<Cure>,
    incurable: u64,
    kept: [usize; 3],
}

impl Report {
    /// The worst severity; `None`: no findings.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// Whether there are only notes.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.worst().is_none_or(|worst| worst == Severity::Note)
    }

    pub(in crate::store) fn asks_for(&self, cure: Cure) -> bool {
        self.cures.contains(&cure)
    }

    pub(in crate::store) fn incurable(&self) -> u64 {
        self.incurable
    }

    pub(in crate::store) fn add(&mut self, found: Found, object: Option<String>, what: String) {
        self.add_with(found, object, what, found.3.remedy().to_owned());
    }

    pub(in crate::store) fn add_with(
        &mut self,
        found: Found,
        object: Option<String>,
        what: String,
        remedy: String,
    ) {
        let Found(severity, part, offset, cure) = found;
        if !self.cures.contains(&cure) {
            self.cures.push(cure);
        }
        if severity == Severity::Error
            && matches!(cure, Cure::Untie | Cure::Drop | Cure::Restore | Cure::Manual | Cure::None)
        {
            self.incurable += 1;
        }
        let kept = &mut self.kept[severity as usize];
        if *kept == KEPT {
            self.left_off += 1;
            return;
        }
        *kept += 1;
        self.findings.push(Finding { severity, part, offset, object, what, remedy });
    }
}

#[derive(Clone, Copy)]
pub(in crate::store) struct Found(pub Severity, pub Part, pub u64, pub Cure);
