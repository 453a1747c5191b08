//! Records as the veil needs them: keyed hashes of persons, codes of values and published labels, strata of the prior.
//!
//! The caller teaches the code of each raw text once. A batch with unknown texts is not read; the unknown texts are
//! returned.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::column::{Cell, Column};
use super::fast_hash::FastHash;
use super::hash::{Hasher, text_of};

/// Longer texts are stored whole.
const SHORT: usize = 64;

/// Codes of one column by raw text; several texts may share a code.
#[derive(Default)]
struct Field {
    codes: HashMap<Vec<u8>, i32, FastHash>,
    missing: Option<i32>,
    /// How many leading characters decide, with the length, the code of a text; none: all of them.
    leading: Option<usize>,
}

impl Field {
    fn code(&self, cell: &Cell) -> Option<i32> {
        match cell {
            Cell::Null => self.missing,
            Cell::Text(text) => self.find(text),
            other => self.find(&text_of(other)),
        }
    }

    fn find(&self, text: &[u8]) -> Option<i32> {
        self.with_key(text, |key| self.codes.get(key).copied())
    }

    fn learn(&mut self, text: &[u8], code: i32) {
        let key = self.with_key(text, <[u8]>::to_vec);
        self.codes.insert(key, code);
    }

    /// Passes the key of a text: characters that do not count are replaced by stars.
    fn with_key<T>(&self, text: &[u8], with: impl FnOnce(&[u8]) -> T) -> T {
        match self.leading {
            Some(leading) if leading < text.len() && text.len() <= SHORT && text.is_ascii() => {
                let mut key = [b'*'; SHORT];
                key[..leading].copy_from_slice(&text[..leading]);
                with(&key[..text.len()])
            }
            _ => with(text),
        }
    }

    /// Codes of a whole column, or the raw values without a code, in order of occurrence.
    fn read(&self, column: &Column) -> Result<Vec<i32>, Vec<Raw>> {
        let cells = || (0..column.len()).map(|row| column.cell(row));
        let codes: Option<Vec<i32>> = cells().map(|cell| self.code(&cell)).collect();
        codes.ok_or_else(|| self.unknown(cells()))
    }

    /// Raw values without a code, one per key.
    fn unknown<'a>(&self, cells: impl Iterator<Item = Cell<'a>>) -> Vec<Raw> {
        let (mut met, mut unknown) = (HashSet::<Option<Vec<u8>>, FastHash>::default(), Vec::new());
        for cell in cells.filter(|cell| self.code(cell).is_none()) {
            let raw = (cell != Cell::Null).then(|| text_of(&cell));
            let key = raw.as_ref().map(|text| self.with_key(text, <[u8]>::to_vec));
            if met.insert(key) {
                unknown.push(raw.map(Cow::into_owned));
            }
        }
        unknown
    }
}

/// The text of a cell, none if it is missing.
pub type Raw = Option<Vec<u8>>;

pub struct Coder {
    hasher: Hasher,
    fields: Vec<Field>,
    /// Fields whose codes together determine a stratum of the prior.
    by: Vec<usize>,
    strata: HashMap<Vec<i32>, u32, FastHash>,
}

/// The columns of a batch.
pub struct Columns<'a> {
    pub person: Column<'a>,
    pub household: Option<Column<'a>>,
    pub fields: Vec<Column<'a>>,
}

/// A batch as codes.
pub struct CodedRecords {
    pub persons: Vec<u64>,
    pub households: Option<Vec<u64>>,
    pub codes: Vec<Vec<i32>>,
    pub strata: Vec<u32>,
}

impl CodedRecords {
    /// Codes of the sensitive values, the last field.
    pub fn values(&self) -> &[i32] {
        self.codes.last().map_or(&[], |codes| codes)
    }
}

