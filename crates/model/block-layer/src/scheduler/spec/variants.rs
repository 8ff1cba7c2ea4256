//! Which variant of a scheduler is meant.

use std::collections::BTreeMap;

use kernels::schedulers::{SchedulerVariant, of_patch, variants};
use kernels::version::{Version, version};

use crate::scheduler::spec::error::BadScheduler;

pub(super) fn find(given: &BTreeMap<String, String>, kernel: &str) -> Result<SchedulerVariant, BadScheduler> {
    let number = version(kernel).ok_or_else(|| BadScheduler::Kernel { kernel: kernel.to_owned() })?;
    let is_there = |variant: &SchedulerVariant| !variant.is_patch && variant.fits(number);
    let known = || variants().filter(is_there).map(|variant| variant.name).collect();
    let name = given.get("name").ok_or_else(|| BadScheduler::Nameless { known: known() })?;
    let patched = of_patch(name, number, kernel);
    if let Some(version) = given.get("version") {
        let variant = of_version_in(name, version, number)?;
        if variant.fits(number) || patched == Some(variant.version) {
            return Ok(variant);
        }
        return Err(BadScheduler::NotThen {
            name: name.clone(),
            version: version.clone(),
            kernel: kernel.to_owned(),
            kernels: variant.kernels_in_words(),
        });
    }
    if let Some(version) = patched {
        return of_version(name, version);
    }
    variants().find(|variant| variant.name == name && is_there(variant)).ok_or_else(|| BadScheduler::Unknown {
        name: name.clone(),
        kernel: kernel.to_owned(),
        known: known(),
    })
}

/// With the kernels between two that have it, if a stable release in between has another.
fn of_version_in(name: &str, version: &str, kernel: Version) -> Result<SchedulerVariant, BadScheduler> {
    let found = of_version(name, version)?;
    let named = |variant: &SchedulerVariant| variant.name == name && variant.version == version;
    let fitting = variants().find(|variant| named(variant) && variant.fits(kernel));
    Ok(fitting.unwrap_or(found))
}

fn of_version(name: &str, version: &str) -> Result<SchedulerVariant, BadScheduler> {
    let of_name = || variants().filter(|variant| variant.name == name);
    of_name().find(|variant| variant.version == version).ok_or_else(|| BadScheduler::Version {
        name: name.to_owned(),
        version: version.to_owned(),
        known: {
            let mut known = Vec::new();
            for variant in of_name() {
                if !known.contains(&variant.version) {
                    known.push(variant.version);
                }
            }
            known
        },
    })
}
