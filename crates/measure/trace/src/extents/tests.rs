use super::*;

fn extent(logical: u64, physical: Option<u64>, length: u64, flags: u32) -> Extent {
    Extent { logical, physical, length, flags }
}

const BLOCK: u64 = 4096;

fn layout(size_bytes: u64, extents: &[Extent]) -> Layout {
    let map = FileMap {
        method: Method::Fiemap,
        device: "7:0".into(),
        size_bytes,
        block_bytes: BLOCK,
        complete: true,
        extents: extents.to_vec(),
    };
    map.layout(&touching_together(extents), 1)
}

#[test]
fn extents_that_touch_are_one() {
    let unwritten = FLAGS[0].1;
    let found = touching_together(&[
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
    let found = touching_together(&[extent(0, None, BLOCK, 0), extent(BLOCK, None, BLOCK, 0)]);
    assert_eq!(found.len(), 2);
}

#[test]
fn holes_ends_and_flags_are_counted_in_bytes() {
    let unwritten = FLAGS[0].1;
    let layout = layout(
        10 * BLOCK - 100,
        &[extent(0, Some(100 * BLOCK), 2 * BLOCK, 0), extent(8 * BLOCK, Some(200 * BLOCK), 4 * BLOCK, unwritten)],
    );
    assert_eq!(layout.mapped_bytes, 6 * BLOCK);
    assert_eq!(layout.beyond_end_bytes, 2 * BLOCK);
    assert_eq!(layout.hole_bytes, Some(6 * BLOCK));
    assert_eq!(layout.bytes_by_flag, [("unwritten", 4 * BLOCK)]);
    assert_eq!(layout.listed, [(0, Some(100 * BLOCK), 2 * BLOCK, vec![])]);
    assert_eq!(layout.extents, 2);
}

#[test]
fn an_empty_file_has_nothing() {
    let layout = layout(0, &[]);
    assert_eq!((layout.extents, layout.hole_bytes, layout.mapped_bytes), (0, Some(0), 0));
}
