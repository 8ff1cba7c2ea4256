//! How warm a device is, and whether it has to be slower for that.
//!
//! One heat capacity and one resistance to the air around: what dies do heats the device by its energy, and it cools
//! towards the temperature of an idle one (Newton's law of cooling). Above one temperature it is throttled until it is
//! below another, as host controlled thermal management has two temperatures (feature 10h of the NVM Express base
//! specification).

use libm::exp;
use serde::Deserialize;

use events::SpecError;
use events::spec_error::within;
use events::time::Time;

/// What heats a device, how it cools, and when it is throttled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Thermal {
    /// Temperature of an idle device in its place, at which it starts.
    #[schemars(range(max = 200))]
    pub idle_celsius: u32,
    /// How much warmer it is in the end for each watt that it takes besides.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub millikelvin_per_watt: u32,
    /// The time in which it comes to within 1/e of that.
    #[schemars(range(min = 1_000_000, max = TIME_CONSTANT_NS_MAX))]
    pub time_constant_ns: u64,
    /// Energy of a page read of one plane.
    #[schemars(range(max = 1_000_000_000))]
    pub read_nanojoule: u32,
    /// The same of a page of all planes that is programmed.
    #[schemars(range(max = 1_000_000_000))]
    pub program_nanojoule: u32,
    /// The same of a block of all planes that is erased.
    #[schemars(range(max = 1_000_000_000))]
    pub erase_nanojoule: u32,
    /// From this temperature on it is throttled.
    #[schemars(range(max = 200))]
    pub throttle_celsius: u32,
    /// Until it is at this one.
    #[schemars(range(max = 200))]
    pub resume_celsius: u32,
    /// How much longer a die's work takes then.
    #[schemars(range(min = 1000, max = 1_000_000))]
    pub throttle_per_mille: u32,
}

/// A day.
const TIME_CONSTANT_NS_MAX: u64 = 86_400_000_000_000;

/// A device's temperature.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heat {
    spec: Thermal,
    /// Above the idle device, at that time.
    kelvin: f64,
    at: Time,
    throttled: bool,
}

/// What heats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DieHeat {
    Reads(u32),
    Program,
    Erase,
}

impl Thermal {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        within("idle_celsius", u64::from(self.idle_celsius), 0, 200)?;
        let resistance = u64::from(self.millikelvin_per_watt);
        within("millikelvin_per_watt", resistance, 1, 1_000_000)?;
        let constant = self.time_constant_ns;
        within("time_constant_ns", constant, 1_000_000, TIME_CONSTANT_NS_MAX)?;
        for (key, energy) in [
            ("read_nanojoule", self.read_nanojoule),
            ("program_nanojoule", self.program_nanojoule),
            ("erase_nanojoule", self.erase_nanojoule),
        ] {
            within(key, u64::from(energy), 0, 1_000_000_000)?;
        }
        let throttle = u64::from(self.throttle_celsius);
        within("throttle_celsius", throttle, 0, 200)?;
        within("resume_celsius", u64::from(self.resume_celsius), 0, 200)?;
        let times = u64::from(self.throttle_per_mille);
        within("throttle_per_mille", times, 1000, 1_000_000)?;
        match (self.idle_celsius + 1..self.throttle_celsius).contains(&self.resume_celsius) {
            true => Ok(()),
            false => Err(SpecError::of("resume_celsius", "expected above idle_celsius and below throttle_celsius")),
        }
    }
}

impl Heat {
    pub(super) fn new(spec: Thermal) -> Heat {
        Heat { spec, kelvin: 0.0, at: 0, throttled: false }
    }

