//! The place of the objects of this benchmark: on a medium of this machine, or on a modelled one on
//! top of it.

use crate::environment::{Environment, Medium};
use crate::modelled::{Beneath, Model};
use indelible::{PoolOptions, PredictionDepth};
use std::path::PathBuf;

/// See the module.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub medium: Medium,
    pub model: Option<&'a Model>,
}

impl<'a> Place<'a> {
    /// A medium of this machine.
    pub fn real(medium: Medium) -> Place<'static> {
        Place { medium, model: None }
    }

    /// A modelled medium.
    pub fn modelled(model: &'a Model) -> Place<'a> {
        let medium = match model.beneath {
            Beneath::Memory => Medium::Memory,
            Beneath::File => Medium::File,
        };
        Place { medium, model: Some(model) }
    }

    /// Its name for people.
    pub fn word(&self) -> &'a str {
        self.model.map_or(self.medium.word(), |model| &model.name)
    }

    /// For names of files.
    pub fn short(&self) -> &'a str {
        self.model.map_or(self.medium.short(), |model| &model.short)
    }

    /// A path of a pool there. Modelled media are on top of memory: a disk beneath would be slower
    /// than they are.
    pub fn path(&self, environment: &Environment, name: &str) -> PathBuf {
        environment.path(if self.model.is_some() { Medium::Memory } else { self.medium }, name)
    }

    /// Options of pools there.
    pub fn options(&self, depth: PredictionDepth) -> PoolOptions {
        let options = PoolOptions::new().medium(self.medium.kind()).prediction(depth);
        match self.model {
            Some(model) => options.modelled(model.speed),
            None => options,
        }
    }
}
