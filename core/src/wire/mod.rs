//! Records on the wire: lines of JSON, lines of CSV or Arrow columns in, columns of text out.
//!
//! A record never depends on its neighbors, so a block may be read in parallel parts. A record that cannot be released
//! becomes a dead letter with a reason that names columns and never quotes a cell.

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