/// Why a batch is not read.
pub enum Unread {
    /// Persons or households that may have several written forms.
    Names,
    /// Records without a person or a household.
    Nobody(usize),
    /// Raw values without a code, by field.
    Values(Vec<(usize, Vec<Raw>)>),
    /// Codes of the fields without a known stratum.
    Combinations(Vec<Vec<i32>>),
}

impl Coder {
    /// One field per entry of `leading`: how many characters decide, with the length, the code of a text.
    pub fn new(key: [u8; 32], leading: &[Option<usize>], by: Vec<usize>) -> Option<Self> {
        let field = |&leading: &Option<usize>| Field {
            leading,
            ..Field::default()
        };
        by.iter()
            .all(|&field| field < leading.len())
            .then(|| Coder {
                hasher: Hasher::new(key),
                fields: leading.iter().map(field).collect(),
                by,
                strata: HashMap::default(),
            })
    }

    /// Sets the code of a raw value of a field.
    pub fn learn(&mut self, field: usize, raw: Raw, code: i32) -> Option<()> {
        let field = self.fields.get_mut(field)?;
        match raw {
            None => field.missing = Some(code),
            Some(text) => field.learn(&text, code),
        }
        Some(())
    }

    /// Sets the stratum of a combination of codes.
    pub fn learn_stratum(&mut self, codes: Vec<i32>, stratum: u32) {
        self.strata.insert(codes, stratum);
    }

    /// Forgets everything that was taught; earlier codes are invalid.
    pub fn forget(&mut self) {
        for field in &mut self.fields {
            field.codes.clear();
            field.missing = None;
        }
        self.strata.clear();
    }

    pub fn fields(&self) -> usize {
        self.fields.len()
    }

    /// The largest number of raw values stored for one field.
    pub fn cache_size(&self) -> usize {
        self.fields
            .iter()
            .map(|field| field.codes.len())
            .max()
            .unwrap_or(0)
    }

    /// A batch as codes; `normalized`: each person and household has one written form.
    pub fn read(&self, columns: &Columns, normalized: bool) -> Result<CodedRecords, Unread> {
        let mut names = std::iter::once(&columns.person).chain(&columns.household);
        if !normalized && !names.all(Column::is_plain) {
            return Err(Unread::Names);
        }
        let (persons, missing) = self.hasher.persons(&columns.person);
        let (households, alone) = columns
            .household
            .as_ref()
            .map(|household| self.hasher.persons(household))
            .unzip();
        if missing + alone.unwrap_or(0) > 0 {
            return Err(Unread::Nobody(missing + alone.unwrap_or(0)));
        }
        let (mut codes, mut unknown) = (Vec::new(), Vec::new());
        for (at, (field, column)) in self.fields.iter().zip(&columns.fields).enumerate() {
            match field.read(column) {
                Ok(own) => codes.push(own),
                Err(raw) => unknown.push((at, raw)),
            }
        }
        if !unknown.is_empty() {
            return Err(Unread::Values(unknown));
        }
        let strata = self
            .strata_of(&codes, persons.len())
            .map_err(Unread::Combinations)?;
        Ok(CodedRecords {
            persons,
            households,
            codes,
            strata,
        })
    }

