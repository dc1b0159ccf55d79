//! Pages that were written, reported lost and dropped while a call reads them.

use super::{Verdict, create, open};
use crate::hooked::{BeforeRead, Hooked};
use crate::pool::{check_tiling, process, snapshot};
use crate::scenario::{formatted, media};
use indelible_store::error::{Result, StoreError};
use indelible_store::store::Store;
use std::sync::Arc;

/// Before each read of `change` in turn, all pending pages are lost and dropped. Others then find a
/// sound table with all acknowledged; only objects in `about` may be in either state.
pub fn whenever_pages_are_dropped(about: &[&str], change: impl Fn(&Arc<Store>) -> Result<()>) -> Verdict {
    let beside = |store: &Arc<Store>| {
        let mut found = snapshot(store)?;
        found.retain(|name, _| !about.contains(&&**name));
        Ok::<_, StoreError>(found)
    };
    for config in &media()[..2] {
        for point in 0.. {
            let sim = formatted(1 << 20, *config);
            sim.evict_by_itself(false);
            let hooked = Hooked::new(Arc::new(sim.handle()), BeforeRead::default());
            let store = Store::open(hooked.clone(), process(1)).unwrap();
            for nth in 0..20 {
                create(&store, &format!("{nth}"), 100);
            }
            store.info().unwrap();
            sim.settle();
            store.rename("0", "new", Default::default()).unwrap();
            (1..10).for_each(|nth| store.destroy(&format!("{nth}"), Default::default()).unwrap());
            let before = beside(&store).unwrap();
            let medium = sim.handle();
            hooked.plan(point, move || {
                medium.fail_writeback(false);
                medium.evict();
            });
            let done = change(&store);
            let met = !hooked.is_due();
            let at = format!("{config:?}, dropped before read {point}: {done:?}");
            let other = open(&sim, 2);
            check_tiling(&other).map_err(|cause| format!("{at}: {cause}"))?;
            let found = beside(&other).map_err(|error| format!("{at}: {error}"))?;
            if found != before {
                return Err(format!("{at}: something else changed"));
            }
            if !met {
                break;
            }
        }
    }
    Ok(())
}
