use std::io::Write;

use super::*;

fn extent(logical: u64, physical: Option<u64>, length: u64, flags: u32) -> Extent {
    Extent {
        logical,
        physical,
        length,
        flags,
    }
}

const BLOCK: u64 = 4096;

fn map(size_bytes: u64, extents: Vec<Extent>) -> Map {
    Map {
        method: Method::Fiemap,
        device: "7:0".into(),
        size_bytes,
        block_bytes: BLOCK,
        extents_of_filesystem: extents.len() as u64,
        complete: true,
        extents: touching_together(extents),
    }
}

#[test]
fn extents_that_touch_are_one() {
    let unwritten = FLAGS[0].1;
    let found = touching_together(vec![
        extent(0, Some(BLOCK), BLOCK, 0),
        extent(BLOCK, Some(2 * BLOCK), BLOCK, 0),
        extent(2 * BLOCK, Some(3 * BLOCK), BLOCK, unwritten),
        extent(3 * BLOCK, Some(9 * BLOCK), BLOCK, unwritten),
        extent(9 * BLOCK, Some(10 * BLOCK), BLOCK, unwritten),
    ]);
    let pieces: Vec<_> = found.iter().map(|one| one.length / BLOCK).collect();
    assert_eq!(pieces, [2, 1, 1, 1]);
}

#[test]
fn extents_without_a_place_never_touch() {
    let found = touching_together(vec![
        extent(0, None, BLOCK, 0),
        extent(BLOCK, None, BLOCK, 0),
    ]);
    assert_eq!(found.len(), 2);
}

#[test]
fn holes_ends_and_flags_are_counted_in_bytes() {
    let unwritten = FLAGS[0].1;
    let layout = map(
        10 * BLOCK - 100,
        vec![
            extent(0, Some(100 * BLOCK), 2 * BLOCK, 0),
            extent(8 * BLOCK, Some(200 * BLOCK), 4 * BLOCK, unwritten),
        ],
    )
    .layout(1);
    assert_eq!(layout.mapped_bytes, 6 * BLOCK);
    assert_eq!(layout.beyond_end_bytes, 2 * BLOCK);
    assert_eq!(layout.hole_bytes, Some(6 * BLOCK));
    assert_eq!(layout.bytes_by_flag, [("unwritten", 4 * BLOCK)]);
    assert_eq!(layout.listed, [(0, Some(100 * BLOCK), 2 * BLOCK, vec![])]);
    assert_eq!(layout.extents, 2);
}

#[test]
fn an_empty_file_has_nothing() {
    let layout = map(0, vec![]).layout(9);
    assert_eq!(
        (layout.extents, layout.hole_bytes, layout.mapped_bytes),
        (0, Some(0), 0)
    );
}

#[test]
fn a_missing_file_is_named_and_the_others_are_read() {
    let path = std::env::temp_dir().join(format!("iolab-extents-{}", std::process::id()));
    let mut file = File::create(&path).unwrap();
    file.write_all(&[1; 3 * BLOCK as usize]).unwrap();
    let paths = [PathBuf::from("/nonexistent/file"), path.clone()];
    let bounds = Bounds {
        extents_max: 100,
        listed_max: 100,
        method: None,
    };
    let found = examine(&paths, bounds);
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(
        &found.files[0].found,
        Found::Refused {
            errno: libc::ENOENT,
            ..
        }
    ));
    match &found.files[1].found {
        Found::Layout(layout) => assert!(layout.mapped_bytes >= 3 * BLOCK),
        // The directory for temporary files may lie in memory.
        Found::Refused { absent, .. } => assert!(absent.contains("no extents"), "{absent}"),
    }
}
