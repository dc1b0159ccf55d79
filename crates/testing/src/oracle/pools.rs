use crate::pool::{process, psync};
use crate::scenario::formatted;
use crate::sealed;
use crate::sim::{Choice, CrashImage, EventKind, SimConfig, SimMedium};
use indelible_store::error::Result;
use indelible_store::format::{TABLE_LANE, TABLE_LANE_LEN};
use indelible_store::store::Store;
use indelible_store::table::{CreateOptions, Key};
use std::sync::Arc;

/// History of a pool before the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Fresh,
    /// Objects `a`, `b` and `c` have contents, with freed space between them.
    Used,
    /// As `Used`, and the table's lane is almost full.
    TableLaneFull,
    /// As `Used`, with hardly any space left.
    Tight,
    /// As `Used`, with `a` and `c` sealed, `c` also signed.
    Sealed,
}

#[must_use]
pub fn starts() -> [Start; 5] {
    [Start::Fresh, Start::Used, Start::TableLaneFull, Start::Tight, Start::Sealed]
}

impl Start {
    #[must_use]
    pub fn pool(self, config: SimConfig) -> CrashImage {
        let medium = formatted(1 << 20, config);
        if self != Start::Fresh {
            self.prepare(&medium).expect("an empty pool has room for all this");
        }
        medium.settle();
        medium.power_cut(Choice::All)
    }

    fn prepare(self, medium: &SimMedium) -> Result<()> {
        let of = |size| CreateOptions { size, ..CreateOptions::default() };
        let key = Key::default();
        let store = Store::open(Arc::new(medium.handle()), process(1))?;
        for (name, size, value) in [
            ("a", 9000, 0xa0),
            ("x", 30_000, 0xee),
            ("b", 5000, 0xb0),
            ("y", 9000, 0xee),
            ("c", 20_000, 0xc0),
        ] {
            match name {
                "a" if self == Start::Sealed => sealed::create(&store, name, size)?,
                "c" if self == Start::Sealed => sealed::create_signed(&store, name, size)?,
                _ => store.create(name, &of(size))?,
            };
            let mut writer = sealed::writer(&store, name)?;
            psync(&mut writer, &[(0, &vec![value; size as usize / 2])])?;
            writer.detach()?;
        }
        store.destroy("x", key)?;
        store.destroy("y", key)?;
        if self == Start::Tight {
            let most = store.info()?.largest;
            store.create("filler", &of(most - (48 << 10)))?;
        }
        while self == Start::TableLaneFull && table_lane_use(medium) + (6 << 10) < TABLE_LANE_LEN {
            store.rename("c", "z", key)?;
            store.rename("z", "c", key)?;
        }
        Ok(())
    }
}

fn table_lane_use(medium: &SimMedium) -> u64 {
    let lane = TABLE_LANE..TABLE_LANE + TABLE_LANE_LEN;
    let events = medium.events();
    let batches = events.iter().rev().filter(|(_, event)| event.kind == EventKind::WriteDurable);
    let mut ends = batches.flat_map(|(_, event)| event.ranges());
    ends.find(|(at, _)| lane.contains(at)).map_or(0, |(at, len)| at + len - TABLE_LANE)
}
