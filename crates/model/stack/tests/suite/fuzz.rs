//! The properties of the fuzz targets as ordinary tests: over the seeds, over changed seeds and over generated settings.
//! See `fuzz/README.md`.

use proptest::prelude::*;

#[path = "../../../../../fuzz/changed_seeds.rs"]
mod changed_seeds;
#[path = "../../../../../fuzz/properties/filesystem_spec.rs"]
mod filesystem_spec;
#[path = "../../../../../fuzz/properties/machine_file.rs"]
mod machine_file;
#[path = "../../../../../fuzz/properties/nfs_spec.rs"]
mod nfs_spec;
#[path = "../../../../../fuzz/properties/scheduler_spec.rs"]
mod scheduler_spec;
#[path = "../../../../../fuzz/properties/xfs_spec.rs"]
mod xfs_spec;

use changed_seeds::{changed_seed, seeds};

#[test]
fn hold_for_the_seeds() {
    seeds("scheduler_spec").iter().for_each(|seed| scheduler_spec::check(seed));
    seeds("filesystem_spec").iter().for_each(|seed| filesystem_spec::check(seed));
    seeds("machine_file").iter().for_each(|seed| machine_file::check(seed));
    seeds("nfs_spec").iter().for_each(|seed| nfs_spec::check(seed));
    seeds("xfs_spec").iter().for_each(|seed| xfs_spec::check(seed));
}

/// A good machine with one of its numbers made another.
fn other_machine() -> impl Strategy<Value = String> {
    let device = prop::sample::select(vec!["disk", "array", "lun", "flash"]);
    let edge = prop::sample::select(vec![0, 1, 2, 7, (1 << 31) - 1, 1 << 31, u64::MAX]);
    let number = prop_oneof![edge, any::<u64>(), 0..200_000u64];
    (device, any::<prop::sample::Index>(), number).prop_map(|(device, index, number)| {
        let mut keys = Vec::new();
        numbers("", &machine_file::base(device), &mut keys);
        format!("{device}\n{}={number}", keys[index.index(keys.len())])
    })
}

fn numbers(path: &str, value: &serde_json::Value, keys: &mut Vec<String>) {
    let inside = |key: &str| match path {
        "" => key.to_owned(),
        _ => format!("{path}.{key}"),
    };
    match value {
        serde_json::Value::Object(table) => table.iter().for_each(|(key, value)| numbers(&inside(key), value, keys)),
        serde_json::Value::Array(list) => {
            list.iter().enumerate().for_each(|(number, value)| numbers(&inside(&number.to_string()), value, keys))
        }
        serde_json::Value::Number(_) => keys.push(path.to_owned()),
        _ => {}
    }
}

/// A seed with one of its numbers made another, often at the edge of what is possible.
fn other_number(target: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    let edge = prop::sample::select(vec![0, 1, 2, 7, (1 << 31) - 1, 1 << 31, u64::MAX]);
    let number = prop_oneof![edge, any::<u64>(), 0..2000u64];
    (prop::sample::select(seeds(target)), any::<prop::sample::Index>(), number).prop_map(|(seed, index, number)| {
        let text = String::from_utf8(seed).expect("seeds are text");
        let ends = |at: usize| text[at..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |n| at + n);
        let starts: Vec<usize> =
            text.match_indices(['=', ':']).map(|(at, _)| at + 1).filter(|&at| ends(at) > at).collect();
        if starts.is_empty() {
            return text.into_bytes();
        }
        let start = starts[index.index(starts.len())];
        format!("{}{number}{}", &text[..start], &text[ends(start)..]).into_bytes()
    })
}

proptest! {
    #[test]
    fn a_scheduler_holds_for_changed_seeds(bytes in changed_seed("scheduler_spec")) {
        scheduler_spec::check(&bytes);
    }

    #[test]
    fn a_scheduler_holds_for_other_numbers(bytes in other_number("scheduler_spec")) {
        scheduler_spec::check(&bytes);
    }

    #[test]
    fn a_filesystem_holds_for_changed_seeds(bytes in changed_seed("filesystem_spec")) {
        filesystem_spec::check(&bytes);
    }

    #[test]
    fn a_filesystem_holds_for_other_numbers(bytes in other_number("filesystem_spec")) {
        filesystem_spec::check(&bytes);
    }

    #[test]
    fn a_machine_holds_for_changed_seeds(bytes in changed_seed("machine_file")) {
        machine_file::check(&bytes);
    }

    #[test]
    fn a_machine_holds_for_other_numbers(text in other_machine()) {
        machine_file::check(text.as_bytes());
    }

    #[test]
    fn an_nfs_client_holds_for_changed_seeds(bytes in changed_seed("nfs_spec")) {
        nfs_spec::check(&bytes);
    }

    #[test]
    fn an_nfs_client_holds_for_other_numbers(bytes in other_number("nfs_spec")) {
        nfs_spec::check(&bytes);
    }

    #[test]
    fn an_xfs_filesystem_holds_for_changed_seeds(bytes in changed_seed("xfs_spec")) {
        xfs_spec::check(&bytes);
    }

    #[test]
    fn an_xfs_filesystem_holds_for_other_numbers(bytes in other_number("xfs_spec")) {
        xfs_spec::check(&bytes);
    }
}
