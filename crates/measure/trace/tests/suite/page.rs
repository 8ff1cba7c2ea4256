//! Sub-buffers made by hand; `recordings.rs` has real ones.

use std::path::Path;

use trace::page::{LostEvents, Page, PageError};

fn seed(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/ring_page");
    std::fs::read(folder.join(name)).expect("a seed of the repository")
}

type PageContents = (Option<LostEvents>, Vec<(u64, Vec<u8>)>);

fn events(bytes: &[u8]) -> Result<PageContents, PageError> {
    let page = Page::decode(bytes, &crate::support::page_format())?;
    let events = page.events().map(|event| {
        let event = event?;
        Ok((event.at_ns, event.record.to_vec()))
    });
    Ok((page.lost, events.collect::<Result<_, _>>()?))
}

#[test]
fn every_kind_of_entry_moves_the_time_as_the_kernel_means_it() {
    let extended = 1005 + (2 << 27) + 3 + 1;
    let absolute = (100u64 << 27) + 7;
    let expected = vec![(1005, b"abcdefgh".to_vec()), (extended, vec![b'L'; 120]), (absolute + 2, b"last".to_vec())];
    assert_eq!(events(&seed("all_kinds")), Ok((None, expected)));
}

#[test]
fn losses_are_told_with_their_number_where_there_was_room() {
    let last = vec![(1002, b"last".to_vec())];
    assert_eq!(events(&seed("lost_counted")), Ok((Some(LostEvents::Events(77)), last.clone())));
    assert_eq!(events(&seed("lost_uncounted")), Ok((Some(LostEvents::Uncounted), last.clone())));
    assert_eq!(events(&seed("end_padding")), Ok((None, last)));
}

#[test]
fn an_absolute_time_keeps_the_upper_bits_of_the_page() {
    let mut page = seed("all_kinds");
    // Beyond 59 bits: 36 years of nanoseconds since boot, or a clock of the day.
    page[0..8].copy_from_slice(&(3u64 << 60 | 5).to_le_bytes());
    let (_, found) = events(&page).expect("a sound page");
    assert_eq!(found[2].0, (3 << 60) + (100 << 27) + 7 + 2);
}

#[test]
fn what_reaches_beyond_its_page_is_an_error() {
    assert_eq!(events(&[0; 15]), Err(PageError::NoHeader { bytes: 15, header: 16 }));
    let overcommitted = PageError::Overcommitted { committed: 100_000, room: 64 };
    assert_eq!(events(&seed("overcommitted")), Err(overcommitted));
    assert_eq!(events(&seed("truncated")), Err(PageError::Truncated { at: 0, committed: 8 }));
}
