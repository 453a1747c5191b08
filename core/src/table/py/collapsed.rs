//! The Python class of a collapsed table.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::cancellation::{CancellationToken, interruptible};
use super::model::Model;
use super::{Codes, Sensitive, check_sensitive, in_domain, tables};
use crate::py::refuse;
use crate::table::check::{Checker, GroupingCache};
use crate::table::collapse;
use crate::table::grouping::Scratch;
use crate::table::local;
use crate::table::loss::{Balance, Kind, Scorer};
use crate::table::model::MAX_ROWS;
use crate::table::optimal::{self, Answer, Task};
use crate::table::space::{Attribute, Space};

/// Tables, leaf counts and number of leaves of one attribute.
type Hierarchy<'py> = (Vec<Codes<'py>>, Vec<PyReadonlyArray1<'py, i64>>, u64);

fn attribute((levels, leaves, size): &Hierarchy<'_>) -> PyResult<Attribute> {
    let counts =
        |a: &PyReadonlyArray1<'_, i64>| Ok(a.as_slice()?.iter().map(|&v| v as u64).collect());
    let leaves = leaves.iter().map(counts).collect::<PyResult<_>>()?;
    let domain = levels
        .first()
        .map_or(Ok(0), |t| t.as_slice().map(<[i32]>::len))?;
    Attribute::new(tables(levels, domain)?, leaves, *size).map_err(|e| refuse(&e))
}

/// One node: its loss, suppressed records, valid classes.
#[pyclass(frozen, get_all, module = "reticent._core.table")]
pub struct Evaluation {
    score: f64,
    suppressed: u64,
    classes: u64,
}

/// Levels of the pieces of rows, one array per quasi-identifier, and which to suppress; their rows, and the number of
/// records of each.
#[pyclass(frozen, get_all, module = "reticent._core.table")]
pub struct Recoding {
    levels: Vec<Py<PyArray1<i64>>>,
    suppressed: Py<PyArray1<bool>>,
    rows: Py<PyArray1<u32>>,
    times: Py<PyArray1<u32>>,
}

/// Distinct quasi-identifier combinations of a table with histograms of its sensitive values.
#[pyclass(frozen, module = "reticent._core.table")]
pub struct CollapsedTable(collapse::CollapsedTable);

