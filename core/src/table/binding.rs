//! The collapsed table as a Python class: `reticent._core.table.Collapsed`.

use std::time::Duration;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::check::{Checker, Hubs};
use super::collapse::{self, SensitiveColumn};
use super::grouping::Scratch;
use super::local;
use super::loss::{Kind, Scorer};
use super::model::{Distance, Diversity, MOST_ROWS, Model, Ratio};
use super::optimal::{self, Task};
use super::space::{Attribute, Space};

type Codes<'py> = PyReadonlyArray1<'py, i32>;

/// k, then `(kind, (numerators and denominators...))` for l and t as Python hands them over.
#[pyclass(frozen, name = "Model")]
pub struct PyModel(Model);

#[pymethods]
impl PyModel {
    #[new]
    #[pyo3(signature = (*, k=1, l=None, t=None))]
    fn new(k: u32, l: Option<(String, Vec<u64>)>, t: Option<(String, u64, u64)>) -> PyResult<Self> {
        let diversity = l
            .map(|(kind, numbers)| diversity(&kind, &numbers))
            .transpose()?;
        let closeness = t
            .map(|(kind, num, den)| Ok::<_, PyErr>((distance(&kind)?, Ratio { num, den })))
            .transpose()?;
        Ok(Self(Model {
            k,
            diversity,
            closeness,
        }))
    }
}

impl PyModel {
    pub fn inner(&self) -> &Model {
        &self.0
    }
}

fn refuse(message: &str) -> PyErr {
    PyValueError::new_err(message.to_owned())
}

fn diversity(kind: &str, numbers: &[u64]) -> PyResult<Diversity> {
    match (kind, numbers) {
        ("distinct", &[l]) => Ok(Diversity::Distinct(l as u32)),
        ("entropy", &[num, den]) => Ok(Diversity::Entropy(Ratio { num, den })),
        ("frequency", &[num, den]) => Ok(Diversity::Frequency(Ratio { num, den })),
        ("recursive", &[num, den, l]) => Ok(Diversity::Recursive {
            c: Ratio { num, den },
            l: l as u32,
        }),
        _ => Err(refuse("unknown kind of l-diversity")),
    }
}

fn distance(kind: &str) -> PyResult<Distance> {
    match kind {
        "equal" => Ok(Distance::Equal),
        "ordered" => Ok(Distance::Ordered),
        "hierarchical" => Ok(Distance::Hierarchical),
        _ => Err(refuse("unknown distance of t-closeness")),
    }
}

/// Distinct quasi-identifier combinations of a table with histograms of its sensitive values.
#[pyclass(frozen)]
pub struct Collapsed(collapse::Collapsed);

fn in_domain(codes: &[i32], domain: usize, rows: usize) -> PyResult<()> {
    if codes.len() != rows {
        return Err(refuse("the columns differ in length"));
    }
    if codes.iter().any(|&c| c < 0 || c as usize >= domain) {
        return Err(refuse("a code lies outside its domain"));
    }
    Ok(())
}

fn natural(tables: Vec<Codes<'_>>) -> PyResult<Vec<Vec<u32>>> {
    let table = |t: Codes<'_>| Ok(t.as_slice()?.iter().map(|&v| v as u32).collect());
    tables.into_iter().map(table).collect()
}

/// Tables, leaf counts and leaves of one attribute.
type Ladder<'py> = (Vec<Codes<'py>>, Vec<PyReadonlyArray1<'py, i64>>, u64);

fn attribute(ladder: Ladder<'_>) -> PyResult<Attribute> {
    let counts =
        |a: &PyReadonlyArray1<'_, i64>| Ok(a.as_slice()?.iter().map(|&v| v as u64).collect());
    let leaves = ladder.1.iter().map(counts).collect::<PyResult<_>>()?;
    Attribute::new(natural(ladder.0)?, leaves, ladder.2).map_err(|e| refuse(&e))
}

