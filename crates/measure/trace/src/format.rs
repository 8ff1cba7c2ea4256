//! Where the fields of an event lie in its record: the kernel's own description, tracefs `events/SYSTEM/NAME/format`.
//!
//! Fields are looked up by name, never by position: kernels move them, rename them and add new ones.

use std::collections::BTreeMap;

/// One kind of event, as the running kernel records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// The event's name, such as `block_rq_issue`.
    pub name: String,
    /// What `common_type` holds in records of this kind. Differs from boot to boot.
    pub id: u16,
    fields: BTreeMap<String, Field>,
}

/// Where a field lies in a record; little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Bytes from the start of the record.
    pub offset: usize,
    /// Length in bytes.
    pub size: usize,
    /// Whether the number has a sign.
    pub signed: bool,
    /// Whether the value or a pointer to it lies there.
    pub placement: Placement,
}

/// Where a field's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The value itself.
    Inline,
    /// `__data_loc`: 16 bits of length and 16 bits of offset in the record.
    Dynamic,
    /// `__rel_loc`: the same, with the offset counted from the end of these 32 bits.
    Relative,
}

/// Why an event can't be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The format has no line of this name.
    #[error("event format without a line `{0}`")]
    NoLine(&'static str),
    /// A line under `format:` is not a field.
    #[error("format of {event}: line {line} is not a field: {text}")]
    NotAField {
        /// The event's name.
        event: String,
        /// The line's number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// The event has none of the fields that the analysis uses.
    #[error("{event} has no field {}", .fields.join(" or "))]
    NoField {
        /// The event's name.
        event: String,
        /// The names that were looked for.
        fields: Vec<String>,
    },
    /// The field has a length that no number has.
    #[error("field {field} of {event} is {size} bytes long: not a number")]
    NotANumber {
        /// The event's name.
        event: String,
        /// The field's name.
        field: String,
        /// Its length in bytes.
        size: usize,
    },
    /// A record is too short for its format.
    #[error("a record of {event} is {length} bytes long and ends before its last field")]
    ShortRecord {
        /// The event's name.
        event: String,
        /// The record's length in bytes.
        length: usize,
    },
    /// The kernel has no such event.
    #[error("no format of an event that the analysis needs: {0}")]
    NoEvent(String),
}

impl EventFormat {
    /// Reads the text of a `format` file.
    pub fn parse(text: &str) -> Result<EventFormat, FormatError> {
        let name = value_of(text, "name:").ok_or(FormatError::NoLine("name:"))?;
        let id = value_of(text, "ID:").and_then(|id| id.parse().ok());
        Ok(EventFormat {
            name: name.to_owned(),
            id: id.ok_or(FormatError::NoLine("ID:"))?,
            fields: fields(text, name)?,
        })
    }

    /// The field `name`.
    pub fn field(&self, name: &str) -> Result<Field, FormatError> {
        self.field_of(&[name])
    }

    /// The first of these fields that there is: names that kernels have given to the same thing.
    pub fn field_of(&self, names: &[&str]) -> Result<Field, FormatError> {
        let found = names.iter().find_map(|name| self.optional(name));
        found.ok_or_else(|| FormatError::NoField {
            event: self.name.clone(),
            fields: names.iter().map(|&name| name.to_owned()).collect(),
        })
    }

    /// A field that some kernels don't have.
    pub fn optional(&self, name: &str) -> Option<Field> {
        self.fields.get(name).copied()
    }

    /// The first of these fields, which must be a number of 1, 2, 4 or 8 bytes.
    pub fn number(&self, names: &[&str]) -> Result<Field, FormatError> {
        let field = self.field_of(names)?;
        if field.placement == Placement::Inline && matches!(field.size, 1 | 2 | 4 | 8) {
            return Ok(field);
        }
        Err(FormatError::NotANumber { event: self.name.clone(), field: names.join(" or "), size: field.size })
    }
}

impl Field {
    /// The first byte after the field.
    pub fn end(&self) -> usize {
        self.offset + self.size
    }

    /// The number in `record`; sign-extended if the field is signed. None if the record is too short or the field is
    /// not a number.
    #[inline]
    pub fn unsigned(&self, record: &[u8]) -> Option<u64> {
        self.signed(record).map(|number| number as u64)
    }

    /// The number in a record, extended to 64 bits by its sign; None if the record is too short or the length is no
    /// number's.
    #[inline]
    pub fn signed(&self, record: &[u8]) -> Option<i64> {
        let bytes = record.get(self.offset..self.end())?;
        Some(match (self.size, self.signed) {
            (1, false) => i64::from(bytes[0]),
            (1, true) => i64::from(bytes[0] as i8),
            (2, false) => i64::from(u16::from_le_bytes(bytes.try_into().ok()?)),
            (2, true) => i64::from(i16::from_le_bytes(bytes.try_into().ok()?)),
            (4, false) => i64::from(u32::from_le_bytes(bytes.try_into().ok()?)),
            (4, true) => i64::from(i32::from_le_bytes(bytes.try_into().ok()?)),
            (8, _) => i64::from_le_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }

    /// The text in `record`, up to its first NUL, wherever the record keeps it.
    #[inline]
    pub fn text<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let bytes = self.bytes(record)?;
        let length = bytes.iter().position(|&byte| byte == 0);
        Some(&bytes[..length.unwrap_or(bytes.len())])
    }

    /// The bytes in `record`, wherever it keeps them.
    #[inline]
    pub fn bytes<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let own = record.get(self.offset..self.end())?;
        if self.placement == Placement::Inline {
            return Some(own);
        }
        let location = u32::from_le_bytes(own.try_into().ok()?);
        let (offset, length) = ((location & 0xffff) as usize, (location >> 16) as usize);
        let base = match self.placement {
            Placement::Relative => self.end(),
            Placement::Inline | Placement::Dynamic => 0,
        };
        record.get(base + offset..base + offset + length)
    }
}

/// A field that is a number, made ready to be read of many records: one load of eight bytes and two shifts, whatever
/// its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    field: Field,
    /// The eight bytes that end with the field, or the first eight.
    start: usize,
    left: u32,
    right: u32,
    mask: u64,
}

