//! What a cached call of the page cache, and a block from an allocator, cost in wall time:
//! `cargo run --release -p iolab-filesystems --example cache_cost`.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // The model must not look at a clock; its measurement has to.

use std::time::Instant;

use events::Component;
use events::time::MICROSECOND;
use filesystems::allocator::{FilesystemSpec, Kind};
use memory::cache::{CacheSpec, CacheVariant, Effect, Outcome, PageCache};

const CALLS: u64 = 4_000_000;
const PAGE: u64 = 4096;

fn main() {
    for variant in [CacheVariant::Linux2_4, CacheVariant::Linux2_5, CacheVariant::Linux2_6_35] {
        print(&format!("{variant:?} cached read"), cached_reads(variant));
        print(&format!("{variant:?} write, device at once"), writes(variant));
    }
    for kind in [Kind::Ext2, Kind::Ext3, Kind::Ext3Windows] {
        print(&format!("{kind:?} block, two writers"), blocks(kind));
    }
}

fn print(what: &str, calls_per_s: f64) {
    println!("{what:40} {:6.2} million/s", calls_per_s / 1e6);
}

fn cached_reads(variant: CacheVariant) -> f64 {
    let mut cache = PageCache::new(&CacheSpec::new(variant, 1 << 30)).expect("a good specification");
    let mut effects = Vec::new();
    let pages = 100_000;
    cache.set_size(0, pages * PAGE);
    for page in 0..pages {
        while cache.read(0, 1, 0, page * PAGE, PAGE) == Outcome::Wait {
            complete(&mut cache, 0, &mut effects);
        }
    }
    let start = Instant::now();
    for call in 0..CALLS {
        let page = call * 7919 % pages;
        assert_eq!(cache.read(0, 1, 0, page * PAGE, PAGE), Outcome::Done);
    }
    CALLS as f64 / start.elapsed().as_secs_f64()
}

/// Two files in turn, 4 KiB at a time, with what their writeback costs.
fn writes(variant: CacheVariant) -> f64 {
    let mut cache = PageCache::new(&CacheSpec::new(variant, 1 << 30)).expect("a good specification");
    let mut effects = Vec::new();
    let start = Instant::now();
    for call in 0..CALLS {
        let now = call * MICROSECOND;
        let (file, offset) = ((call % 2) as u32, call / 2 * PAGE);
        while cache.write(now, 1, file, offset, PAGE) == Outcome::Wait {
            turn(&mut cache, now, &mut effects);
        }
        turn(&mut cache, now, &mut effects);
    }
    CALLS as f64 / start.elapsed().as_secs_f64()
}

fn turn(cache: &mut PageCache, now: u64, effects: &mut Vec<Effect>) {
    while cache.next_event().is_some_and(|at| at <= now) {
        cache.advance(now);
        complete(cache, now, effects);
    }
}

/// A device that is done with everything at once.
fn complete(cache: &mut PageCache, now: u64, effects: &mut Vec<Effect>) {
    loop {
        cache.take_effects(effects);
        let io = effects.iter().filter_map(|effect| match effect {
            Effect::Io(io) => Some(io.tag),
            Effect::Unplug | Effect::Wake(_) | Effect::Start(_) | Effect::Journaled { .. } => None,
        });
        let tags: Vec<u32> = io.collect();
        effects.clear();
        if tags.is_empty() {
            return;
        }
        for tag in tags {
            cache.completed(now, tag);
        }
    }
}

fn blocks(kind: Kind) -> f64 {
    let spec = FilesystemSpec {
        kind,
        blocks: 2 * CALLS,
        group_metadata_blocks: 516,
        group_inodes: 16384,
        start_colours: true,
        preallocated_blocks: 0,
    };
    let mut filesystem = spec.build().expect("a good specification");
    filesystem.create(0, 0);
    filesystem.create(1, 0);
    let start = Instant::now();
    for call in 0..CALLS {
        let file = (call % 2) as u32;
        filesystem.allocate(file, file, call / 2, 1).expect("half of it is free");
    }
    CALLS as f64 / start.elapsed().as_secs_f64()
}
