//! Origin of an object's bytes: `trust` has the rules.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    Own,
    Verified,
    Foreign,
}
