//! Crash tests: run once, cut the power everywhere, judge the results.

use crate::sim::{ClassLimits, ClassReport, CrashImage, Cut, Event, Limits, SimMedium, classes};
use std::collections::HashSet;
use std::fmt;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrashReport {
    pub events: u64,
    pub points: u64,
    pub points_skipped: u64,
    pub images: u64,
    /// Judged images: distinct in contents or marks.
    pub distinct: u64,
}

pub struct CrashFailure {
    /// Makes the image again by [`SimMedium::crash_at`].
    pub cut: Cut,
    pub cause: String,
    pub marks: Vec<u64>,
    /// The last events before the cut.
    pub tail: Vec<(u64, Event)>,
}

impl fmt::Display for CrashFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.cause)?;
        writeln!(f, "after {} (marks {:?}); before the cut:", self.cut, self.marks)?;
        self.tail.iter().try_for_each(|(seq, event)| writeln!(f, "  #{seq} {event:?}"))
    }
}

/// `unwrap` prints the `Debug` text.
impl fmt::Debug for CrashFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for CrashFailure {}

struct Blame(Cut);

impl Drop for Blame {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("panicked on the image of {}", self.0);
        }
    }
}

/// Shows `verify` each distinct image that a power cut may leave while `record` works.
///
/// `record` notes promises by [`SimMedium::mark`]; `verify` finds them in [`CrashImage::marks`].
pub fn for_each_crash<E: fmt::Display>(
    medium: &SimMedium,
    record: impl FnOnce(&SimMedium),
    mut verify: impl FnMut(&CrashImage) -> Result<(), E>,
    limits: &Limits,
) -> Result<CrashReport, CrashFailure> {
    medium.forget_log();
    record(medium);
    let events = medium.events();
    let mut report = CrashReport { events: events.len() as u64, ..CrashReport::default() };
    let mut seen = HashSet::new();
    let mut images = medium.power_cut_states(limits);
    for image in images.by_ref() {
        report.images += 1;
        if !seen.insert((image.digest(), image.marks().len())) {
            continue;
        }
        report.distinct += 1;
        let blame = Blame(image.cut());
        let verdict = verify(&image);
        drop(blame);
        if let Err(cause) = verdict {
            return Err(failure(&events, &image, &cause));
        }
    }
    report.points = images.points();
    report.points_skipped = images.points_skipped();
    Ok(report)
}

/// As [`for_each_crash`], but of *all* images, one of each class that `verify` cannot tell apart
/// (see [`classes`](crate::sim::ClassLimits)). `verify` must read all that its verdict depends on
/// from its medium.
pub fn for_each_class<E: fmt::Display>(
    medium: &SimMedium,
    record: impl FnOnce(&SimMedium),
    mut verify: impl FnMut(&CrashImage, &SimMedium) -> Result<(), E>,
    limits: &ClassLimits,
) -> Result<ClassReport, CrashFailure> {
    medium.forget_log();
    record(medium);
    let events = medium.events();
    let mut report = ClassReport { legal_log2: f64::NEG_INFINITY, ..ClassReport::default() };
    for (point, log2) in classes::points(medium, *limits) {
        report.points += 1;
        let (more, less) = (report.legal_log2.max(log2), report.legal_log2.min(log2));
        report.legal_log2 = more + (less - more).exp2().ln_1p() / std::f64::consts::LN_2;
        let whole = point.explore(limits.per_point, &mut report, |candidate| {
            let _blame = Blame(candidate.image.cut());
            verify(&candidate.image, &candidate.medium)
                .map_err(|cause| failure(&events, &candidate.image, &cause))
        })?;
        report.cut_short += u64::from(!whole);
    }
    Ok(report)
}

fn failure(events: &[(u64, Event)], image: &CrashImage, cause: &dyn fmt::Display) -> CrashFailure {
    const TAIL: usize = 12;
    let past = events.partition_point(|(seq, _)| *seq < image.cut().before);
    CrashFailure {
        cut: image.cut(),
        cause: cause.to_string(),
        marks: image.marks().to_vec(),
        tail: events[past.saturating_sub(TAIL)..past].to_vec(),
    }
}
