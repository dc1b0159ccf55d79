use super::beside::{Beside, NAMES, SIZE, keep, on_each, same, text};
use super::{KEY, Verdict, create};
use crate::pool::{contents, psync};
use indelible_store::error::StoreError;
use indelible_store::medium::Medium;
use indelible_store::table::CreateOptions;

pub(super) fn what_memory_shows_stays_when_an_object_moves() -> Verdict {
    for based in [false, true] {
        on_each(|beside| memory_stays(beside, based))
            .map_err(|what| format!("{what}, on a base: {based}"))?;
    }
    Ok(())
}

fn memory_stays(mut beside: Beside, based: bool) -> Verdict {
    if based {
        keep(&beside.other, &[("a", "s")]).map_err(text)?;
        beside.psync(0, 9000, 3, 9).map_err(text)?;
    }
    create(&beside.other, "first", 4096);
    let mut first = beside.other.attach_writer("first", KEY).map_err(text)?;
    psync(&mut first, &[(0, &[1; 4096])]).map_err(text)?;
    first.detach().map_err(text)?;
    let free = |beside: &Beside| beside.other.info().map(|info| info.free).map_err(text);
    let (before, size) = (free(&beside)?, 3 * SIZE);
    let shown = *beside.writers[0].object();
    let memory = contents(&beside.store, &shown).map_err(text)?;
    let moved = beside.writers[0].grow_beside(size as u64, true).map_err(text)?;
    beside.expected[0].resize(size, 0);
    let extent = shown.entry.primary_offset();
    if !moved || beside.writers[0].object().entry.primary_offset() == extent {
        return Err("it did not move".into());
    }
    beside.other.reap().map_err(text)?;
    for (index, size) in [1 << 20, 64 << 10, 4096].into_iter().enumerate() {
        for number in 0.. {
            let name = format!("{index}.{number}");
            match beside.other.create(&name, &CreateOptions { size, ..CreateOptions::default() }) {
                Err(StoreError::NoRoom { .. } | StoreError::NoSpace) => break,
                created => created.map_err(text)?,
            };
            let mut writer = beside.other.attach_writer(&name, KEY).map_err(text)?;
            for at in (0..size).step_by(16 << 10) {
                let piece = vec![0xee; (size - at).min(16 << 10) as usize];
                psync(&mut writer, &[(at, &piece)]).map_err(text)?;
            }
        }
    }
    if !based {
        let mut bytes = vec![0; SIZE];
        beside.medium.handle().read(extent, &mut bytes).map_err(|error| error.to_string())?;
        if bytes != memory {
            return Err("what the memory shows was overwritten".into());
        }
    }
    beside.psync(0, SIZE - 100, 8, 2 * SIZE).map_err(text)?;
    let (writer, expected) = (beside.writers.remove(0), beside.expected.remove(0));
    writer.detach().map_err(text)?;
    same(&beside.other, NAMES[0], &expected)?;
    for object in beside.other.list((0, 0), 10_000).map_err(text)?.objects {
        let name = object.entry.name();
        if !NAMES.contains(&&*name) && name != "s" {
            beside.other.destroy(&name, KEY).map_err(text)?;
        }
    }
    let more = (before - free(&beside)?) / 4096;
    // Ten pages of its own, one of the bitmap or the table.
    if more > 12 {
        return Err(format!("{more} pages are missing"));
    }
    Ok(())
}

pub(super) fn an_extent_that_memory_shows_is_taken() -> Verdict {
    on_each(|mut beside| {
        let free = |beside: &Beside| beside.other.info().map(|info| info.free / 4096).map_err(text);
        let pages = |size: usize| size.div_ceil(4096) as u64;
        let (begin, mut size) = (free(&beside)?, SIZE);
        for round in 0..4 {
            create(&beside.store, &format!("wall {round}"), 1);
            size += SIZE;
            beside.writers[0].grow_beside(size as u64, round == 0).map_err(text)?;
            beside.expected[0].resize(size, 0);
            beside.psync(0, size - 5000, 10 + round, 5000).map_err(text)?;
            let (taken, least) = (begin - free(&beside)?, pages(size) + u64::from(round) + 1);
            if !(least..least + 3).contains(&taken) {
                return Err(format!("round {round}: {taken} pages are taken, and not {least}"));
            }
        }
        beside.writers[0].give_former_up();
        let (taken, least) = (begin - free(&beside)?, pages(size) - pages(SIZE) + 4);
        if !(least..least + 3).contains(&taken) {
            return Err(format!("{taken} pages are taken in the end, and not {least}"));
        }
        beside.ends()
    })
}
