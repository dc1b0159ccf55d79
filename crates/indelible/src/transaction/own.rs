use super::view::View;
use crate::memory::{Group, Log};
use std::sync::Arc;

#[derive(Default)]
pub(super) struct Own {
    log: Option<(Log, Arc<Group>)>,
    views: Vec<View>,
    version: u64,
    last: u64,
    strict: bool,
}

impl Own {
    #[inline]
    pub(super) fn room(&self) -> usize {
        self.log.as_ref().map_or(0, |(log, _)| log.capacity())
    }

    pub(super) fn take_log(&mut self, log: Log, group: &Arc<Group>) {
        self.give_log_back();
        self.log = Some((log, group.clone()));
    }

    fn give_log_back(&mut self) {
        if let Some((log, group)) = self.log.take() {
            group.give_back(log);
        }
    }

    #[inline]
    pub(super) fn parts(&self) -> (Option<&Log>, &[View]) {
        (self.log.as_ref().map(|(log, _)| log), &self.views)
    }

    #[inline]
    pub(super) fn end_log(&self) {
        if let Some((log, _)) = &self.log {
            log.clear();
        }
    }

    #[inline]
    pub(super) fn has_views_of(&self, version: u64) -> bool {
        self.version == version
    }

    pub(super) fn take_views(&mut self, version: u64, views: Vec<View>) {
        (self.version, self.views) = (version, views);
    }

    #[inline]
    pub(super) fn note(&mut self, sequence: u64) {
        self.last = self.last.max(sequence);
    }

    #[inline]
    pub(super) fn set_strict(&mut self, strict: bool) {
        self.strict = strict;
    }

    #[inline]
    pub(super) fn is_strict(&self) -> bool {
        self.strict
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.give_log_back();
    }
}
