//! Sums of the numbers in a table, by the texts of some of its columns.

use xxhash_rust::xxh3::xxh3_64;

use crate::UnreadLine;
use crate::entry::Style;

/// Stands between the texts of a key; no UTF-8 has it.
pub const BETWEEN: u8 = 0xff;

/// What a column of the table contributes to the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Rows with the same texts here are one group.
    Key,
    /// Counted and summed per group.
    Number,
    /// Not read.
    Ignored,
}

/// How a table is written, and what is wanted of it.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The byte between two columns.
    pub separator: u8,
    /// Point or comma.
    pub decimal: u8,
    /// The role of each column, from the left.
    pub columns: Vec<Role>,
    /// This many bytes of the file are a batch, whose number joins the key; 0: no batches.
    pub batch_bytes: u64,
}

/// What the rows of a key came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Group<'a> {
    /// The key's texts with `BETWEEN` between, then the batch's number.
    pub key: &'a [u8],
    /// Where its first row starts in the file.
    pub offset: u64,
    /// How many rows have this key.
    pub rows: u64,
    /// A count and a sum per number column. What is missing is not counted.
    pub counts: &'a [u64],
    /// The sum of each number column, in the order of the columns.
    pub sums: &'a [f64],
}

/// The groups found up to here; partial results of several threads merge into one.
#[derive(Clone, Debug)]
pub struct Groups {
    layout: Layout,
    numbers: usize,
    keys: Vec<Box<[u8]>>,
    offsets: Vec<u64>,
    rows: Vec<u64>,
    counts: Vec<u64>,
    sums: Vec<f64>,
    /// Open addressing; a group's place and 1, 0 for none. At most half are taken.
    slots: Vec<u32>,
    hashes: Vec<u64>,
    /// The key of the line that is being read.
    key: Vec<u8>,
    values: Vec<f64>,
}

const SLOTS_AT_FIRST: usize = 1 << 10;

