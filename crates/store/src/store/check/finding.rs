//! Findings of a check.

use crate::error::Part;
use std::fmt;

/// Findings of one severity that a report keeps; the rest is counted.
const KEPT: usize = 10_000;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing is wrong: a state worth knowing.
    Note,
    /// Nothing is lost and nothing fails, but a rule of the format is broken.
    Warning,
    /// Something is damaged.
    Error,
}

/// The repair that a finding calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::store) enum Cure {
    /// Nothing to do.
    None,
    /// An attach does it, and so does repair.
    Recover,
    /// Write a structure again whose content is known from elsewhere.
    Rewrite,
    /// Make the table's structures anew from its entries.
    Rebuild,
    /// Remove a hidden object.
    Reap,
    /// Correct the number of objects that rest on a base.
    Count,
    /// Only giving up the ties of the object helps.
    Untie,
    /// Only giving something up helps.
    Drop,
    /// No repair helps.
    Restore,
    /// A person must decide.
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

/// One thing found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The structure concerned.
    pub part: Part,
    /// Its offset in the pool, in bytes.
    pub offset: u64,
    /// The object it concerns, if it concerns one.
    pub object: Option<String>,
    /// The finding, in words.
    pub what: String,
    /// Advice to the user.
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
    /// Findings left off because there were too many of their severity.
    pub left_off: u64,
    /// Objects whose entries are intact.
    pub objects: u64,
    /// Objects among them whose ID is the hash of their bytes, which
    /// [`Store::verify_content`](crate::store::Store::verify_content) compares.
    pub contents: u64,
    /// Lanes that have space.
    pub lanes: u32,
    /// Batches of writers that are gone, waiting to be recovered.
    pub waiting: u64,
    cures: Vec<Cure>,
    incurable: u64,
    kept: [usize; 3],
}

impl Report {
    /// The worst severity, `None` if nothing was found.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// Whether nothing is wrong; there may be notes.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.worst().is_none_or(|worst| worst == Severity::Note)
    }

    /// Whether some finding asks for this cure.
    pub(in crate::store) fn asks_for(&self, cure: Cure) -> bool {
        self.cures.contains(&cure)
    }

    /// Errors that no intact data can put right.
    pub(in crate::store) fn incurable(&self) -> u64 {
        self.incurable
    }

    pub(in crate::store) fn add(&mut self, found: Found, object: Option<String>, what: String) {
        self.add_with(found, object, what, found.3.remedy().to_owned());
    }

    /// As [`add`](Report::add), with advice of its own.
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

/// A finding without its words.
#[derive(Clone, Copy)]
pub(in crate::store) struct Found(pub Severity, pub Part, pub u64, pub Cure);
