//! psync of several objects as one atomic step, and cuts: psyncs while threads store.

#![allow(unsafe_code)]

use super::batch_source::Shadows;
use super::engine::Core;
use super::tracked::Tracked;
use crate::dirty::{Bystanders, Cut};
use crate::error::Cause;
use indelible_store::Mutant;
use indelible_store::error::StoreError;
use indelible_store::lane::BatchSource;
use indelible_store::store::{Changes, Psync, Staged, Writer};

pub(crate) fn psync_cores(cores: &mut [&mut Core]) -> Result<(), Cause> {
    psync_halves(cores, |mut writers, tracked| psync_alone(&mut writers, tracked))
}

/// Calls `fixed` once the content is fixed, before the durable write. `gated`: until then a gate
/// keeps out threads that change the heaps; each object has a heap.
pub(crate) fn cut_cores(
    cores: &mut [&mut Core],
    gated: bool,
    others: &mut dyn Bystanders,
    fixed: impl FnOnce(),
) -> Result<(), Cause> {
    psync_halves(cores, |writers, tracked| psync_cut(writers, tracked, gated, others, fixed))
}

fn psync_halves(
    cores: &mut [&mut Core],
    psync: impl FnOnce(Vec<&mut Writer>, &mut [&mut Tracked]) -> Result<(), Cause>,
) -> Result<(), Cause> {
    cores.iter_mut().try_for_each(|core| core.before_psync())?;
    let (mut writers, mut tracked) = (Vec::with_capacity(cores.len()), Vec::with_capacity(cores.len()));
    for core in cores.iter_mut() {
        let (writer, half) = core.halves()?;
        writers.push(writer);
        tracked.push(half);
    }
    psync(writers, &mut tracked)?;
    cores.iter_mut().for_each(|core| core.after_psync());
    Ok(())
}

fn psync_alone(writers: &mut [&mut Writer], tracked: &mut [&mut Tracked]) -> Result<(), Cause> {
    for (writer, tracked) in writers.iter_mut().zip(tracked.iter_mut()) {
        tracked.begin()?;
        tracked.write_fresh(writer)?;
    }
    let psync = Psync::begin(writers.iter_mut().map(|writer| &mut **writer))?;
    let mut parts = Vec::with_capacity(tracked.len());
    for (writer, tracked) in psync.writers().zip(tracked.iter_mut()) {
        tracked.follow(writer);
        parts.push(tracked.part(&writer.object().entry)?);
    }
    let source = Shadows(&parts);
    let staged = stage_all(psync, tracked, Some(&source))?;
    let result = commit(staged, tracked);
    for (writer, tracked) in writers.iter_mut().zip(tracked) {
        tracked.finish(writer, &result)?;
    }
    Ok(result?)
}

/// Other threads store once the content is fixed: all of it is copied.
fn psync_cut(
    mut writers: Vec<&mut Writer>,
    tracked: &mut [&mut Tracked],
    gated: bool,
    others: &mut dyn Bystanders,
    fixed: impl FnOnce(),
) -> Result<(), Cause> {
    // Waits for a hold of an object before stores are held up.
    let psync = Psync::begin(writers.iter_mut().map(|writer| &mut **writer))?;
    for (writer, tracked) in psync.writers().zip(tracked.iter_mut()) {
        tracked.be_ready()?;
        tracked.follow(writer);
        tracked.changed.clear();
    }
    let result = stage_held(psync, tracked, gated, others).and_then(|staged| {
        others.go_on();
        fixed();
        Ok(commit(staged, tracked)?)
    });
    if result.is_err() {
        // Trackers may have been told that changed pages are durable: before the commit, with
        // stores held up.
        tracked.iter().for_each(|tracked| tracked.mark_changed());
        return result;
    }
    writers.iter().zip(tracked).try_for_each(|(writer, tracked)| tracked.drop_surplus(writer, true))
}

fn stage_held<'w>(
    psync: Psync<'w>,
    tracked: &mut [&mut Tracked],
    gated: bool,
    others: &mut dyn Bystanders,
) -> Result<Staged<'w, 'static>, Cause> {
    let (mut held, alone) = (0, tracked.len() == 1);
    let result = (|| {
        for tracked in tracked.iter_mut() {
            // Several objects share a moment if no thread stores to any.
            let cut = if alone { Cut::Copied(&mut *others) } else { Cut::Closed };
            tracked.shadow_mut()?.hold(gated, cut)?;
            held += 1;
        }
        tracked.iter_mut().try_for_each(|tracked| tracked.begin())?;
        let staged = stage_all(psync, tracked, None)?;
        tracked.iter_mut().try_for_each(|tracked| tracked.settle())?;
        if !Mutant::EvictedOutsideGate.is_on() {
            // SAFETY: collected and compared above, with all stores held up, as they still are, if
            // anything is to be dropped.
            tracked.iter().for_each(|tracked| unsafe { tracked.evict_clean() });
        }
        Ok(staged)
    })();
    let mut released = Ok(());
    for tracked in &mut tracked[..held] {
        released = released.and(tracked.release());
    }
    released?;
    if Mutant::EvictedOutsideGate.is_on() {
        // SAFETY: none: this is the fault that tests have to see.
        tracked.iter().for_each(|tracked| unsafe { tracked.evict_clean() });
    }
    result
}

fn stage_all<'w, 'l>(
    psync: Psync<'w>,
    tracked: &mut [&mut Tracked],
    source: Option<&'l dyn BatchSource>,
) -> Result<Staged<'w, 'l>, Cause> {
    let mut comparisons = Vec::with_capacity(tracked.len());
    for tracked in tracked {
        comparisons.push(tracked.comparison()?);
    }
    let changes = comparisons.iter_mut().map(|comparison| comparison as &mut dyn Changes);
    Ok(psync.stage(changes, source)?)
}

fn commit(staged: Staged<'_, '_>, tracked: &mut [&mut Tracked]) -> Result<(), StoreError> {
    let start = tracked.first().and_then(|first| first.stats.start());
    let result = staged.commit();
    if let Some(first) = tracked.first_mut() {
        first.stats.committed(start);
    }
    result
}
