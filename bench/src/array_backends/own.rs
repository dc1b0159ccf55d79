//! Indelible: an object per array, one psync for all.

use super::{ArrayBackend, Opened, Place, Profile, Touched};
use crate::Result;
use indelible::{Object, Pool, PoolOptions, psync_all};
use std::time::Duration;

struct Own {
    objects: Vec<Object>,
    _pool: Pool,
}

pub fn open(place: &Place<'_>, lengths: &[usize]) -> Result<Opened> {
    let room: usize = lengths.iter().sum();
    let options = PoolOptions::new().medium(place.medium.kind()).force(true);
    let pool = options.format(place.dir.join("pool"), (room as u64 * 2).max(256 << 20) + (512 << 20))?;
    let object = |(number, len): (usize, &usize)| -> Result<Object> {
        let name = format!("array-{number}");
        pool.create(&name, *len as u64)?;
        let mut object = pool.attach(&name)?;
        object.set_timed(true);
        Ok(object)
    };
    let objects = lengths.iter().enumerate().map(object).collect::<Result<_>>()?;
    Ok(Opened::Ready(Box::new(Own { objects, _pool: pool })))
}

impl ArrayBackend for Own {
    fn arrays(&mut self) -> Vec<&mut [u8]> {
        self.objects.iter_mut().map(Object::as_mut_slice).collect()
    }

    fn sync(&mut self, _: &mut [Touched]) -> Result<()> {
        let mut all: Vec<&mut Object> = self.objects.iter_mut().collect();
        Ok(psync_all(&mut all)?)
    }

    fn profile(&self) -> Option<Profile> {
        let mut profile = Profile::default();
        for object in &self.objects {
            let stats = object.stats();
            let own =
                [stats.collect, stats.direct, stats.compare, Duration::ZERO, Duration::ZERO, stats.settle];
            profile.parts.iter_mut().zip(own).for_each(|(part, own)| *part += own.as_nanos() as f64);
            profile.compared += stats.pages_compared as f64;
            profile.changed += stats.pages_changed as f64;
            profile.logged += stats.logged_bytes as f64;
        }
        // All share one lane.
        let lane = self.objects[0].lane_use();
        profile.parts[3] = lane.publish.as_nanos() as f64;
        profile.parts[4] = lane.apply.as_nanos() as f64;
        Some(profile)
    }
}
