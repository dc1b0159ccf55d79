use crate::commits::{POOL, attach, image, spawn};
use crate::error::{Result, StoreError};
use crate::lane::Batch;
use crate::medium::Medium;
use crate::medium::volatile::VolatileMedium;
use crate::shared::Shared;
use crate::store::{Identity, Store, Writer};
use crate::table::Key;
use std::sync::Arc;
use std::time::Duration;

/// No neighbours: they reach the primary one after the other.
const LINES: [u64; 2] = [1, 3];

fn psync(writer: &mut Writer, value: u8) -> Result<()> {
    writer.psync(&mut |primary: u64, batch: &mut Batch| {
        for line in LINES {
            batch.copy_lines(primary + line * 64, &[value; 64]);
        }
        Ok(256)
    })
}

/// A psync that the hold delayed did not happen. Without time in loom, one of two overlapping calls
/// is refused.
pub(crate) fn a_held_object_is_whole<const WORD: bool>() {
    spawn(|| {
        let medium = Arc::new(VolatileMedium::new(POOL));
        medium.write(0, image()).unwrap();
        let device = Arc::new(Shared::in_steps(&medium, WORD));
        let store = Store::open(device, Identity::default()).unwrap();
        store.set_patience(Duration::ZERO);
        let mut a = attach(&store, "a");
        psync(&mut a, 1).unwrap();
        a.checkpoint().unwrap();
        let thread = spawn(move || {
            let done = psync(&mut a, 2).and_then(|()| a.checkpoint());
            (a, done)
        });
        let held = store.hold_still("a", Key::default());
        if let Ok(still) = &held {
            let still = still.as_ref().expect("it has a writer");
            let shown = || {
                LINES.map(|line| {
                    let mut byte = [0];
                    still.read(line * 64, &mut byte).unwrap();
                    byte[0]
                })
            };
            let first = shown();
            assert_eq!(first[0], first[1]);
            assert_eq!(shown(), first);
        }
        let refused = held.map(drop);
        let (mut a, done) = thread.join().unwrap();
        for result in [&refused, &done] {
            let refusals = matches!(result, Err(StoreError::HeldStill { .. } | StoreError::Changing { .. }));
            assert!(result.is_ok() || refusals, "{result:?}");
        }
        psync(&mut a, 3).unwrap();
        std::mem::forget(a);
        drop(medium);
    })
    .join()
    .unwrap();
}
