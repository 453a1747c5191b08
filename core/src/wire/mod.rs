//! Records as they come over the wire: lines of JSON, lines of CSV or Arrow columns in, columns of text out.
//!
//! What a record is never depends on its neighbours, so a block may be read in parts, each on a core of its own. A record that
//! cannot be released is set aside with a reason that names columns and never quotes a cell.

pub mod csv;
pub mod json;
pub mod number;
pub mod parts;
pub mod rows;
pub mod rules;
mod scan;
pub mod table;

#[cfg(feature = "python")]
pub mod py;
