use super::{GONE, Kind, NativeMap, Opened, Pair, Place};
use crate::Result;
use indelible::collections::{PBTreeMap, PHashMap};
use indelible::{CreateOptions, Heap, Pool, PoolOptions, Tracking};

type Hash<'h> = PHashMap<'h, u64, u64>;
type Ordered<'h> = PBTreeMap<'h, u64, u64>;

struct Own {
    heap: Heap,
    _pool: Pool,
}

pub fn what(kind: Kind) -> &'static str {
    match kind {
        Kind::Hash => "PHashMap",
        Kind::Ordered => "PBTreeMap",
    }
}

pub fn open(kind: Kind, place: &Place<'_>) -> Result<Opened> {
    open_tracking(kind, place, Tracking::Auto)
}

pub fn open_explicit(kind: Kind, place: &Place<'_>) -> Result<Opened> {
    open_tracking(kind, place, Tracking::Explicit)
}

fn open_tracking(kind: Kind, place: &Place<'_>, tracking: Tracking) -> Result<Opened> {
    let len = (place.keys * 128 + (16 << 20)).next_multiple_of(1 << 20);
    let options = PoolOptions::new().medium(place.medium.kind()).tracking(tracking).force(true);
    let pool = options.format(place.dir.join("pool"), len + (256 << 20))?;
    pool.create_with("map", &CreateOptions::new(len))?;
    let own = Own { heap: Heap::format(pool.attach("map")?)?, _pool: pool };
    match kind {
        Kind::Hash => Opened::ready(OwnHash(own), place),
        Kind::Ordered => Opened::ready(OwnOrdered(own), place),
    }
}

macro_rules! map {
    ($name:ident, $map:ty) => {
        struct $name(Own);

        impl NativeMap for $name {
            fn insert(&mut self, pairs: &[Pair]) -> Result<()> {
                let map = self.0.heap.root_or_default::<$map>("map")?;
                for (key, value) in pairs {
                    map.insert(*key, *value);
                }
                Ok(self.0.heap.psync()?)
            }

            fn look(&mut self, keys: &[u64], _: usize) -> Result<u64> {
                let map = self.0.heap.root_or_default::<$map>("map")?;
                let mut sum: u64 = 0;
                for key in keys {
                    sum = sum.wrapping_add(*map.get(key).ok_or(GONE)?);
                }
                Ok(sum)
            }

            fn walk(&mut self, mut each: impl FnMut(u64, u64)) -> Result<()> {
                let map = self.0.heap.root_or_default::<$map>("map")?;
                map.iter().for_each(|(key, value)| each(*key, *value));
                Ok(())
            }
        }
    };
}

map!(OwnHash, Hash<'_>);
map!(OwnOrdered, Ordered<'_>);
