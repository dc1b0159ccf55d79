use super::{CONFIG, KEY, Verdict, create, open};
use crate::pool::{contents, process, psync};
use crate::scenario::formatted;
use crate::sealed;
use crate::sim::{Choice, Fault, OpKind, SimConfig, SimMedium};
use indelible_store::error::{Result, StoreError};
use indelible_store::store::{Leaving, Severity, Store};
use std::sync::Arc;

const SIZE: usize = 9000;

type Seen = (Vec<u8>, [u8; 16], u64);

fn seen(medium: &SimMedium) -> Result<Option<Seen>> {
    let store = open(medium, 9);
    store.reap()?;
    let reader = match sealed::reader(&store, "a") {
        Err(StoreError::NotFound) => return Ok(None),
        reader => reader?,
    };
    let object = *reader.object();
    let status = store.status(&object)?;
    Ok(Some((contents(&store, &object)?, object.entry.id, status.psyncs)))
}

fn sound(medium: &SimMedium) -> Verdict {
    let report =
        Store::check(Arc::new(medium.handle()), &mut |_, _| {}).map_err(|error| error.to_string())?;
    let wrong = report.findings.iter().find(|finding| finding.severity >= Severity::Warning);
    wrong.map_or(Ok(()), |finding| Err(format!("{finding:?}")))
}

fn prepared(config: SimConfig, seal: bool) -> Result<[SimMedium; 2]> {
    let [from, to] = [(); 2].map(|()| formatted(2 << 20, config));
    let store = open(&from, 1);
    match seal {
        true => drop(sealed::create(&store, "a", SIZE as u64)?),
        false => create(&store, "a", SIZE as u64),
    }
    let mut a = sealed::writer(&store, "a")?;
    psync(&mut a, &[(0, &[1; SIZE])])?;
    psync(&mut a, &[(5000, &[2; 8])])?;
    let other = open(&to, 1);
    create(&other, "used", 30_000);
    let mut used = other.attach_writer("used", KEY)?;
    psync(&mut used, &[(0, &[0xff; 30_000])])?;
    used.detach()?;
    other.destroy("used", KEY)?;
    a.detach()?;
    Ok([from, to])
}

fn bring(from: &Arc<Store>, to: &Arc<Store>) -> Result<Leaving> {
    let leaving = from.begin_leaving("a", KEY)?;
    let revived = to.adopt(&leaving.attributes())?;
    let mut bytes = vec![0; leaving.attributes().end() as usize];
    leaving.read(0, &mut bytes)?;
    revived.write(0, &bytes)?;
    revived.publish()?;
    Ok(leaving)
}

pub(super) fn an_object_that_has_come_is_whole_after_a_power_cut() -> Verdict {
    let text = |error: StoreError| error.to_string();
    for (disk, seal) in [(true, false), (false, false), (true, true), (false, true)] {
        let [from, to] = prepared(SimConfig { disk, ..CONFIG }, seal).map_err(text)?;
        let before = seen(&from).map_err(text)?;
        let left = bring(&open(&from, 2), &open(&to, 2)).map_err(text)?;
        let come = seen(&to.power_cut(Choice::None).medium()).map_err(text)?;
        drop(left);
        if come != before {
            return Err(format!("disk {disk}: the object that has come is another one"));
        }
    }
    Ok(())
}

pub(super) fn an_object_is_in_one_of_two_pools_wherever_the_move_ends() -> Verdict {
    const KINDS: [OpKind; 4] = [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier, OpKind::Zero];
    let text = |error: StoreError| error.to_string();
    let all = KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]);
    for (seal, (kind, in_target)) in all.flat_map(|how| [(false, how), (true, how)]) {
        for nth in 0.. {
            let [from, to] = prepared(CONFIG, seal).map_err(text)?;
            let before = seen(&from).map_err(text)?;
            let handles = [&from, &to].map(|medium| Arc::new(medium.handle()));
            let [here, there] = handles.clone().map(|handle| Store::open(handle, process(2)));
            let (here, there) = (here.map_err(text)?, there.map_err(text)?);
            let faulty = if in_target { &to } else { &from };
            faulty.fail_at(kind, nth, Fault::Kill);
            let moved = bring(&here, &there).and_then(Leaving::remove);
            [&from, &to].iter().for_each(|medium| medium.clear_faults());
            let dead = handles.iter().any(|handle| handle.is_dead());
            let named = |what| format!("{kind:?} {nth}, in the target {in_target}, sealed {seal}: {what}");
            for choice in [Choice::None, Choice::All] {
                let [from, to] = [&from, &to].map(|medium| medium.power_cut(choice.clone()).medium());
                let [left, come] = [seen(&from).map_err(text)?, seen(&to).map_err(text)?];
                let whole = [&left, &come].into_iter().flatten().all(|found| Some(found) == before.as_ref());
                if !whole || left.is_none() && come.is_none() {
                    return Err(named(format!("left {}, come {}", left.is_some(), come.is_some())));
                }
                if !dead && (left.is_some() || come.is_none()) {
                    return Err(named("moved, and it is not".into()));
                }
                sound(&from).and_then(|()| sound(&to)).map_err(named)?;
            }
            if !dead {
                moved.map_err(text).map_err(named)?;
                break;
            }
        }
    }
    Ok(())
}
