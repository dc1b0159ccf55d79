use super::Image;
use crate::pool::{check_tiling, contents, objects, process, psync, psync_many, recover_all, snapshot};
use crate::scenario::formatted;
use crate::{Choice, Fault, OpKind, SimConfig, SimMedium};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use indelible_store::error::{Result, StoreError};
use indelible_store::store::Store;
use indelible_store::table::{CreateOptions, Key};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::{Arc, OnceLock};

const KEY: Key<'static> = Key(&[]);

/// States that an object may show, by name: its own last, before it those of waiting batches.
pub type History = BTreeMap<String, Vec<Vec<u8>>>;

struct Recipe {
    name: &'static str,
    make: fn() -> Result<(SimMedium, History)>,
    image: &'static [u8],
    old: &'static [u8],
}

macro_rules! recipes {
    ($($name:ident)+) => {
        &[$(Recipe {
            name: stringify!($name),
            make: $name,
            image: include_bytes!(concat!("../../pools/", stringify!($name), ".gz")),
            old: include_bytes!(concat!("../../pools/format-1/", stringify!($name), ".gz")),
        }),+]
    };
}

const RECIPES: &[Recipe] = recipes!(blank settled waiting torn many full resizing);

pub struct Pool {
    pub name: &'static str,
    pub image: Arc<[u8]>,
    pub history: History,
}

impl Pool {
    #[must_use]
    pub fn image(&self) -> Image {
        Image::new(self.image.clone())
    }

    /// The image with the batches of the table's lane in place.
    #[must_use]
    pub fn current(&self) -> Image {
        let image = Arc::new(self.image());
        let store = Store::open(image.clone(), process(5)).expect("a sound pool");
        store.info().expect("a sound table");
        image.copy()
    }

    /// Recovers the objects and compares the store's state with the last psyncs.
    pub fn expect_in(&self, store: &Arc<Store>) -> std::result::Result<(), String> {
        let text = |error: StoreError| error.to_string();
        recover_all(store).map_err(text)?;
        check_tiling(store)?;
        let found = snapshot(store).map_err(text)?;
        if !found.keys().eq(self.history.keys()) {
            return Err(format!("objects: {:?}", found.keys()));
        }
        match self.history.iter().find(|(name, states)| Some(&found[*name].2) != states.last()) {
            None => Ok(()),
            Some((name, _)) => Err(format!("{name} is not as its last psync left it")),
        }
    }
}

/// The pools: blank; settled; with a dead writer's batches, in place or not; with trees of two
/// levels; full, with a dead writer; with an interrupted move.
#[must_use]
pub fn pools() -> &'static [Pool] {
    static POOLS: OnceLock<Vec<Pool>> = OnceLock::new();
    POOLS.get_or_init(|| RECIPES.iter().map(|recipe| recipe.load(recipe.image)).collect())
}

/// The same pools in format 1, made by release 0.1.
#[must_use]
pub fn old_pools() -> Vec<Pool> {
    RECIPES.iter().map(|recipe| recipe.load(recipe.old)).collect()
}

#[must_use]
pub fn old_pool(name: &str) -> Pool {
    let recipe = recipe(name);
    recipe.load(recipe.old)
}

/// The bytes of [`old_pool`] alone, which is faster.
#[must_use]
pub fn old_image(name: &str) -> Vec<u8> {
    unpacked(recipe(name).old)
}

fn recipe(name: &str) -> &'static Recipe {
    RECIPES.iter().find(|recipe| recipe.name == name).expect("a name of a pool")
}

fn unpacked(image: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(image).read_to_end(&mut bytes).expect("a compressed image");
    bytes
}

impl Recipe {
    fn load(&self, image: &[u8]) -> Pool {
        let bytes = unpacked(image);
        let (_, history) = (self.make)().expect("the recipe works");
        Pool { name: self.name, image: bytes.into(), history }
    }
}

/// Makes the pools anew, compressed, by name: after a change of the format.
#[must_use]
pub fn remake() -> Vec<(&'static str, Vec<u8>)> {
    let make = |recipe: &Recipe| {
        let (medium, _) = (recipe.make)().expect("the recipe works");
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&medium.to_bytes()).expect("memory takes everything");
        (recipe.name, packed.finish().expect("memory takes everything"))
    };
    RECIPES.iter().map(make).collect()
}

fn begin(len: u64) -> Result<(SimMedium, Arc<Store>)> {
    let medium = formatted(len, SimConfig::default());
    let store = Store::open(Arc::new(medium.handle()), process(1))?;
    Ok((medium, store))
}