#[pymethods]
impl Collapsed {
    /// Quasi codes with their ladders, sensitive codes with their domains and hierarchies; `times` says how many
    /// records each row stands for, where a cluster has counted them already.
    #[new]
    #[pyo3(signature = (quasi, ladders, sensitive, *, times=None))]
    fn new(
        py: Python<'_>,
        quasi: Vec<Codes<'_>>,
        ladders: Vec<Ladder<'_>>,
        sensitive: Vec<(Codes<'_>, usize, Vec<Codes<'_>>)>,
        times: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<Self> {
        if quasi.len() != ladders.len() || quasi.is_empty() {
            return Err(refuse(
                "every quasi-identifier needs its ladder, and there must be one",
            ));
        }
        let attributes = ladders
            .into_iter()
            .map(attribute)
            .collect::<PyResult<Vec<_>>>()?;
        let space = Space::new(attributes);
        let columns = quasi
            .iter()
            .map(|c| Ok(c.as_slice()?))
            .collect::<PyResult<Vec<_>>>()?;
        let rows = columns[0].len();
        let times = times.as_ref().map(|t| t.as_slice()).transpose()?;
        if times.is_some_and(|times| times.len() != rows) {
            return Err(refuse("the columns differ in length"));
        }
        let records = times.map_or(rows, |t| t.iter().map(|&n| n as usize).sum());
        if records >= MOST_ROWS {
            return Err(refuse("the table has too many rows for one release"));
        }
        for (column, attribute) in columns.iter().zip(&space.attributes) {
            in_domain(column, attribute.domain(), rows)?;
        }
        let mut guarded = Vec::new();
        let trees: Vec<_> = sensitive
            .iter()
            .map(|(codes, domain, _)| (codes.as_slice(), *domain))
            .collect();
        for ((codes, domain), tree) in trees.into_iter().zip(sensitive.iter().map(|s| &s.2)) {
            let codes = codes?;
            in_domain(codes, domain, rows)?;
            let tree = tree
                .iter()
                .map(|t| Ok(t.as_slice()?.iter().map(|&v| v as u32).collect()))
                .collect::<PyResult<_>>()?;
            guarded.push(SensitiveColumn {
                codes,
                domain,
                tree,
            });
        }
        Ok(Self(py.detach(|| {
            collapse::collapse(space, &columns, guarded, times)
        })))
    }

    /// Number of distinct combinations.
    fn __len__(&self) -> usize {
        self.0.table.base.len()
    }

    /// Number of nodes of the lattice (saturating).
    #[getter]
    fn nodes(&self) -> usize {
        self.0.table.space.nodes
    }

    /// Combination of each row.
    fn combinations<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, &self.0.combinations)
    }

    /// The optimum over the lattice: a dictionary, without `levels` when no node satisfies the model.
    #[pyo3(signature = (model, *, loss, weights, limit, seconds=None))]
    fn search<'py>(
        &self,
        py: Python<'py>,
        model: &PyModel,
        loss: &str,
        weights: Vec<f64>,
        limit: u64,
        seconds: Option<f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let table = &self.0.table;
        let kind = Kind::parse(loss).ok_or_else(|| refuse("unknown loss"))?;
        if weights.len() != table.space.attributes.len() {
            return Err(refuse("every quasi-identifier needs a weight"));
        }
        let (answer, publish) = py.detach(|| {
            let scorer = Scorer::new(kind, &table.space, &table.base, &weights);
            let time = seconds.map(Duration::from_secs_f64);
            let task = Task {
                table,
                model: &model.0,
                scorer: &scorer,
                limit,
                time,
            };
            let answer = optimal::search(&task);
            let publish = (
                scorer.publish(answer.bound),
                answer.best.as_ref().map(|b| scorer.publish(b.score)),
            );
            (answer, publish)
        });
        let found = PyDict::new(py);
        found.set_item("bound", publish.0)?;
        found.set_item("complete", answer.complete)?;
        found.set_item("checked", answer.checked)?;
        if let Some(best) = answer.best {
            found.set_item(
                "levels",
                best.levels
                    .iter()
                    .map(|&v| u32::from(v))
                    .collect::<Vec<_>>(),
            )?;
            found.set_item("score", publish.1)?;
            found.set_item("suppressed", best.suppressed)?;
            found.set_item("classes", best.classes)?;
        }
        Ok(found)
    }

    /// One node: loss, suppressed records, classes that hold.
    #[pyo3(signature = (model, levels, *, loss, weights))]
    fn evaluate(
        &self,
        py: Python<'_>,
        model: &PyModel,
        levels: Vec<u8>,
        loss: &str,
        weights: Vec<f64>,
    ) -> PyResult<(f64, u64, u64)> {
        let table = &self.0.table;
        self.known(&levels)?;
        let kind = Kind::parse(loss).ok_or_else(|| refuse("unknown loss"))?;
        Ok(py.detach(|| {
            let scorer = Scorer::new(kind, &table.space, &table.base, &weights);
            let hubs = Hubs::new(table);
            let checker = Checker {
                table,
                model: &model.0,
                hubs: &hubs,
            };
            let tally = checker.check(&levels, &mut Scratch::default(), |_| true);
            (
                scorer.publish(scorer.score(&levels, &tally)),
                tally.suppressed,
                tally.classes,
            )
        }))
    }

    /// Local recoding: level of each row, by quasi-identifier, and the rows to suppress.
    ///
    /// `values` are the codes of the one sensitive column: with them, groups may leave in part. `order` is the sequence
    /// of nodes to visit instead of all by their cost; it must end at the top.
    #[pyo3(signature = (model, *, loss, weights, limit, values=None, order=None))]
    #[allow(clippy::too_many_arguments, clippy::type_complexity)]
    fn localize<'py>(
        &self,
        py: Python<'py>,
        model: &PyModel,
        loss: &str,
        weights: Vec<f64>,
        limit: u64,
        values: Option<Codes<'py>>,
        order: Option<Vec<Vec<u8>>>,
    ) -> PyResult<(Vec<Bound<'py, PyArray1<i64>>>, Bound<'py, PyArray1<bool>>)> {
        let table = &self.0.table;
        let kind = Kind::parse(loss).ok_or_else(|| refuse("unknown loss"))?;
        let values = values.as_ref().map(|v| v.as_slice()).transpose()?;
        for levels in order.iter().flatten() {
            self.known(levels)?;
        }
        if order
            .as_ref()
            .is_some_and(|nodes| nodes.last() != Some(&table.space.top()))
        {
            return Err(refuse("the last node to visit must be the top"));
        }
        let (levels, gone) = py.detach(|| {
            let scorer = Scorer::new(kind, &table.space, &table.base, &weights);
            let task = Task {
                table,
                model: &model.0,
                scorer: &scorer,
                limit,
                time: None,
            };
            let mut found = local::recode(&task, order, values.is_some());
            let nodes = found.of_rows(&self.0.combinations, values);
            let level = |j: usize| {
                nodes
                    .iter()
                    .map(|&n| i64::from(found.nodes[n as usize][j]))
                    .collect::<Vec<i64>>()
            };
            let levels: Vec<_> = (0..table.space.attributes.len()).map(level).collect();
            (
                levels,
                nodes
                    .iter()
                    .map(|&n| found.spoiled && n == found.last)
                    .collect::<Vec<bool>>(),
            )
        });
        Ok((
            levels.into_iter().map(|l| l.into_pyarray(py)).collect(),
            gone.into_pyarray(py),
        ))
    }

    /// Class of each row at a node, -1 where the class violates the model.
    fn classes<'py>(
        &self,
        py: Python<'py>,
        model: &PyModel,
        levels: Vec<u8>,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        self.known(&levels)?;
        let table = &self.0.table;
        let rows: Vec<i32> = py.detach(|| {
            let hubs = Hubs::new(table);
            let checker = Checker {
                table,
                model: &model.0,
                hubs: &hubs,
            };
            let of_combination = checker.classes(&levels);
            self.0
                .combinations
                .iter()
                .map(|&c| of_combination[c as usize])
                .collect()
        });
        Ok(rows.into_pyarray(py))
    }
}

impl Collapsed {
    fn known(&self, levels: &[u8]) -> PyResult<()> {
        let top = self.0.table.space.top();
        if levels.len() != top.len() || levels.iter().zip(&top).any(|(v, t)| v > t) {
            return Err(refuse("the levels do not name a node of the lattice"));
        }
        Ok(())
    }
}