impl Groups {
    /// No groups yet, for a table with this `layout`.
    pub fn new(layout: Layout) -> Groups {
        let numbers = layout.columns.iter().filter(|&&role| role == Role::Number).count();
        Groups {
            layout,
            numbers,
            keys: Vec::new(),
            offsets: Vec::new(),
            rows: Vec::new(),
            counts: Vec::new(),
            sums: Vec::new(),
            slots: vec![0; SLOTS_AT_FIRST],
            hashes: Vec::new(),
            key: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Adds whole lines, the first of which starts at `offset` of the file. After an error, what the lines before it
    /// came to is still there.
    pub fn add(&mut self, lines: &[u8], offset: u64) -> Result<(), UnreadLine> {
        let mut at = 0;
        while at < lines.len() {
            let here = offset + at as u64;
            at = self.line(lines, at, here).ok_or(UnreadLine { offset: here })?;
        }
        Ok(())
    }

    /// Adds what later lines of the same file came to.
    pub fn merge(&mut self, later: &Groups) {
        for group in later.iter() {
            let place = self.place_of(group.key, xxh3_64(group.key), group.offset);
            self.rows[place] += group.rows;
            let cells = place * self.numbers..(place + 1) * self.numbers;
            for (ours, theirs) in self.counts[cells.clone()].iter_mut().zip(group.counts) {
                *ours += theirs;
            }
            for (ours, theirs) in self.sums[cells].iter_mut().zip(group.sums) {
                *ours += theirs;
            }
        }
    }

    /// In the order in which they first appeared.
    pub fn iter(&self) -> impl Iterator<Item = Group<'_>> {
        self.keys.iter().enumerate().map(|(place, key)| {
            let cells = place * self.numbers..(place + 1) * self.numbers;
            Group {
                key,
                offset: self.offsets[place],
                rows: self.rows[place],
                counts: &self.counts[cells.clone()],
                sums: &self.sums[cells],
            }
        })
    }

    /// Adds the line at `begin`; where the next one starts, `None` if it can't be read.
    #[inline]
    fn line(&mut self, lines: &[u8], begin: usize, offset: u64) -> Option<usize> {
        match lines[begin..] {
            [b'\n', ..] => return Some(begin + 1),
            [b'\r', b'\n', ..] => return Some(begin + 2),
            _ => {}
        }
        let style = Style { separator: self.layout.separator, decimal: self.layout.decimal };
        self.key.clear();
        self.values.clear();
        let mut at = begin;
        let last = self.layout.columns.len() - 1;
        for (column, role) in self.layout.columns.iter().enumerate() {
            let end = match role {
                Role::Number => {
                    let (number, end) = style.number(lines, at)?;
                    self.values.push(number);
                    end
                }
                Role::Key => {
                    let (text, end) = style.text(lines, at)?;
                    self.key.extend_from_slice(text);
                    self.key.push(BETWEEN);
                    end
                }
                Role::Ignored => style.text(lines, at)?.1,
            };
            let is_line_end = lines.get(end).is_none_or(|&byte| byte == b'\n');
            if is_line_end != (column == last) {
                return None;
            }
            at = end + 1;
        }
        if let Some(batch) = offset.checked_div(self.layout.batch_bytes) {
            self.key.extend_from_slice(batch.to_string().as_bytes());
        } else {
            self.key.pop();
        }
        self.take(offset);
        Some(at)
    }

    #[inline]
    fn take(&mut self, offset: u64) {
        let key = std::mem::take(&mut self.key);
        let place = self.place_of(&key, xxh3_64(&key), offset);
        self.key = key;
        self.rows[place] += 1;
        let first = place * self.numbers;
        let cells = self.counts[first..].iter_mut().zip(&mut self.sums[first..]);
        for ((count, sum), &value) in cells.zip(&self.values) {
            if !value.is_nan() {
                *count += 1;
                *sum += value;
            }
        }
    }

    /// The place of a group that is there, or is made.
    #[inline]
    fn place_of(&mut self, key: &[u8], hash: u64, offset: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while let Some(place) = (self.slots[slot] as usize).checked_sub(1) {
            if self.hashes[place] == hash && *self.keys[place] == *key {
                return place;
            }
            slot = (slot + 1) & mask;
        }
        self.keys.push(key.into());
        self.hashes.push(hash);
        self.offsets.push(offset);
        self.rows.push(0);
        self.counts.resize(self.keys.len() * self.numbers, 0);
        self.sums.resize(self.keys.len() * self.numbers, 0.0);
        self.slots[slot] = self.keys.len() as u32;
        if self.keys.len() * 2 > self.slots.len() {
            self.spread();
        }
        self.keys.len() - 1
    }

    /// Doubles the slots.
    fn spread(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        self.slots = vec![0; mask + 1];
        for (place, &hash) in self.hashes.iter().enumerate() {
            let mut slot = hash as usize & mask;
            while self.slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = place as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn layout(columns: &[Role]) -> Layout {
        Layout { separator: b',', decimal: b'.', columns: columns.to_vec(), batch_bytes: 0 }
    }

    const KEY_AND_NUMBER: [Role; 2] = [Role::Key, Role::Number];

    #[test]
    fn a_group_sums_its_rows_and_keeps_what_is_missing_apart() {
        let mut groups = Groups::new(layout(&[Role::Key, Role::Ignored, Role::Key, Role::Number]));
        groups.add(b"a,x,1,2.5\r\n\nb,x,1,7\n\"a\",y,1,\na,\"y, z\",1,4", 100).expect("a table");
        let found: Vec<_> = groups.iter().collect();
        assert_eq!(found[0].key, b"a\xff1");
        assert_eq!((found[0].offset, found[0].rows), (100, 3));
        assert_eq!((found[0].counts, found[0].sums), (&[2][..], &[6.5][..]));
        assert_eq!((found[1].key, found[1].offset), (&b"b\xff1"[..], 112));
    }

    #[test]
    fn a_line_that_is_not_as_the_others_is_named() {
        for bad in ["b,2,3\n", "b\n", "b,fast\n", " \"b\",2\n", "\"b,2\n", "\"b\"x,2\n"] {
            let mut groups = Groups::new(layout(&KEY_AND_NUMBER));
            let text = format!("a,1\n{bad}c,3\n");
            assert_eq!(groups.add(text.as_bytes(), 10), Err(UnreadLine { offset: 14 }), "{bad}");
        }
    }

    #[test]
    fn batches_are_told_by_their_place_in_the_file() {
        let mut groups = Groups::new(Layout { batch_bytes: 8, ..layout(&KEY_AND_NUMBER) });
        groups.add(b"a,1\na,2\na,3\n", 0).expect("a table");
        let found: Vec<_> = groups.iter().map(|group| (group.key, group.sums[0])).collect();
        assert_eq!(found, [(&b"a\xff0"[..], 3.0), (&b"a\xff1"[..], 3.0)]);
    }

    proptest! {
        /// Whole numbers, whose sums are exact in any order.
        #[test]
        fn pieces_come_to_what_a_map_says(
            rows in prop::collection::vec((0u32..3000, -1000i32..1000), 0..4000),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut expected: BTreeMap<String, (u64, f64)> = BTreeMap::new();
            for (key, value) in &rows {
                let cell = expected.entry(key.to_string()).or_default();
                *cell = (cell.0 + 1, cell.1 + f64::from(*value));
            }
            let lines: Vec<_> = rows.iter().map(|(key, value)| format!("{key},{value}\n")).collect();
            let cut = cut.index(lines.len() + 1);
            let (first, second) = (lines[..cut].concat(), lines[cut..].concat());
            let mut groups = Groups::new(layout(&KEY_AND_NUMBER));
            groups.add(first.as_bytes(), 0).expect("a table");
            let mut later = Groups::new(layout(&KEY_AND_NUMBER));
            later.add(second.as_bytes(), first.len() as u64).expect("a table");
            groups.merge(&later);
            let found: BTreeMap<_, _> = groups
                .iter()
                .map(|group| (String::from_utf8_lossy(group.key).into_owned(), (group.rows, group.sums[0])))
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
