use super::NAMES;
use super::model::{Model, Writing};
use indelible_store::error::Result;
use indelible_store::store::StillObject;
use indelible_store::table::Located;

pub(super) struct Hold {
    still: StillObject,
    shown: Vec<u8>,
}

impl Hold {
    pub(super) fn begin(still: StillObject) -> Result<Hold> {
        let shown = contents(&still)?;
        Ok(Hold { still, shown })
    }

    pub(super) fn object(&self) -> &Located {
        self.still.object()
    }

    pub(super) fn shown(&self) -> &[u8] {
        &self.shown
    }

    /// `false`: the object changed meanwhile.
    pub(super) fn end(self) -> Result<bool> {
        Ok(contents(&self.still)? == self.shown)
    }
}

fn contents(still: &StillObject) -> Result<Vec<u8>> {
    let mut bytes = vec![0; still.object().entry.size.get() as usize];
    still.read(0, &mut bytes)?;
    Ok(bytes)
}

/// By rule 8. Without a writer, the object's last lane may have another holder.
pub(super) fn judge(worlds: &[Model], object: usize, hold: Option<&Hold>) -> Result<(), String> {
    match (worlds[0].writing(object), hold) {
        (Some(Writing::Well), None) => Err("it has a writer, and is not held".into()),
        (_, Some(hold)) if !worlds.iter().any(|world| shows(world, object, hold)) => {
            Err("what is held is not what a psync left".into())
        }
        _ => Ok(()),
    }
}

fn shows(world: &Model, object: usize, hold: &Hold) -> bool {
    world.durable.get(NAMES[object]).is_some_and(|(_, _, bytes)| *bytes == hold.shown)
}
