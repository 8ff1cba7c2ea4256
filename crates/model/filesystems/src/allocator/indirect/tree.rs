//! Where an inode's pointers are: 12 in itself, 1024 in each indirect block.

/// An indirect block of a file: its level (1 points to data) and its number among those of the level.
pub(super) type Table = (u8, u64);

pub(super) const DIRECT: u64 = 12;
pub(super) const POINTERS: u64 = 1024;

/// The indirect blocks from the inode to a block of the file, in the order in which they are read (`ext2_block_to_path`).
pub(super) fn path(logical: u64) -> ([Table; 3], usize) {
    const NONE: Table = (0, 0);
    if logical < DIRECT {
        return ([NONE; 3], 0);
    }
    let leaf = (logical - DIRECT) / POINTERS;
    if leaf == 0 {
        return ([(1, 0), NONE, NONE], 1);
    }
    let doubled = leaf - 1;
    if doubled < POINTERS {
        return ([(2, 0), (1, leaf), NONE], 2);
    }
    let tripled = doubled - POINTERS;
    ([(3, 0), (2, 1 + tripled / POINTERS), (1, leaf)], 3)
}

/// The first block of the file that the table, of level 1, points to.
pub(super) fn first_block(leaf: u64) -> u64 {
    DIRECT + leaf * POINTERS
}

/// The first of the tables that share a parent with this one; None: its parent is the inode.
pub(super) fn first_sibling((level, number): Table) -> Option<Table> {
    if number == 0 {
        return None;
    }
    // The first of a level hangs from the inode; the others follow it by the 1024.
    Some((level, number - (number - 1) % POINTERS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(logical: u64) -> Vec<Table> {
        let (tables, count) = path(logical);
        tables[..count].to_vec()
    }

    #[test]
    fn twelve_direct_then_1024_then_1024_squared_then_cubed() {
        assert_eq!(of(11), []);
        assert_eq!(of(12), [(1, 0)]);
        assert_eq!(of(12 + 1023), [(1, 0)]);
        assert_eq!(of(12 + 1024), [(2, 0), (1, 1)]);
        assert_eq!(of(12 + 1024 + 1024 * 1024 - 1), [(2, 0), (1, 1024)]);
        let third = 12 + 1024 + 1024 * 1024;
        assert_eq!(of(third), [(3, 0), (2, 1), (1, 1025)]);
        assert_eq!(of(third + 1024 * 1024), [(3, 0), (2, 2), (1, 2049)]);
        assert_eq!(first_block(1), 12 + 1024);
    }

    #[test]
    fn siblings_share_a_parent() {
        assert_eq!(first_sibling((1, 0)), None);
        assert_eq!(first_sibling((2, 0)), None);
        assert_eq!(first_sibling((1, 1024)), Some((1, 1)));
        assert_eq!(first_sibling((1, 2048)), Some((1, 1025)));
        assert_eq!(first_sibling((2, 1024)), Some((2, 1)));
    }
}
