use super::{CONFIG, KEY, Verdict, create, open};
use crate::pool::psync;
use crate::scenario::formatted;
use crate::sim::{SimConfig, SimMedium};
use indelible_store::error::{Result, StoreError};
use indelible_store::store::{StillObject, Store, Writer};
use std::sync::Arc;
use std::time::Duration;

const SIZE: u64 = 9000;

struct Holding {
    writer: Writer,
    reader: Arc<Store>,
    _medium: SimMedium,
}

impl Holding {
    fn begin(config: SimConfig) -> Holding {
        let medium = formatted(2 << 20, config);
        let store = open(&medium, 1);
        create(&store, "a", SIZE);
        store.set_patience(Duration::ZERO);
        let mut writer = store.attach_writer("a", KEY).unwrap();
        psync(&mut writer, &[(0, &[1; SIZE as usize])]).unwrap();
        psync(&mut writer, &[(5000, &[2; 100])]).unwrap();
        Holding { writer, reader: open(&medium, 2), _medium: medium }
    }

    fn hold(&self) -> StillObject {
        self.reader.hold_still("a", KEY).unwrap().expect("it has a writer")
    }

    fn place(&self) -> Result<u64> {
        Ok(self.reader.find("a")?.entry.primary_offset())
    }

    fn expect(&self, still: &StillObject, psyncs: u8) -> Verdict {
        let mut bytes = [0; SIZE as usize];
        still.read(0, &mut bytes).unwrap();
        let mut right = [1; SIZE as usize];
        right[5000..5100].fill(psyncs);
        if bytes == right { Ok(()) } else { Err(format!("it is not what {psyncs} psyncs left")) }
    }
}

fn refused<T>(done: Result<T>, what: &str) -> Verdict {
    match done {
        Err(StoreError::HeldStill { .. }) => Ok(()),
        Err(error) => Err(format!("{what}: {error}")),
        Ok(_) => Err(format!("{what} of an object that is held still")),
    }
}

fn on_each(scenario: fn(Holding) -> Verdict) -> Verdict {
    [true, false].into_iter().try_for_each(|disk| scenario(Holding::begin(SimConfig { disk, ..CONFIG })))
}

pub(super) fn a_psync_waits_for_who_holds_its_object_still() -> Verdict {
    on_each(|mut holding| {
        let still = holding.hold();
        holding.expect(&still, 2)?;
        refused(psync(&mut holding.writer, &[(5000, &[3; 100])]), "a psync")?;
        refused(holding.writer.checkpoint(), "a checkpoint")?;
        holding.expect(&still, 2)?;
        drop(still);
        psync(&mut holding.writer, &[(5000, &[3; 100])]).map_err(|error| error.to_string())?;
        holding.expect(&holding.hold(), 3)
    })
}

pub(super) fn a_growth_waits_for_who_holds_its_object_still() -> Verdict {
    on_each(|mut holding| {
        let text = |error: StoreError| error.to_string();
        let mut places = vec![holding.place().map_err(text)?];
        for size in [12_000, 200_000, 600_000] {
            create(&holding.reader, &format!("behind {size}"), 50_000);
            let still = holding.hold();
            refused(holding.writer.grow(size), "a growth")?;
            holding.expect(&still, 2)?;
            drop(still);
            holding.writer.grow(size).map_err(text)?;
            holding.expect(&holding.hold(), 2)?;
            places.push(holding.place().map_err(text)?);
        }
        let moved = places.windows(2).map(|places| places[0] != places[1]);
        if moved.eq([false, true, true]) { Ok(()) } else { Err(format!("it lay at {places:?}")) }
    })
}
