//! One program that searches any of the properties: `PROPERTY` names it.

#![no_main]

use std::sync::LazyLock;

macro_rules! properties {
    ($($name:ident)*) => {
        $(mod $name;)*

        fn property(name: &str) -> fn(&[u8]) {
            match name {
                $(stringify!($name) => $name::check,)*
                _ => panic!("PROPERTY={name} is none of: {}", [$(stringify!($name)),*].join(", ")),
            }
        }
    };
}

properties! {
    blktrace_file event_format filesystem_spec job_spec machine_file nfs_spec perf_ring proc_text ring_page rows
    scheduler_spec toml_lines trace_input units xfs_spec
}

static SEARCHED: LazyLock<fn(&[u8])> =
    LazyLock::new(|| property(&std::env::var("PROPERTY").unwrap_or_default()));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| SEARCHED(bytes));