#[pymethods]
impl CollapsedTable {
    /// Quasi-identifier codes with their hierarchies, sensitive codes with their domains and hierarchies. `times` is
    /// the number of records that each row represents, where a cluster has already counted them.
    #[new]
    #[pyo3(signature = (quasi, hierarchies, sensitive, *, times=None))]
    fn new(
        py: Python<'_>,
        quasi: Vec<Codes<'_>>,
        hierarchies: Vec<Hierarchy<'_>>,
        sensitive: Vec<Sensitive<'_>>,
        times: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<Self> {
        if quasi.len() != hierarchies.len() || quasi.is_empty() {
            return Err(refuse(
                "there must be a quasi-identifier, and a hierarchy for each",
            ));
        }
        let attributes = hierarchies.iter().map(attribute).collect::<PyResult<_>>()?;
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
        if records >= MAX_ROWS {
            return Err(refuse("the table has too many rows for one release"));
        }
        for (column, attribute) in columns.iter().zip(&space.attributes) {
            in_domain(column, attribute.domain(), rows)?;
        }
        let sensitive = check_sensitive(&sensitive, rows)?;
        Ok(Self(py.detach(|| {
            collapse::collapse(space, &columns, sensitive, times)
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

    /// The optimum over the lattice: a dictionary, without `levels` if no node satisfies the model.
    ///
    /// `gs_factor` weights suppression (free at 0) against generalization (free at 1). Nodes that score more than `loss_limit` are
    /// not searched.
    #[pyo3(signature = (model, *, loss, weights, limit, gs_factor=0.5, cancellation=None, loss_limit=f64::INFINITY))]
    #[allow(clippy::too_many_arguments)]
    fn search<'py>(
        &self,
        py: Python<'py>,
        model: &Model,
        loss: &str,
        weights: Vec<f64>,
        limit: u64,
        gs_factor: f64,
        cancellation: Option<&CancellationToken>,
        loss_limit: f64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let table = &self.0.table;
        let kind = self.loss(loss, &weights)?;
        let unlimited = CancellationToken::default();
        let cancellation = &cancellation.unwrap_or(&unlimited).0;
        let (answer, scorer) = interruptible(py, cancellation, || {
            let scorer = Scorer::new(kind, &table.space, &table.base, &weights)
                .with_balance(Balance::of(gs_factor));
            let task = Task {
                table,
                model: &model.0,
                scorer: &scorer,
                limit,
                cancellation,
            };
            (optimal::search_below(&task, loss_limit), scorer)
        })?;
        optimum(py, answer, &scorer)
    }

    /// One node: loss, suppressed records, valid classes.
    #[pyo3(signature = (model, levels, *, loss, weights))]
    fn evaluate(
        &self,
        py: Python<'_>,
        model: &Model,
        levels: Vec<u8>,
        loss: &str,
        weights: Vec<f64>,
    ) -> PyResult<Evaluation> {
        let table = &self.0.table;
        self.check_levels(&levels)?;
        let kind = self.loss(loss, &weights)?;
        Ok(py.detach(|| {
            let scorer = Scorer::new(kind, &table.space, &table.base, &weights);
            let cache = GroupingCache::new(table);
            let checker = Checker {
                table,
                model: &model.0,
                cache: &cache,
            };
            let tally = checker.check(&levels, &mut Scratch::default(), |_| true);
            Evaluation {
                score: scorer.publish(scorer.score(&levels, &tally)),
                suppressed: tally.suppressed,
                classes: tally.classes,
            }
        }))
    }

    /// Local recoding: levels of the pieces of each row, and which to suppress.
    ///
    /// With `times`, a row may have several pieces. `values` are the codes of the one sensitive column: with them,
    /// groups may leave in part. `path` lists the nodes to visit instead of all by cost; it must end at the top.
    #[pyo3(signature = (model, *, loss, weights, limit, values=None, times=None, path=None, cancellation=None))]
    #[allow(clippy::too_many_arguments)]
    fn localize(
        &self,
        py: Python<'_>,
        model: &Model,
        loss: &str,
        weights: Vec<f64>,
        limit: u64,
        values: Option<Codes<'_>>,
        times: Option<PyReadonlyArray1<'_, u32>>,
        path: Option<Vec<Vec<u8>>>,
        cancellation: Option<&CancellationToken>,
    ) -> PyResult<Recoding> {
        let table = &self.0.table;
        let kind = self.loss(loss, &weights)?;
        let values = values.as_ref().map(|v| v.as_slice()).transpose()?;
        let times = times.as_ref().map(|t| t.as_slice()).transpose()?;
        let rows = self.0.combinations.len();
        if values.is_some_and(|v| v.len() != rows) || times.is_some_and(|t| t.len() != rows) {
            return Err(refuse("the columns differ in length"));
        }
        for levels in path.iter().flatten() {
            self.check_levels(levels)?;
        }
        let ends = |nodes: &Vec<Vec<u8>>| nodes.last() == Some(&table.space.top());
        if !path.as_ref().is_none_or(ends) {
            return Err(refuse("the last node to visit must be the top"));
        }
        let unlimited = CancellationToken::default();
        let cancellation = &cancellation.unwrap_or(&unlimited).0;
        let pieces = interruptible(py, cancellation, || {
            let scorer = Scorer::new(kind, &table.space, &table.base, &weights);
            let task = Task {
                table,
                model: &model.0,
                scorer: &scorer,
                limit,
                cancellation,
            };
            let recoded = local::recode(&task, path, values.is_some());
            recoded.of_rows(&self.0.combinations, values, times)
        })?;
        let array = |column: Vec<i64>| column.into_pyarray(py).unbind();
        Ok(Recoding {
            levels: pieces.levels.into_iter().map(array).collect(),
            suppressed: pieces.suppressed.into_pyarray(py).unbind(),
            rows: pieces.rows.into_pyarray(py).unbind(),
            times: pieces.times.into_pyarray(py).unbind(),
        })
    }

    /// Class of each row at a node, -1 where the class violates the model.
    fn classes<'py>(
        &self,
        py: Python<'py>,
        model: &Model,
        levels: Vec<u8>,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        self.check_levels(&levels)?;
        let table = &self.0.table;
        let rows: Vec<i32> = py.detach(|| {
            let cache = GroupingCache::new(table);
            let checker = Checker {
                table,
                model: &model.0,
                cache: &cache,
            };
            let of_combination = checker.classes(&levels);
            let combinations = self.0.combinations.iter();
            combinations.map(|&c| of_combination[c as usize]).collect()
        });
        Ok(rows.into_pyarray(py))
    }
}

impl CollapsedTable {
    fn check_levels(&self, levels: &[u8]) -> PyResult<()> {
        let top = self.0.table.space.top();
        if levels.len() != top.len() || levels.iter().zip(&top).any(|(v, t)| v > t) {
            return Err(refuse("the levels do not name a node of the lattice"));
        }
        Ok(())
    }

    fn loss(&self, name: &str, weights: &[f64]) -> PyResult<Kind> {
        if weights.len() != self.0.table.space.attributes.len() {
            return Err(refuse("every quasi-identifier needs a weight"));
        }
        Kind::parse(name).ok_or_else(|| refuse("unknown loss"))
    }
}

fn optimum<'py>(
    py: Python<'py>,
    answer: Answer,
    scorer: &Scorer<'_>,
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("bound", scorer.publish(answer.bound))?;
    out.set_item("complete", answer.complete)?;
    out.set_item("checked", answer.checked)?;
    if let Some(best) = answer.best {
        let levels: Vec<u32> = best.levels.iter().map(|&v| u32::from(v)).collect();
        out.set_item("levels", levels)?;
        out.set_item("score", scorer.publish(best.score))?;
        out.set_item("suppressed", best.suppressed)?;
        out.set_item("classes", best.classes)?;
    }
    Ok(out)
}
