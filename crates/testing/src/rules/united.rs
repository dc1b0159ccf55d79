use super::beside::{Beside, SIZE, keep, text};
use super::{CONFIG, KEY, Verdict, create};
use crate::pool::{Edits, psync, psync_many};
use crate::sim::{Fault, OpKind, SimConfig};
use indelible_store::error::Result;
use indelible_store::store::LivePages;

const FILLERS: [&str; 4] = ["f0", "f1", "f2", "f3"];

fn begin() -> Result<(Beside, LivePages)> {
    let mut beside = Beside::begin(SimConfig { disk: false, ..CONFIG })?;
    let pages = beside.writers[1].pages();
    let before = beside.writers[1].object().entry.lane;
    let edits: Edits<'_> = &[(0, &[3; 8])];
    let mut parts: Vec<_> = beside.writers.iter_mut().map(|writer| (writer, edits)).collect();
    psync_many(&mut parts)?;
    beside.expected.iter_mut().for_each(|bytes| bytes[..8].fill(3));
    assert_ne!(before, beside.writers[1].object().entry.lane, "it has moved");
    Ok((beside, pages))
}

fn compare(beside: &Beside, pages: &LivePages, when: &str) -> Verdict {
    for name in FILLERS {
        create(&beside.store, name, SIZE as u64);
        let mut filler = beside.store.attach_writer(name, KEY).map_err(text)?;
        psync(&mut filler, &[(0, &[0xee; SIZE])]).map_err(text)?;
        filler.detach().map_err(text)?;
    }
    let mut bytes = vec![0; SIZE];
    pages.read(0, &mut bytes).map_err(text)?;
    FILLERS.iter().try_for_each(|name| beside.store.destroy(name, KEY)).map_err(text)?;
    match bytes == beside.expected[1] {
        true => Ok(()),
        false => Err(format!("{when}, its writer gets other pages than the last psync left")),
    }
}

pub(super) fn pages_are_right_while_bases_are_absorbed() -> Verdict {
    let (mut beside, pages) = begin().map_err(text)?;
    let other = beside.other.clone();
    let reader = || {
        let reader = other.attach_snapshot("b", KEY).map_err(text)?;
        other.end_snapshot(reader).map_err(text)
    };
    for round in 0..4_u8 {
        reader()?;
        compare(&beside, &pages, &format!("after {round} psyncs"))?;
        beside.psync(1, 4096 * usize::from(round) + 9, 70 + round, 50).map_err(text)?;
        compare(&beside, &pages, "behind a psync")?;
    }
    beside.ends()
}

pub(super) fn pages_are_right_while_bases_are_merged() -> Verdict {
    let (mut beside, pages) = begin().map_err(text)?;
    for (round, name) in ["s0", "s1", "s2"].into_iter().enumerate() {
        keep(&beside.other, &[("b", name)]).map_err(text)?;
        beside.psync(1, 4096 * round + 9, 70 + round as u8, 50).map_err(text)?;
    }
    compare(&beside, &pages, "with snapshots")?;
    for name in ["s1", "s2"] {
        beside.other.destroy(name, KEY).map_err(text)?;
        compare(&beside, &pages, "with fewer snapshots")?;
    }
    if beside.other.merge("b").map_err(text)? == 0 {
        return Err("nothing was merged".into());
    }
    compare(&beside, &pages, "after a merge")?;
    beside.ends()
}

pub(super) fn pages_are_right_or_none_after_a_move_that_failed() -> Verdict {
    let kinds = [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier];
    for (kind, fault) in kinds.into_iter().flat_map(|kind| [(kind, Fault::Io), (kind, Fault::After)]) {
        for nth in 0.. {
            let mut beside = Beside::begin(SimConfig { disk: false, ..CONFIG }).map_err(text)?;
            keep(&beside.other, &[("b", "s")]).map_err(text)?;
            beside.psync(1, 9000, 7, 50).map_err(text)?;
            let (pages, before) = (beside.writers[1].pages(), beside.expected[1].clone());
            beside.medium.fail_at(kind, nth, fault);
            let edits: Edits<'_> = &[(0, &[3; 8])];
            let mut parts: Vec<_> = beside.writers.iter_mut().map(|writer| (writer, edits)).collect();
            let psynced = psync_many(&mut parts);
            beside.medium.clear_faults();
            if psynced.is_ok() {
                break;
            }
            for round in 0..3 {
                // An earlier look must not hide later changes.
                let _ = pages.read(0, &mut vec![0; SIZE]);
                let other = beside.other.clone();
                let _ = match round {
                    0 => other.attach_snapshot("b", KEY).and_then(|reader| other.end_snapshot(reader)),
                    1 => other.destroy("s", KEY).and_then(|()| other.merge("b")).map(drop),
                    _ => other.attach_snapshot("b", KEY).and_then(|reader| other.end_snapshot(reader)),
                };
                for name in FILLERS {
                    let name = format!("{name} {round}");
                    create(&other, &name, SIZE as u64);
                    let mut filler = other.attach_writer(&name, KEY).map_err(text)?;
                    psync(&mut filler, &[(0, &[0xee; SIZE])]).map_err(text)?;
                    filler.detach().map_err(text)?;
                }
                let mut bytes = vec![0; SIZE];
                if pages.read(0, &mut bytes).is_ok() && bytes[8..] != before[8..] {
                    return Err(format!(
                        "{kind:?} {nth}, {fault:?}: its writer gets other pages than those of the last psync"
                    ));
                }
            }
        }
    }
    Ok(())
}
