//! A snapshot beside a writer redoes the writer's log, and its barrier fails at the first write to
//! blocks of the object.

use super::beside::{same, text};
use super::following::Following;
use super::{CONFIG, KEY, Verdict, create, open};
use crate::pool::psync;
use crate::scenario::formatted;
use crate::sim::{Choice, Fault, OpKind, SimConfig};
use indelible_store::error::Result;
use indelible_store::store::{Reader, Store};
use std::sync::Arc;

/// Each attempt's error names the remedy. Readers with a base go on. The writer's next psync
/// reports the failure; after a new attach every process goes on.
pub(super) fn blocks_that_are_lost_beneath_a_writer_are_mended_when_it_attaches() -> Verdict {
    let medium = formatted(4 << 20, SimConfig { disk: true, ..CONFIG });
    let [first, failing, late, reading] = [1, 2, 3, 4].map(|number| open(&medium, number));
    create(&first, "a", 40_000);
    let mut a = first.attach_writer("a", KEY).map_err(text)?;
    let mut expected = vec![0; 40_000];
    let mut reader = Following::begin(&reading).map_err(text)?;
    psync(&mut a, &[(5000, &[1; 9000])]).map_err(text)?;
    expected[5000..14_000].fill(1);
    let snapshot = |store: &Arc<Store>| -> Result<()> {
        store.attach_snapshot("a", KEY).and_then(|reader: Reader| store.end_snapshot(reader))
    };
    medium.fail_at(OpKind::Barrier, 0, Fault::Io);
    let failed = snapshot(&failing);
    medium.clear_faults();
    if failed.is_ok() {
        return Err("its barrier did not fail".into());
    }
    // A process that had the file open may get the report itself.
    for store in [&failing, &late, &late] {
        match snapshot(store) {
            Ok(()) => return Err("a base is made of blocks that are lost".into()),
            Err(error) if error.to_string().contains("Input/output") => {}
            Err(error) if error.to_string().contains("attach it anew") => {}
            Err(error) => return Err(format!("the error does not help: {error}")),
        }
    }
    reader.expect("by the log it has", &expected)?;
    if psync(&mut a, &[(100, &[2; 700])]).is_ok() {
        return Err("the writer is not told".into());
    }
    drop(a);
    let mut a = first.attach_writer("a", KEY).map_err(text)?;
    psync(&mut a, &[(100, &[3; 700])]).map_err(text)?;
    expected[100..800].fill(3);
    for store in [&failing, &late] {
        snapshot(store).map_err(|error| format!("after the writer attached the object anew: {error}"))?;
    }
    reader.expect("after the writer attached the object anew", &expected)?;
    a.checkpoint().map_err(text)?;
    let cut = open(&medium.power_cut(Choice::None).medium(), 9);
    same(&cut, "a", &expected).map_err(|what| format!("after a power cut, {what}"))
}
