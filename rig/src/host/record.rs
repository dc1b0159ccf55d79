//! The record of a campaign for docs/evidence.md.

use crate::campaign::{Campaign, Findings};
use crate::counts::Failure;
use crate::kind::{Load, Program};
use indelible_record::{Mode, Record, add};

pub(crate) fn record(campaign: &Campaign<'_>, findings: &Findings, seconds: f64) -> Record {
    let (quick, long) = campaign.program.cycles();
    let mode = if campaign.cycles >= long { Mode::Long } else { Mode::Short };
    let mut options = match campaign.cycles {
        cycles if cycles == quick => "--quick".to_owned(),
        cycles => format!("--cycles {cycles}"),
    };
    if campaign.program == Program::OnDemand {
        options = format!("--guard {options}");
    }
    if let [kernel] = campaign.kernels[..] {
        options += &format!(" --kernel {}", kernel.word());
    }
    if let [first, others @ ..] = &campaign.kinds[..]
        && others.iter().all(|kind| kind.medium == first.medium)
    {
        options += &format!(" --medium {}", first.medium.word());
    }
    let command = format!("cargo xtask power-cut {options} --seed {}", campaign.seed);
    let mut record = Record::new(campaign.program.layer(), mode, command, campaign.seed);
    let mut sum = |name: &str, count: u64| add(&mut record.counts, name, count);
    findings.counts.sums.iter().for_each(|(name, count)| sum(name, *count));
    if campaign.program == Program::OnDemand {
        sum("changes of lines that the kernel told", findings.lines.told);
        sum("changes of lines that the detector told", findings.lines.detected);
    }
    for load in Load::ALL {
        let of_load = || findings.counts.failures.iter().filter(|failure| failure.load == load);
        let mut figures = |what: &str, figure: fn(&Failure) -> u64| {
            let mut all: Vec<_> = of_load().map(figure).collect();
            all.sort_unstable();
            let Some(most) = all.last() else { return };
            sum(&format!("{what}, {load}: median"), all[all.len() / 2]);
            sum(&format!("{what}, {load}: most"), *most);
        };
        figures("microseconds from the signal until everything is durable", |failure| failure.microseconds);
        figures("bytes made durable after the signal", |failure| failure.bytes);
    }
    sum("violations", findings.violations.len() as u64);
    record.seconds = seconds;
    (record.caught, record.missed) = (findings.caught.clone(), findings.missed.clone());
    record
}
