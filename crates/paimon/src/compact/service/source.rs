//! Which tables a service compacts.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use paimon_format::options::Options;

use crate::catalog::{Catalog, Identifier};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::table::Table;

/// Which tables a service compacts.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a service has one")]
pub enum TableSource {
    /// This one.
    One(Table),
    /// Those of a catalog whose names fit, also tables that are made later.
    Matching {
        /// Where they are.
        catalog: Arc<dyn Catalog>,
        /// What they are called.
        pattern: TablePattern,
        /// Options for their use.
        options: Options,
        /// What they share.
        context: Context,
    },
}

impl TableSource {
    pub(super) fn context(&self) -> &Context {
        match self {
            Self::One(table) => table.context(),
            Self::Matching { context, .. } => context,
        }
    }

    /// The names of the tables of a catalog. Errors: those of the catalog.
    pub(super) async fn identifiers(catalog: &dyn Catalog, pattern: &TablePattern) -> Result<Vec<Identifier>> {
        let mut found = Vec::new();
        for database in catalog.list_databases().await? {
            for table in catalog.list_tables(&database).await? {
                let identifier = Identifier::new(&database, table);
                if pattern.matches(&identifier) {
                    found.push(identifier);
                }
            }
        }
        Ok(found)
    }
}

/// Names of tables: `database.table`, in which `*` stands for any characters and `?` for one; several are separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePattern {
    text: String,
    alternatives: Vec<(Vec<char>, Vec<char>)>,
}

impl TablePattern {
    /// Whether a table's name fits.
    pub fn matches(&self, identifier: &Identifier) -> bool {
        let database: Vec<char> = identifier.database.chars().collect();
        let table: Vec<char> = identifier.table.chars().collect();
        let mut alternatives = self.alternatives.iter();
        alternatives.any(|(of_database, of_table)| fits(of_database, &database) && fits(of_table, &table))
    }
}

impl FromStr for TablePattern {
    type Err = Error;

    /// Errors: `Invalid` for a part that is not `database.table`.
    fn from_str(text: &str) -> Result<Self> {
        let alternatives = text.split(',').map(|part| match part.trim().split_once('.') {
            Some((database, table)) if !database.is_empty() && !table.is_empty() => {
                Ok((database.chars().collect(), table.chars().collect()))
            }
            _ => Err(Error::invalid(format!(
                "{part:?}: expected a pattern database.table, such as shop.* or *.orders_??"
            ))),
        });
        Ok(Self {
            text: text.to_owned(),
            alternatives: alternatives.collect::<Result<_>>()?,
        })
    }
}

impl fmt::Display for TablePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Goes back to the last `*` only: linear in the name for each.
fn fits(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut of_name) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(char) = name.get(of_name) {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, of_name));
                at += 1;
            }
            Some(expected) if *expected == '?' || expected == char => {
                at += 1;
                of_name += 1;
            }
            _ => match star {
                Some((after, taken)) => {
                    star = Some((after, taken + 1));
                    at = after + 1;
                    of_name = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(|char| *char == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_names_of_databases_and_tables() {
        let fits = |pattern: &str, name: &str| {
            let pattern: TablePattern = pattern.parse().unwrap();
            pattern.matches(&Identifier::parse(name).unwrap())
        };
        assert!(fits("shop.*", "shop.orders"));
        assert!(fits("*.orders", "shop.orders"));
        assert!(fits("*.*", "shop.orders"));
        assert!(fits("a.b, s*p.o*r?", "shop.orders_ro"));
        assert!(fits("shop.*a*b", "shop.xaabab"));
        assert!(!fits("shop.*a*b", "shop.xaaba"));
        assert!(!fits("shop.orders", "shop.orders2"));
        assert!(!fits("shop.order?", "shop.order"));
    }

    #[test]
    fn a_pattern_has_two_parts() {
        let error = "shop".parse::<TablePattern>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"shop\": expected a pattern database.table, such as shop.* or *.orders_??"
        );
    }
}
