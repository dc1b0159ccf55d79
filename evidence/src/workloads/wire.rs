//! Messages between a supervisor and its children: arguments and lines.

use std::fmt;
use std::io::Write;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) workload: u32,
    pub(crate) done: u64,
    pub(crate) begun: bool,
    pub(crate) promised: u64,
    pub(crate) promising: u64,
}

impl Spec {
    pub(crate) fn new(workload: u32) -> Self {
        Spec { workload, done: 0, begun: false, promised: 0, promising: 0 }
    }

    pub(crate) fn hear(&mut self, said: &Said) {
        match *said {
            Said::Settled { step, ring, .. } => {
                *self = Spec { done: step, promised: ring, promising: ring, begun: false, ..*self };
            }
            Said::Begun { step, ring, .. } => {
                *self = Spec { done: step - 1, begun: true, promising: ring, ..*self };
            }
            Said::Done { step, .. } => {
                *self = Spec { done: step, begun: false, promised: self.promising, ..*self };
            }
            // A step without space did not happen; after other failures it may have.
            Said::Failed { untouched: true, .. } => {
                *self = Spec { begun: false, promising: self.promised, ..*self };
            }
            _ => {}
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spec { workload, done, begun, promised, promising } = self;
        write!(f, "{workload}:{done}:{}:{promised}:{promising}", u8::from(*begun))
    }
}

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Vec<u64> = text.split(':').filter_map(|part| part.parse().ok()).collect();
        match numbers[..] {
            [workload, done, begun, promised, promising] => {
                Ok(Spec { workload: workload as u32, done, begun: begun != 0, promised, promising })
            }
            _ => Err(format!("{text:?} is not what is known of a workload")),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    Settled {
        workload: u32,
        step: u64,
        ring: u64,
    },
    Begun {
        workload: u32,
        step: u64,
        ring: u64,
    },
    Done {
        workload: u32,
        step: u64,
    },
    /// The step failed with a clear error; `untouched`: by contract, nothing happened.
    Failed {
        workload: u32,
        untouched: bool,
        why: String,
    },
    Wrong {
        why: String,
    },
    Count {
        what: String,
        count: u64,
    },
}

impl Said {
    pub(crate) fn workload(&self) -> Option<u32> {
        match self {
            Said::Settled { workload, .. }
            | Said::Begun { workload, .. }
            | Said::Done { workload, .. }
            | Said::Failed { workload, .. } => Some(*workload),
            Said::Wrong { .. } | Said::Count { .. } => None,
        }
    }

    /// Prints in one write, so that kills and threads leave lines whole. Without a reader the
    /// supervisor is gone, and this process ends.
    pub(crate) fn say(&self) {
        if std::io::stdout().lock().write_all(format!("{self}\n").as_bytes()).is_err() {
            std::process::exit(3);
        }
    }

    pub(crate) fn parse(line: &str) -> Option<Said> {
        let (kind, rest) = line.split_once(' ')?;
        let mut words = rest.splitn(3, ' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        Some(match kind {
            "settled" => Said::Settled { workload: number()? as u32, step: number()?, ring: number()? },
            "begun" => Said::Begun { workload: number()? as u32, step: number()?, ring: number()? },
            "done" => Said::Done { workload: number()? as u32, step: number()? },
            "failed" => Said::Failed {
                workload: number()? as u32,
                untouched: number()? == 1,
                why: words.next().unwrap_or("").to_owned(),
            },
            "wrong" => Said::Wrong { why: rest.to_owned() },
            "count" => {
                let (count, what) = rest.split_once(' ')?;
                Said::Count { count: count.parse().ok()?, what: what.to_owned() }
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Said::Settled { workload, step, ring } => write!(f, "settled {workload} {step} {ring}"),
            Said::Begun { workload, step, ring } => write!(f, "begun {workload} {step} {ring}"),
            Said::Done { workload, step } => write!(f, "done {workload} {step}"),
            Said::Failed { workload, untouched, why } => {
                write!(f, "failed {workload} {} {}", u8::from(*untouched), why.replace('\n', " "))
            }
            Said::Wrong { why } => write!(f, "wrong {}", why.replace('\n', " ")),
            Said::Count { what, count } => write!(f, "count {count} {what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_sent_are_received() {
        for said in [
            Said::Settled { workload: 1, step: 2, ring: 3 },
            Said::Begun { workload: 1, step: 2, ring: 3 },
            Said::Done { workload: 0, step: 9 },
            Said::Failed { workload: 4, untouched: true, why: "no space at all".into() },
            Said::Wrong { why: "workload 3 is torn".into() },
            Said::Count { what: "psync of several".into(), count: 12 },
        ] {
            assert_eq!(Said::parse(&said.to_string()), Some(said));
        }
        assert_eq!(Said::parse("done 1"), None);
    }

    #[test]
    fn a_spec_follows_what_was_said() {
        let mut spec = Spec::new(2);
        spec.hear(&Said::Begun { workload: 2, step: 1, ring: 7 });
        assert_eq!((spec.done, spec.begun, spec.promised), (0, true, 0));
        assert_eq!(spec.to_string().parse(), Ok(spec));
        spec.hear(&Said::Failed { workload: 2, untouched: true, why: String::new() });
        assert_eq!((spec.begun, spec.promising), (false, 0));
        spec.hear(&Said::Begun { workload: 2, step: 1, ring: 7 });
        spec.hear(&Said::Done { workload: 2, step: 1 });
        assert_eq!((spec.done, spec.begun, spec.promised), (1, false, 7));
    }
}