    fn strata_of(&self, codes: &[Vec<i32>], size: usize) -> Result<Vec<u32>, Vec<Vec<i32>>> {
        let by: Vec<&[i32]> = self.by.iter().map(|&field| &codes[field][..]).collect();
        let mut key = vec![0; by.len()];
        let (mut strata, mut unknown) = (Vec::with_capacity(size), HashSet::new());
        for record in 0..size {
            for (part, column) in key.iter_mut().zip(&by) {
                *part = column[record];
            }
            match self.strata.get(&key) {
                Some(&stratum) => strata.push(stratum),
                None => {
                    unknown.insert(key.clone());
                }
            }
        }
        if unknown.is_empty() {
            Ok(strata)
        } else {
            Err(unknown.into_iter().collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::*;

    #[test]
    fn unknown_values_are_returned_and_read_once_taught() {
        let mut coder = Coder::new([1; 32], &[None; 2], vec![1]).unwrap();
        let who = Sample::text(&[Some("p"), Some("q"), Some("p")]);
        let ill = Sample::text(&[Some("x"), None, Some("x")]);
        let age = Sample::ints(&[30, 31, 30]);
        let columns = Columns {
            person: who.column().unwrap(),
            household: None,
            fields: vec![ill.column().unwrap(), age.column().unwrap()],
        };
        let Err(Unread::Values(values)) = coder.read(&columns, false) else {
            panic!()
        };
        let raw = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(
            values,
            [(0, vec![raw("x"), None]), (1, vec![raw("30"), raw("31")])]
        );
        for (field, text, code) in [
            (0, raw("x"), -1),
            (0, None, 7),
            (1, raw("30"), 0),
            (1, raw("31"), 0),
        ] {
            coder.learn(field, text, code).unwrap();
        }
        let Err(Unread::Combinations(strata)) = coder.read(&columns, false) else {
            panic!()
        };
        assert_eq!(strata, [[0]]);
        coder.learn_stratum(vec![0], 5);
        let coded = coder.read(&columns, false).ok().unwrap();
        assert_eq!(
            (coded.codes, coded.strata),
            (vec![vec![-1, 7, -1], vec![0, 0, 0]], vec![5, 5, 5])
        );
        assert!(coded.persons[0] == coded.persons[2] && coded.persons[0] != coded.persons[1]);
        assert_eq!(coder.cache_size(), 2);
        coder.forget();
        assert!(matches!(
            coder.read(&columns, false),
            Err(Unread::Values(_))
        ));
    }

    #[test]
    fn texts_with_the_same_key_are_taught_once() {
        let mut coder = Coder::new([1; 32], &[Some(2)], vec![]).unwrap();
        coder.learn_stratum(vec![], 0);
        let long = "81".repeat(40);
        let texts = [
            "81234",
            "81999",
            "812",
            "8",
            "\u{fc}1234",
            "\u{fc}1235",
            &long,
        ];
        let who = Sample::text(&[Some("p"); 7]);
        let places = Sample::text(&texts.map(Some));
        let columns = Columns {
            person: who.column().unwrap(),
            household: None,
            fields: vec![places.column().unwrap()],
        };
        let Err(Unread::Values(values)) = coder.read(&columns, false) else {
            panic!()
        };
        assert_eq!(values[0].1.len(), 6);
        for (code, raw) in (0..).zip(values[0].1.clone()) {
            coder.learn(0, raw, code).unwrap();
        }
        let coded = coder.read(&columns, false).ok().unwrap();
        assert_eq!(coded.values(), [0, 0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn records_without_a_person_are_counted() {
        let coder = Coder::new([1; 32], &[], vec![]).unwrap();
        let who = Sample::text(&[Some("p"), None]);
        let columns = Columns {
            person: who.column().unwrap(),
            household: Some(who.column().unwrap()),
            fields: vec![],
        };
        assert!(matches!(
            coder.read(&columns, false),
            Err(Unread::Nobody(2))
        ));
        assert!(Coder::new([1; 32], &[None], vec![1]).is_none());
    }

    #[test]
    fn names_with_several_written_forms_are_reported() {
        let mut coder = Coder::new([1; 32], &[], vec![]).unwrap();
        coder.learn_stratum(vec![], 0);
        let (plain, other) = (Sample::text(&[Some("p")]), Sample::text(&[Some("p.0")]));
        for (person, household, unknown) in [
            (&plain, None, false),
            (&other, None, true),
            (&plain, Some(&other), true),
        ] {
            let columns = Columns {
                person: person.column().unwrap(),
                household: household.map(|household| household.column().unwrap()),
                fields: vec![],
            };
            let read = coder.read(&columns, false);
            assert_eq!(matches!(read, Err(Unread::Names)), unknown);
            assert!(coder.read(&columns, true).is_ok());
        }
    }
}
