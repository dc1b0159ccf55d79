//! A view of 100 objects beside attaches of its objects one by one (S2.7, S2.28).

#![allow(unsafe_code)]

use crate::Result;
use crate::environment::{Environment, Medium, discard, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::stats::Samples;
use indelible::{AttachedView, Pool, Rights, View};
use std::time::Duration;

const OBJECTS: usize = 100;
/// Attaches of one object that the attach of a view may take.
const LIMIT: f64 = 10.0;

const ROWS: [&str; 5] = [
    "one object, attached for writing",
    "the view; no object is attached",
    "the view, and all objects in one step",
    "the first touch of an object",
    "all objects, one by one",
];

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    for medium in Medium::ALL {
        on(environment, medium, section)?;
    }
    section.notes.push(
        "The objects have 4 KiB. The first touch is a load, and includes the attach for writing, by the thread that answers faults.".into(),
    );
    Ok(())
}

fn on(environment: &Environment, medium: Medium, section: &mut Section) -> Result<()> {
    let pool = environment.pool(medium, "views", 64 << 20)?;
    let names: Vec<String> = (0..OBJECTS).map(|number| number.to_string()).collect();
    let mut view = View::create(&pool, "view", OBJECTS)?;
    for (slot, name) in names.iter().enumerate() {
        pool.create(name, 4096)?;
        view.set(slot, name, Rights::READ | Rights::WRITE)?;
    }
    view.psync()?;
    drop(view);
    let bar = progress(1, &format!("views, {}", medium.word()));
    let samples = measure(environment, &pool, &names)?;
    bar.finish_and_clear();
    discard(pool);
    let one = samples[0].median();
    let columns =
        [("", Unit::Text), ("took", Unit::Nanoseconds), ("attaches", Unit::Ratio), ("rounds", Unit::Count)];
    let mut table = Table::new(format!("A view of {OBJECTS} objects on {}", medium.word()), &columns);
    for (row, samples) in ROWS.iter().zip(&samples) {
        let took = samples.spread().map_or(Cell::Empty, Cell::from);
        table.row(vec![(*row).into(), took, (samples.median() / one).into(), (samples.len() as u64).into()]);
    }
    section.tables.push(table);
    section.goals.push(Goal::at_most(
        format!("attach of a view of {OBJECTS} objects to an attach, on {}", medium.word()),
        Unit::Ratio,
        LIMIT,
        samples[1].median() / one,
    ));
    Ok(())
}

/// In the order of [`ROWS`], in turns, so that a disturbance meets all.
fn measure(environment: &Environment, pool: &Pool, names: &[String]) -> Result<[Samples; ROWS.len()]> {
    let budget = environment.budget(Duration::from_millis(3000), Duration::from_millis(600));
    let clock = &environment.clock;
    let mut samples: [Samples; ROWS.len()] = Default::default();
    let mut round = 0;
    while budget.allows(round, 6) {
        let (one, object) = clock.time(|| pool.attach(&names[0]));
        object?.detach()?;
        let (view, attached) = clock.time(|| AttachedView::attach(pool, "view"));
        let attached = attached?;
        let address = attached.slots()[round % OBJECTS].address;
        let (touch, word) = clock.time(|| {
            // SAFETY: the first word of an object of the view, which the load brings.
            unsafe { std::ptr::with_exposed_provenance::<u64>(address).read_volatile() }
        });
        assert_eq!(word, 0, "nobody has stored to it");
        attached.detach();
        let (all, attached) = clock.time(|| {
            let attached = AttachedView::attach(pool, "view")?;
            attached.bring_all().map(|count| (attached, count))
        });
        assert_eq!(attached?.1, OBJECTS);
        let (each, objects) =
            clock.time(|| names.iter().map(|name| pool.attach(name)).collect::<indelible::Result<Vec<_>>>());
        drop(objects?);
        // The first round is for lanes and caches.
        if round > 0 {
            for (samples, took) in samples.iter_mut().zip([one, view, all, touch, each]) {
                samples.push(took);
            }
        }
        round += 1;
    }
    Ok(samples)
}
