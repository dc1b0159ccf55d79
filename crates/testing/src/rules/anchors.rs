use super::{CONFIG, LIMITS, Verdict, open};
use crate::for_each_crash;
use crate::pool::psync;
use crate::scenario::formatted;
use crate::sealed;
use crate::sim::{SimConfig, SimMedium};
use indelible_store::error::{Result, SealError, StoreError};
use indelible_store::format::PAGE;
use indelible_store::seal::{AnchorRecord, Count};
use indelible_store::store::Writer;
use std::cell::RefCell;

fn text(error: StoreError) -> String {
    error.to_string()
}

fn state(medium: &SimMedium) -> Result<AnchorRecord> {
    let store = open(medium, 7);
    let reader = store.attach_sealed_reader("a", super::KEY, &sealed::unlock(&store, "a")?)?;
    Ok(reader.sealed_pages().expect("it is sealed").state())
}

const CHANGES: [fn(&mut Writer) -> Result<()>; 6] = [
    |a| psync(a, &[(70, &[1; 8])]),
    |a| a.grow(70 * PAGE).map(drop),
    |a| psync(a, &[(69 * PAGE, &[2; 8])]),
    |a| a.reencrypt(&[&sealed::key()], &mut |_, _| {}),
    |a| a.resize(3 * PAGE + 9),
    |a| psync(a, &[(70, &[3; 8])]),
];

fn prepared(config: SimConfig) -> Result<SimMedium> {
    let medium = formatted(2 << 20, config);
    sealed::create(&open(&medium, 1), "a", 9000)?;
    medium.settle();
    Ok(medium)
}

pub(super) fn a_complete_older_state_is_behind_its_anchor() -> Verdict {
    let medium = prepared(CONFIG).map_err(text)?;
    let psynced = |value: u8| -> Result<(Vec<u8>, AnchorRecord)> {
        let mut a = sealed::writer(&open(&medium, 2), "a")?;
        psync(&mut a, &[(70, &[value; 8])])?;
        a.detach()?;
        Ok((medium.to_bytes(), AnchorRecord { left: true, ..state(&medium)? }))
    };
    let (older, newer) = (psynced(1).map_err(text)?, psynced(2).map_err(text)?);
    let judge = |bytes: &[u8], told: &AnchorRecord| {
        let found = state(&SimMedium::from_bytes(bytes, CONFIG)).map_err(text)?;
        Ok::<_, String>(AnchorRecord::judge(&found, true, Some(told)))
    };
    judge(&newer.0, &newer.1)?.map_err(text)?;
    judge(&older.0, &older.1)?.map_err(text)?;
    match judge(&older.0, &newer.1)? {
        Err(StoreError::Seal(SealError::PoolBehind { .. })) => {}
        found => return Err(format!("the older state: {found:?}")),
    }
    match judge(&newer.0, &older.1)? {
        Err(StoreError::Seal(SealError::AnchorBehind { .. })) => Ok(()),
        found => Err(format!("the older anchor: {found:?}")),
    }
}

pub(super) fn no_change_takes_an_object_back_behind_its_anchor() -> Verdict {
    let medium = prepared(CONFIG).map_err(text)?;
    let mut states = vec![state(&medium).map_err(text)?];
    for (nth, change) in CHANGES.iter().enumerate() {
        let mut a = sealed::writer(&open(&medium, 2), "a").map_err(text)?;
        change(&mut a).and_then(|()| a.detach()).map_err(text)?;
        let now = state(&medium).map_err(text)?;
        for before in &states {
            AnchorRecord::judge(&now, true, Some(before))
                .map_err(|error| format!("change {nth}: {error}"))?;
            if AnchorRecord::judge(before, true, Some(&now)).is_ok() {
                return Err(format!("change {nth} is not later than {before}"));
            }
        }
        states.push(now);
    }
    Ok(())
}

