use super::{CONFIG, KEY, LIMITS, Verdict, open};
use crate::independent::Independent;
use crate::pool::psync;
use crate::scenario::{crash_everywhere, formatted};
use crate::sealed::{self, page_at, shape};
use crate::sim::{SimConfig, SimMedium};
use indelible_store::error::{Result, SealError, StoreError};
use indelible_store::format::PAGE;
use indelible_store::format::seal::SLOTS;
use indelible_store::seal::SealKey;
use indelible_store::store::Store;
use indelible_store::table::{CreateOptions, Located};
use std::sync::Arc;

const SIZE: u64 = 66 * PAGE - 100;

fn text(error: StoreError) -> String {
    error.to_string()
}

fn other() -> SealKey {
    SealKey::file(vec![0xa5; 40]).expect("it is long enough")
}

fn prepare(config: SimConfig) -> Result<SimMedium> {
    let medium = formatted(2 << 20, config);
    let store = open(&medium, 1);
    let how = CreateOptions { size: SIZE, ..CreateOptions::default() };
    store.create_sealed("a", &how, &[(&sealed::key(), "test"), (&other(), "other")])?;
    let mut a = sealed::writer(&store, "a")?;
    psync(&mut a, &[(640, b"first"), (3 * PAGE, b"second"), (65 * PAGE, b"third")])?;
    a.detach()?;
    medium.settle();
    Ok(medium)
}

fn rotate(store: &Arc<Store>) -> Result<()> {
    let mut a = sealed::writer(store, "a")?;
    a.reencrypt(&[&sealed::key()], &mut |_, _| {})?;
    a.detach()
}

pub(super) fn a_rotation_is_whole_after_a_power_cut() -> Verdict {
    for disk in [true, false] {
        let medium = prepare(SimConfig { disk, ..CONFIG }).map_err(text)?;
        let rotated = crash_everywhere(&medium, &LIMITS, |run| {
            let state = run.last();
            run.step_to(state.clone(), rotate)?;
            let mut a = run.quiet(|store| sealed::writer(store, "a"))?;
            let mut after = state;
            let (_, _, bytes) = after.get_mut("a").expect("it was created");
            bytes[700..704].fill(7);
            run.step_to(after.clone(), |_| psync(&mut a, &[(700, &[7; 4])]))?;
            run.step_to(after, |_| a.reencrypt(&[&sealed::key()], &mut |_, _| {}))?;
            run.quiet(|_| a.detach())
        });
        rotated.map_err(|failure| failure.to_string())?;
    }
    Ok(())
}

struct Rotated {
    object: Located,
    before: Vec<u8>,
    object_before: Located,
    after: Vec<u8>,
}

fn rotated() -> Result<Rotated> {
    let medium = prepare(CONFIG)?;
    let store = open(&medium, 2);
    let (object_before, before) = (store.find("a")?, medium.to_bytes());
    rotate(&store)?;
    Ok(Rotated { object: store.find("a")?, before, object_before, after: medium.to_bytes() })
}

pub(super) fn the_former_key_reads_nothing() -> Verdict {
    let Rotated { object, before, object_before, after } = rotated().map_err(text)?;
    let (shape, page) = (shape(&object), |page| &after[page_at(&object, page)]);
    let former = Independent::open(&before[page_at(&object_before, shape.key_page())])?;
    let now = Independent::open(page(shape.key_page()))?;
    for written in [0, 3, 65] {
        let seal = &page(shape.page(0, written / 64))[written as usize % 64 * 64..][..64];
        let mut bytes = page(shape.content_page(written)).to_vec();
        now.verify(b"granule\0", (0, written), seal, &[], &mut bytes.clone())?;
        if former.verify(b"granule\0", (0, written), seal, &[], &mut bytes).is_ok() {
            return Err(format!("the former key reads page {written}"));
        }
    }
    Ok(())
}

pub(super) fn a_slot_that_is_put_back_opens_nothing() -> Verdict {
    let Rotated { object, before, object_before, mut after } = rotated().map_err(text)?;
    let held = |bytes: &[u8]| {
        let store = open(&SimMedium::from_bytes(bytes, CONFIG), 7);
        let unlocked = store.unlock("a", KEY, &other())?;
        store.attach_sealed_reader("a", KEY, &unlocked).map(drop)
    };
    match held(&after) {
        Err(StoreError::Seal(SealError::WrongKey { slots: 1 })) => {}
        found => return Err(format!("without its slot: {found:?}")),
    }
    let slots = |object: &Located| page_at(object, shape(object).key_page()).start + SLOTS;
    let (from, to) = (slots(&object_before), slots(&object));
    after[to..to + 512].copy_from_slice(&before[from..from + 512]);
    match held(&after) {
        Err(StoreError::Seal(SealError::Broken { .. })) => Ok(()),
        found => Err(format!("with its slot: {found:?}")),
    }
}
