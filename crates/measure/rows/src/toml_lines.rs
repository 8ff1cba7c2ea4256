//! On which line of a TOML file each key and each element of an array stands.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What a node is called in the table or array around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// The key of a table, quotes and escapes read.
    Key(String),
    /// The number of an array's element.
    Element(usize),
}

/// A key or an element of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The number of the node around it, always a lower one; `None` at the top of the file.
    pub parent: Option<usize>,
    /// Its own part of the path.
    pub name: Name,
    /// From 1.
    pub line: usize,
}

/// Every key and element of the file. A table stands at its own header if it has one, else where it is first named.
///
/// # Errors
///
/// What is wrong with a text that is no TOML.
pub fn nodes(text: &str) -> Result<Vec<Node>, String> {
    let document = DeTable::parse(text).map_err(|error| error.message().to_owned())?;
    let newlines = text.match_indices('\n').map(|(at, _)| at).collect();
    let mut found = TomlScan { newlines, nodes: Vec::new() };
    found.table(None, document.get_ref());
    Ok(found.nodes)
}

struct TomlScan {
    newlines: Vec<usize>,
    nodes: Vec<Node>,
}

impl TomlScan {
    /// No deeper than the parser lets a file nest.
    fn table(&mut self, parent: Option<usize>, table: &DeTable<'_>) {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let name = Name::Key(Cow::clone(key.get_ref()).into_owned());
            self.add(parent, name, key.span().start, value);
        }
    }

    fn add(&mut self, parent: Option<usize>, name: Name, at: usize, value: &Spanned<DeValue<'_>>) {
        let line = 1 + self.newlines.partition_point(|&newline| newline < at);
        let this = Some(self.nodes.len());
        self.nodes.push(Node { parent, name, line });
        match value.get_ref() {
            DeValue::Table(table) => self.table(this, table),
            DeValue::Array(elements) => {
                for (number, element) in elements.iter().enumerate() {
                    let at = element.span().start;
                    self.add(this, Name::Element(number), at, element);
                }
            }
            _ => {}
        }
    }
}
