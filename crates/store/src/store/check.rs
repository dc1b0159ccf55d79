//! Check.
use crate::error::Part;
/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity { /// note
 Note }
/// Finding.
#[derive(Clone, Debug)]
pub struct Finding { /// part
 pub part: Part }
/// Report.
#[derive(Clone, Debug, Default)]
pub struct Report { /// findings
 pub findings: Vec<Finding> }