pub(super) fn a_counted_record_is_not_put_back() -> Verdict {
    let medium = prepared(CONFIG).map_err(text)?;
    let a = sealed::writer(&open(&medium, 2), "a").map_err(text)?;
    let pages = a.sealed_pages().expect("it is sealed");
    let counted = |value| pages.counted(pages.state(), value).map_err(text);
    let (older, newer) = (counted(7)?, counted(9)?);
    pages.judge_count(&newer, 9).map_err(text)?;
    pages.judge_count(&newer, 8).map_err(text)?;
    for counter in [9, 8, 5] {
        match pages.judge_count(&older, counter) {
            Err(StoreError::Seal(SealError::RecordBehind { .. })) => {}
            found => return Err(format!("record 7 of a counter at {counter}: {found:?}")),
        }
    }
    let forged = |record: AnchorRecord| match pages.judge_count(&record, 9) {
        Err(StoreError::Seal(SealError::BadAnchor { .. })) => Ok(()),
        found => Err(format!("{record}: {found:?}")),
    };
    let count = newer.count.expect("it is counted");
    forged(AnchorRecord { count: None, ..newer })?;
    forged(AnchorRecord { version: newer.version + 1, ..newer })?;
    forged(AnchorRecord { left: true, ..newer })?;
    forged(AnchorRecord { count: Some(Count { value: 9, ..older.count.expect("it is counted") }), ..older })?;
    forged(AnchorRecord { count: Some(Count { proof: [0; 40], ..count }), ..newer })
}

pub(super) fn a_pool_is_not_put_back_together_with_its_counted_record() -> Verdict {
    let medium = prepared(CONFIG).map_err(text)?;
    let psynced = |value: u8, counter| -> Result<(Vec<u8>, AnchorRecord)> {
        let mut a = sealed::writer(&open(&medium, 2), "a")?;
        psync(&mut a, &[(70, &[value; 8])])?;
        let pages = a.sealed_pages().expect("it is sealed");
        let told = pages.counted(AnchorRecord { left: true, ..pages.state() }, counter)?;
        a.detach()?;
        Ok((medium.to_bytes(), told))
    };
    let (older, newer) = (psynced(1, 7).map_err(text)?, psynced(2, 8).map_err(text)?);
    let judge = |(bytes, told): &(Vec<u8>, AnchorRecord), counter| {
        let store = open(&SimMedium::from_bytes(bytes, CONFIG), 7);
        let unlocked = sealed::unlock(&store, "a").map_err(text)?;
        let reader = store.attach_sealed_reader("a", super::KEY, &unlocked).map_err(text)?;
        let pages = reader.sealed_pages().expect("it is sealed");
        AnchorRecord::judge(&pages.state(), true, Some(told)).map_err(text)?;
        Ok::<_, String>(pages.judge_count(told, counter))
    };
    judge(&older, 7)?.map_err(text)?;
    judge(&newer, 8)?.map_err(text)?;
    match judge(&older, 8)? {
        Err(StoreError::Seal(SealError::RecordBehind { .. })) => Ok(()),
        found => Err(format!("the older pool and its record: {found:?}")),
    }
}

pub(super) fn an_anchor_is_not_ahead_after_a_power_cut() -> Verdict {
    for disk in [true, false] {
        let medium = prepared(SimConfig { disk, ..CONFIG }).map_err(text)?;
        let told = RefCell::new(Vec::new());
        let record = |medium: &SimMedium| {
            let mut a = sealed::writer(&open(medium, 2), "a").unwrap();
            for change in CHANGES {
                change(&mut a).unwrap();
                told.borrow_mut().push(a.sealed_pages().expect("it is sealed").state());
                medium.mark(told.borrow().len() as u64);
            }
        };
        let judge = |image: &crate::CrashImage| -> Verdict {
            let Some(last) = image.last_mark().and_then(|mark| mark.checked_sub(1)) else { return Ok(()) };
            let found = state(&image.medium()).map_err(text)?;
            AnchorRecord::judge(&found, true, told.borrow().get(last as usize)).map_err(text)
        };
        for_each_crash(&medium, record, judge, &LIMITS).map_err(|failure| failure.to_string())?;
    }
    Ok(())
}