    /// Heats by what a die begins at `now`, whose time is stretched to what this returns.
    pub(super) fn stretch(&mut self, now: Time, what: DieHeat, work_ns: Time) -> Time {
        let spec = self.spec;
        let nanojoule = match what {
            DieHeat::Reads(pages) => f64::from(spec.read_nanojoule) * f64::from(pages),
            DieHeat::Program => f64::from(spec.program_nanojoule),
            DieHeat::Erase => f64::from(spec.erase_nanojoule),
        };
        let constant_ns = spec.time_constant_ns as f64;
        let resistance = f64::from(spec.millikelvin_per_watt) / 1000.0;
        let cooled = self.cooled(now);
        // K = R * (J / tau); nJ per ns is W.
        self.kelvin = cooled + resistance * nanojoule / constant_ns;
        self.at = self.at.max(now);
        let limit = match self.throttled {
            true => spec.resume_celsius,
            false => spec.throttle_celsius,
        };
        self.throttled = self.celsius(now) >= f64::from(limit);
        match self.throttled {
            true => work_ns * Time::from(spec.throttle_per_mille) / 1000,
            false => work_ns,
        }
    }

    /// Its temperature then, if no die begins anything meanwhile.
    pub(super) fn celsius(&self, now: Time) -> f64 {
        f64::from(self.spec.idle_celsius) + self.cooled(now)
    }

    fn cooled(&self, now: Time) -> f64 {
        let since_ns = now.saturating_sub(self.at) as f64;
        self.kelvin * exp(-since_ns / self.spec.time_constant_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::time::SECOND;
    use proptest::prelude::*;

    fn spec() -> Thermal {
        Thermal {
            idle_celsius: 40,
            millikelvin_per_watt: 10_000,
            time_constant_ns: 60 * SECOND,
            read_nanojoule: 10_000,
            program_nanojoule: 100_000,
            erase_nanojoule: 500_000,
            throttle_celsius: 80,
            resume_celsius: 75,
            throttle_per_mille: 4000,
        }
    }

    /// Programs at that power for so long; the temperature in the end.
    fn after(heat: &mut Heat, from: Time, watt: f64, seconds: u64) -> f64 {
        let step = (f64::from(heat.spec.program_nanojoule) / watt) as Time;
        let mut now = from;
        while now < from + seconds * SECOND {
            now += step;
            heat.stretch(now, DieHeat::Program, 1000);
        }
        heat.celsius(now)
    }

    #[test]
    fn it_warms_to_what_its_power_and_resistance_come_to() {
        let mut heat = Heat::new(spec());
        let third = after(&mut heat, 0, 3.0, 60);
        assert!((third - (40.0 + 30.0 * (1.0 - exp(-1.0)))).abs() < 0.1, "{third}");
        let end = after(&mut heat, 60 * SECOND, 3.0, 600);
        assert!((end - 70.0).abs() < 0.1, "{end}");
        assert!(!heat.throttled);
    }

    #[test]
    fn it_is_throttled_until_it_has_cooled_below_the_other_limit() {
        let mut heat = Heat::new(spec());
        after(&mut heat, 0, 6.0, 120);
        assert!(heat.throttled && heat.celsius(120 * SECOND) >= 80.0);
        assert_eq!(heat.stretch(121 * SECOND, DieHeat::Reads(1), 1000), 4000);
        let mut now = 121 * SECOND;
        while heat.throttled {
            assert!(heat.celsius(now) > 74.9);
            now += SECOND / 10;
            heat.stretch(now, DieHeat::Reads(0), 1000);
        }
        assert!(heat.celsius(now) < 75.0);
        assert_eq!(heat.stretch(now, DieHeat::Reads(0), 1000), 1000);
    }

    proptest! {
        /// How often it is looked at changes nothing, and no idle device is colder than its surroundings.
        #[test]
        fn cooling_is_the_same_in_one_step_and_in_many(
            joule in 1u32..1_000_000_000, steps in 1u64..50, step in 1u64..10_000_000_000,
        ) {
            let mut often = Heat::new(Thermal { program_nanojoule: joule, ..spec() });
            often.stretch(0, DieHeat::Program, 0);
            let mut once = often;
            for number in 1..=steps {
                often.stretch(number * step, DieHeat::Reads(0), 0);
            }
            once.stretch(steps * step, DieHeat::Reads(0), 0);
            prop_assert!((often.kelvin - once.kelvin).abs() <= 1e-9 * once.kelvin.max(1.0));
            prop_assert!(once.kelvin >= 0.0);
        }
    }
}
