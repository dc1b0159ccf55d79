//! The place of this benchmark's objects: a real medium, or a modelled one on top of it.

use crate::environment::{Environment, Medium};
use crate::modelled::{Beneath, Model};
use indelible::{PoolOptions, PredictionDepth};
use std::path::PathBuf;

#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub medium: Medium,
    pub model: Option<&'a Model>,
}

impl<'a> Place<'a> {
    pub fn real(medium: Medium) -> Place<'static> {
        Place { medium, model: None }
    }

    pub fn modelled(model: &'a Model) -> Place<'a> {
        let medium = match model.beneath {
            Beneath::Memory => Medium::Memory,
            Beneath::File => Medium::File,
        };
        Place { medium, model: Some(model) }
    }

    pub fn word(&self) -> &'a str {
        self.model.map_or(self.medium.word(), |model| &model.name)
    }

    pub fn short(&self) -> &'a str {
        self.model.map_or(self.medium.short(), |model| &model.short)
    }

    /// A path of a pool there. Modelled media are on memory: a disk would be slower than they are.
    pub fn path(&self, environment: &Environment, name: &str) -> PathBuf {
        environment.path(if self.model.is_some() { Medium::Memory } else { self.medium }, name)
    }

    pub fn options(&self, depth: PredictionDepth) -> PoolOptions {
        let options = PoolOptions::new().medium(self.medium.kind()).prediction(depth);
        match self.model {
            Some(model) => options.modelled(model.speed),
            None => options,
        }
    }
}