impl Number {
    /// The first of these fields of a format.
    pub(crate) fn of(format: &EventFormat, names: &[&str]) -> Result<Number, FormatError> {
        let field = format.number(names)?;
        let (end, bits) = (field.end(), 8 * field.size as u32);
        let mask = if field.signed { u64::MAX } else { u64::MAX >> (u64::BITS - bits) };
        Ok(Number {
            field,
            start: end.saturating_sub(LOADED),
            left: 8 * LOADED.saturating_sub(end) as u32,
            right: u64::BITS - bits,
            mask,
        })
    }

    /// As `Field::unsigned`.
    #[inline]
    pub(crate) fn read(&self, record: &[u8]) -> Option<u64> {
        let loaded = record.get(self.start..self.start + LOADED);
        let Some(Ok(bytes)) = loaded.map(<[u8; LOADED]>::try_from) else {
            return self.field.unsigned(record);
        };
        let shifted = (i64::from_le_bytes(bytes) << self.left) >> self.right;
        Some(shifted as u64 & self.mask)
    }
}

/// The fields that a format text lists, by name.
pub(crate) fn fields(text: &str, event: &str) -> Result<BTreeMap<String, Field>, FormatError> {
    let mut fields = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let Some(declaration) = line.trim_start().strip_prefix("field:") else {
            continue;
        };
        let (name, field) = field_of_line(declaration).ok_or_else(|| FormatError::NotAField {
            event: event.to_owned(),
            line: index + 1,
            text: line.trim().to_owned(),
        })?;
        fields.insert(name.to_owned(), field);
    }
    Ok(fields)
}

/// ` TYPE NAME;  offset:8;  size:4;  signed:0;`
fn field_of_line(declaration: &str) -> Option<(&str, Field)> {
    let mut parts = declaration.split(';').map(str::trim);
    let typed_name = parts.next()?;
    let mut numbers = BTreeMap::new();
    for part in parts.filter(|part| !part.is_empty()) {
        let (key, number) = part.split_once(':')?;
        numbers.insert(key, number);
    }
    let size: usize = numbers.get("size")?.parse().ok()?;
    let offset: usize = numbers.get("offset")?.parse().ok()?;
    // Offsets and lengths within a record have 16 bits; larger ones can only be a broken text.
    if size > LONGEST_RECORD || offset > LONGEST_RECORD {
        return None;
    }
    let placement = match typed_name.split_whitespace().next()? {
        "__data_loc" => Placement::Dynamic,
        "__rel_loc" => Placement::Relative,
        _ => Placement::Inline,
    };
    if placement != Placement::Inline && size != 4 {
        return None;
    }
    let field = Field {
        offset,
        size,
        // Kernels before 2.6.32 don't state it.
        signed: numbers.get("signed").is_some_and(|&signed| signed == "1"),
        placement,
    };
    Some((name_of(typed_name)?, field))
}

/// `char comm[16]` -> `comm`; `__data_loc char[] cmd` -> `cmd`; `char * text` -> `text`.
fn name_of(typed_name: &str) -> Option<&str> {
    let without_length = match typed_name.strip_suffix(']') {
        Some(open) => open.rsplit_once('[')?.0,
        None => typed_name,
    };
    let name = without_length.rsplit(|c: char| c.is_whitespace() || c == '*').next()?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

const LONGEST_RECORD: usize = 1 << 16;

fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.trim())
}

const LOADED: usize = size_of::<u64>();

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_is_what_its_field_holds(
            offset in 0..20usize, size in prop::sample::select(vec![1usize, 2, 4, 8]), signed: bool,
            record in prop::collection::vec(any::<u8>(), 0..32),
        ) {
            let text = format!(
                "name: event\nID: 1\nformat:\n\tfield:int it;\toffset:{offset};\tsize:{size};\tsigned:{};\n",
                u8::from(signed)
            );
            let format = EventFormat::parse(&text).expect("a format");
            let number = Number::of(&format, &["it"]).expect("a number");
            prop_assert_eq!(number.read(&record), format.field("it").expect("a field").unsigned(&record));
        }
    }
}
