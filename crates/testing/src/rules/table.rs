use super::{CONFIG, KEY, LIMITS, Verdict, crash, create, of};
use crate::for_each_crash;
use crate::pool::{check_tiling, process, psync};
use crate::sim::{CrashImage, SimMedium};
use indelible_store::store::{FormatOptions, Store};
use std::sync::Arc;

/// Needs a table lane without batches: present ones would repair the mutant's damage.
fn first_table_change() -> Verdict {
    crash(|_| {}, |run| run.step(|store| store.create("a", &of(9000))).map(drop))
}

pub(super) fn table_applied_before_it_is_published() -> Verdict {
    first_table_change()
}

pub(super) fn superblock_before_the_table() -> Verdict {
    let medium = SimMedium::new(1 << 20, CONFIG);
    let how = FormatOptions { zeroed: true, ..FormatOptions::default() };
    let format =
        |medium: &SimMedium| drop(Store::format(Arc::new(medium.handle()), process(1), &how).unwrap());
    let judge = |image: &CrashImage| match Store::open(Arc::new(image.medium()), process(2)) {
        Ok(store) => check_tiling(&store),
        Err(_) => Ok(()),
    };
    for_each_crash(&medium, format, judge, &LIMITS).map(drop).map_err(|failure| failure.to_string())
}

pub(super) fn destroyed_space_not_zeroed() -> Verdict {
    crash(
        |store| create(store, "a", 9000),
        |run| {
            let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
            run.step(|_| psync(&mut a, &[(0, &[1; 9000])]))?;
            run.quiet(|_| a.detach())?;
            run.step(|store| store.destroy("a", KEY))
        },
    )
}
