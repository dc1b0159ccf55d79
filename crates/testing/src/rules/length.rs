use super::{CONFIG, KEY, LIMITS, Verdict, create, of, open};
use crate::crash::for_each_crash;
use crate::pool::{check_tiling, contents, process, psync};
use crate::scenario::{crash_everywhere, formatted};
use crate::sim::{CrashImage, Fault, OpKind, SimConfig, SimMedium, TearUnit};
use indelible_store::error::{Result, StoreError};
use indelible_store::medium::Medium;
use indelible_store::store::Store;
use indelible_store::table::CreateOptions;
use std::sync::Arc;

const MIB: u64 = 1 << 20;
const MEMORY: SimConfig = SimConfig { disk: false, tear_unit: TearUnit::Word, ..CONFIG };

fn full(config: SimConfig) -> SimMedium {
    let medium = formatted(MIB, config);
    let store = open(&medium, 1);
    create(&store, "filling", 1);
    store.resize("filling", KEY, store.info().unwrap().largest).unwrap();
    medium.settle();
    medium
}

fn becomes_longer(config: SimConfig) -> Verdict {
    let program = |run: &mut crate::scenario::Scenario| -> Result<()> {
        run.quiet(|store| store.lengthen(2 * MIB))?;
        run.step(|store| store.create("a", &of(MIB / 2)))?;
        let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
        run.step(|_| psync(&mut a, &[(MIB / 2 - 100, &[1; 100])]))?;
        run.quiet(|store| store.lengthen(2 * MIB + 5000))?;
        run.step(|_| psync(&mut a, &[(0, &[2; 100])]))?;
        run.quiet(|_| a.detach())
    };
    crash_everywhere(&full(config), &LIMITS, program).map(drop).map_err(|failure| failure.to_string())
}

pub(super) fn a_full_pool_on_a_disk_becomes_longer() -> Verdict {
    becomes_longer(CONFIG)
}

pub(super) fn a_full_pool_in_memory_becomes_longer() -> Verdict {
    becomes_longer(MEMORY)
}

fn becomes_longer_after_a_failure(config: SimConfig) -> Verdict {
    // Copy of the superblock, two slots, batch; with a former copy, its erasure.
    let writes =
        [false, true].into_iter().flat_map(|spared| (0..4 + u64::from(spared)).map(move |nth| (spared, nth)));
    let faults = [Fault::Io, Fault::Short, Fault::After];
    for ((spared, nth), fault) in writes.flat_map(|write| faults.map(|fault| (write, fault))) {
        let medium = full(config);
        if spared {
            open(&medium, 1).lengthen(MIB).map_err(text)?;
            medium.settle();
        }
        let record = |medium: &SimMedium| {
            medium.fail_at(OpKind::WriteDurable, nth, fault);
            let failed = open(medium, 2).lengthen(2 * MIB);
            medium.clear_faults();
            let again = open(medium, 3).lengthen(2 * MIB);
            assert!(failed.is_err() && again.is_ok(), "{failed:?}, {again:?}");
        };
        let judge = |image: &CrashImage| {
            let store = Store::open(Arc::new(image.medium().handle()), process(4)).map_err(text)?;
            store.lengthen(3 * MIB).map(drop).map_err(text)
        };
        for_each_crash(&medium, record, judge, &LIMITS)
            .map_err(|failure| format!("{fault:?}, {nth}: {failure}"))?;
    }
    Ok(())
}

pub(super) fn a_pool_on_a_disk_becomes_longer_after_a_failure() -> Verdict {
    becomes_longer_after_a_failure(SimConfig { tear_unit: TearUnit::Word, ..CONFIG })
}

pub(super) fn a_pool_in_memory_becomes_longer_after_a_failure() -> Verdict {
    becomes_longer_after_a_failure(MEMORY)
}

fn text(error: StoreError) -> String {
    error.to_string()
}

fn lengthened_over_bytes(config: SimConfig, options: &CreateOptions<'_>) -> Verdict {
    let medium = full(config);
    medium.extend(2 * MIB).map_err(|error| format!("{error:?}"))?;
    medium.scribble(MIB..2 * MIB, 7);
    let (store, other) = (open(&medium, 2), open(&medium, 3));
    store.lengthen(3 * MIB).map_err(text)?;
    for (by, name) in [(&other, "a"), (&store, "b"), (&other, "c")] {
        by.create(name, options).map_err(text)?;
        let found = contents(by, &by.find(name).map_err(text)?).map_err(text)?;
        if found.iter().any(|byte| *byte != 0) {
            return Err(format!("{name} has bytes that lay behind the pool"));
        }
    }
    check_tiling(&store)?;
    let report = Store::check(Arc::new(medium.handle()), &mut |_, _| {}).map_err(text)?;
    report.findings.first().map_or(Ok(()), |finding| Err(format!("{finding:?}")))
}

pub(super) fn bytes_behind_a_pool_are_in_no_object() -> Verdict {
    lengthened_over_bytes(MEMORY, &of(MIB / 2))
}

pub(super) fn bytes_behind_a_pool_are_in_no_sparse_object() -> Verdict {
    lengthened_over_bytes(MEMORY, &CreateOptions { sparse: true, ..of(MIB / 4) })
}
