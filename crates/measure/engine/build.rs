//! How the crate is compiled: part of the origin of each figure.

use std::env::var;

fn main() {
    let optimised = var("OPT_LEVEL").is_ok_and(|level| level != "0");
    let checks = var("CARGO_CFG_DEBUG_ASSERTIONS").is_ok();
    let profile = match (optimised, checks) {
        (false, _) => "debug",
        (true, true) => "checked",
        (true, false) => "release",
    };
    println!("cargo::rustc-env=IOLAB_BUILD_PROFILE={profile}");
    println!("cargo::rerun-if-changed=build.rs");
}