fn pattern(seed: u64, len: u64) -> Vec<u8> {
    let mut bytes = vec![0; len as usize];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

fn create(store: &Arc<Store>, name: &str, size: u64) -> Result<()> {
    store.create(name, &CreateOptions { size, ..CreateOptions::default() })?;
    let mut writer = store.attach_writer(name, KEY)?;
    psync(&mut writer, &[(0, &pattern(size, size))])?;
    writer.detach()
}

fn now(store: &Arc<Store>) -> Result<History> {
    let state =
        |object: indelible_store::table::Located| Ok((object.entry.name(), vec![contents(store, &object)?]));
    objects(store)?.into_iter().map(state).collect()
}

fn blank() -> Result<(SimMedium, History)> {
    let (medium, store) = begin(1 << 20)?;
    drop(store);
    medium.settle();
    Ok((medium, History::new()))
}

fn settled() -> Result<(SimMedium, History)> {
    let (medium, store) = begin(1 << 20)?;
    for index in 0..8 {
        create(&store, &format!("object {index}"), 100 + 1700 * index)?;
    }
    for index in [1, 4] {
        store.destroy(&format!("object {index}"), KEY)?;
    }
    store.resize("object 0", KEY, 9000)?;
    store.rename("object 2", "renamed", KEY)?;
    let history = now(&store)?;
    drop(store);
    medium.settle();
    Ok((medium, history))
}

fn dead(choice: Choice) -> Result<(SimMedium, History)> {
    let (medium, store) = begin(1 << 20)?;
    for (name, size) in [("left", 5000), ("right", 3000), ("loading", 40_000)] {
        store.create(name, &CreateOptions { size, ..CreateOptions::default() })?;
    }
    medium.settle();
    let mut left = store.attach_writer("left", KEY)?;
    let mut right = store.attach_writer("right", KEY)?;
    let mut loading = store.attach_writer("loading", KEY)?;
    let mut history = now(&store)?;
    for step in 0..4_u64 {
        let (one, two) = (pattern(10 + step, 200), pattern(20 + step, 70));
        psync_many(&mut [
            (&mut left, &[(step * 900, &one)]),
            (&mut right, &[(step * 640, &two), (2950, &two[..50])]),
        ])?;
        psync(&mut loading, &[(step * 64, &one)])?;
        for (name, mut states) in now(&store)? {
            history.entry(name).or_default().append(&mut states);
        }
    }
    loading.begin_direct(40_000)?;
    loading.write_direct(20_000, &pattern(30, 9000))?;
    for writer in [left, right, loading] {
        std::mem::forget(writer);
    }
    Ok((medium.power_cut(choice).medium(), history))
}

fn waiting() -> Result<(SimMedium, History)> {
    dead(Choice::All)
}

fn torn() -> Result<(SimMedium, History)> {
    dead(Choice::None)
}

fn many() -> Result<(SimMedium, History)> {
    let (medium, store) = begin(2 << 20)?;
    let small = CreateOptions { size: 1, reach: 1, ..CreateOptions::default() };
    for index in 0..180 {
        store.create(&format!("small {index}"), &small)?;
    }
    for index in (0..180).step_by(9) {
        store.destroy(&format!("small {index}"), KEY)?;
    }
    create(&store, "large", 50_000)?;
    let history = now(&store)?;
    drop(store);
    medium.settle();
    Ok((medium, history))
}

fn full() -> Result<(SimMedium, History)> {
    let (medium, store) = begin(1 << 20)?;
    create(&store, "attached", 20_000)?;
    let mut writer = store.attach_writer("attached", KEY)?;
    for size in [100_000, 20_000, 1] {
        let filler = CreateOptions { size, ..CreateOptions::default() };
        while store.create(&format!("filler {}", objects(&store)?.len()), &filler).is_ok() {}
    }
    psync(&mut writer, &[(0, &pattern(1, 7000)), (19_000, &pattern(2, 900))])?;
    let history = now(&store)?;
    std::mem::forget(writer);
    Ok((medium.power_cut(Choice::None).medium(), history))
}

fn resizing() -> Result<(SimMedium, History)> {
    let (medium, store) = begin(1 << 20)?;
    let sparse = CreateOptions { size: 20_000, sparse: true, ..CreateOptions::default() };
    store.create("moving", &sparse)?;
    create(&store, "behind", 5000)?;
    let mut writer = store.attach_writer("moving", KEY)?;
    psync(&mut writer, &[(0, &pattern(3, 9000))])?;
    writer.detach()?;
    let history = now(&store)?;
    drop(store);
    medium.fail_at(OpKind::WriteDurable, 3, Fault::Kill);
    let died = Store::open(Arc::new(medium.handle()), process(2))?.resize("moving", KEY, 60_000).is_err();
    medium.clear_faults();
    let report = Store::check(Arc::new(medium.handle()), &mut |_, _| {})?;
    assert!(died && report.findings.iter().any(|finding| finding.what.contains("resize")), "{report:#?}");
    Ok((medium.power_cut(Choice::All).medium(), history))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "two megabytes of image take minutes")]
    fn the_images_are_what_the_recipes_make() {
        for pool in pools() {
            let store = Store::open(Arc::new(pool.image()), process(3)).unwrap();
            crate::pool::recover_all(&store).unwrap();
            let found = now(&store).unwrap();
            assert!(found.keys().eq(pool.history.keys()), "{}", pool.name);
            for (name, states) in &pool.history {
                assert!(found[name][0] == *states.last().unwrap(), "{}: {name}", pool.name);
            }
        }
    }
}
