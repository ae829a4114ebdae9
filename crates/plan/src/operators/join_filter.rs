//! The residual condition of a join, and which columns of which side it reads.

use crate::context::TaskContext;
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion_common::{JoinSide, Result, plan_err};
use planish_batch::{Batch, Selection};
use planish_expr::PhysicalExprRef;
use planish_expr::predicate::Predicate;
use planish_expr::projection::narrow_expr;
use planish_expr::utils::column_indices;
use std::fmt;
use std::sync::Arc;

/// A column of one side of a join.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnIndex {
    /// Its index on that side.
    pub index: usize,
    /// The side.
    pub side: JoinSide,
}

/// A boolean expression over some columns of both sides: column `i` of the expression is
/// `column_indices[i]` of the join.
#[derive(Clone, Debug)]
pub struct JoinFilter {
    expression: PhysicalExprRef,
    column_indices: Vec<ColumnIndex>,
    schema: SchemaRef,
}

impl JoinFilter {
    /// `expression` over the columns `column_indices`, whose fields are those of `schema`.
    pub fn new(
        expression: PhysicalExprRef,
        column_indices: Vec<ColumnIndex>,
        schema: SchemaRef,
    ) -> Self {
        debug_assert_eq!(column_indices.len(), schema.fields().len());
        JoinFilter { expression, column_indices, schema }
    }

    /// The condition, over [`Self::schema`].
    pub fn expression(&self) -> &PhysicalExprRef {
        &self.expression
    }

    /// Where each column of [`Self::schema`] comes from.
    pub fn column_indices(&self) -> &[ColumnIndex] {
        &self.column_indices
    }

    /// The columns that the condition may read.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The same condition when left and right change places.
    #[must_use]
    pub fn swap(&self) -> JoinFilter {
        let column_indices = self
            .column_indices
            .iter()
            .map(|c| ColumnIndex { index: c.index, side: c.side.negate() })
            .collect();
        JoinFilter { column_indices, ..self.clone() }
    }

    /// Whether the condition reads every column of [`Self::schema`].
    pub fn reads_all_columns(&self) -> bool {
        column_indices(&self.expression).len() == self.column_indices.len()
    }

    /// The same condition over the columns alone that it reads.
    ///
    /// # Errors
    /// When the condition cannot be rebuilt.
    pub fn minimized(&self) -> Result<JoinFilter> {
        let read: Vec<usize> = column_indices(&self.expression).into_iter().collect();
        match narrow_expr(&self.expression, &read)? {
            Some(expression) => Ok(JoinFilter {
                expression,
                column_indices: read.iter().map(|&i| self.column_indices[i]).collect(),
                schema: Arc::new(self.schema.project(&read)?),
            }),
            None => Ok(self.clone()),
        }
    }

    /// The fields of `columns`, from the two sides' schemas.
    pub fn build_schema(columns: &[ColumnIndex], left: &Schema, right: &Schema) -> Schema {
        let fields: Vec<_> = columns
            .iter()
            .map(|c| match c.side {
                JoinSide::Right => right.field(c.index).clone(),
                JoinSide::Left | JoinSide::None => left.field(c.index).clone(),
            })
            .collect();
        Schema::new(fields)
    }
}

impl JoinFilter {
    /// Checks that the condition is boolean and reads columns that are there.
    ///
    /// # Errors
    /// A plan error that names the condition.
    pub(crate) fn check(&self, left: &Schema, right: &Schema) -> Result<()> {
        for (column, field) in self.column_indices.iter().zip(self.schema.fields()) {
            let side = match column.side {
                JoinSide::Left => left,
                JoinSide::Right => right,
                JoinSide::None => return plan_err!("{self} reads a column of neither side"),
            };
            match side.fields().get(column.index) {
                Some(own) if own.data_type() == field.data_type() => {}
                _ => return plan_err!("{self} reads {}, which is not an input", field.name()),
            }
        }
        match self.expression.data_type(&self.schema)? {
            DataType::Boolean | DataType::Null => Ok(()),
            other => plan_err!("a join condition must be boolean, {self} is {other}"),
        }
    }

    /// The columns of `side` that the condition may read.
    pub(crate) fn columns_of(&self, side: JoinSide) -> impl Iterator<Item = usize> {
        self.column_indices.iter().filter(move |c| c.side == side).map(|c| c.index)
    }

    /// The same condition over inputs whose columns have moved: `left(i)` and `right(i)` say
    /// where column `i` of each side is now.
    pub(crate) fn with_moved_columns(
        &self,
        left: impl Fn(usize) -> Option<usize>,
        right: impl Fn(usize) -> Option<usize>,
    ) -> Option<JoinFilter> {
        let moved = self.column_indices.iter().map(|c| {
            let index = if c.side == JoinSide::Left { left(c.index) } else { right(c.index) };
            Some(ColumnIndex { index: index?, side: c.side })
        });
        Some(JoinFilter { column_indices: moved.collect::<Option<_>>()?, ..self.clone() })
    }
}

/// A [`JoinFilter`] over the build side of one execution.
pub(crate) struct Residual {
    predicate: Predicate,
    column_indices: Vec<ColumnIndex>,
    schema: SchemaRef,
    /// The build side's columns that the condition reads, in the order of its schema.
    build: Batch,
    build_columns: Vec<usize>,
    /// The probe side's, and the schema they form.
    probe_columns: Vec<usize>,
    probe_schema: SchemaRef,
}

impl Residual {
    /// `filter` bound to this execution, over the build rows `build`.
    pub(crate) async fn bind(
        filter: &JoinFilter,
        build: &Batch,
        ctx: &Arc<TaskContext>,
    ) -> Result<Self> {
        let columns_of = |side| {
            let wanted =
                filter.column_indices.iter().enumerate().filter(move |(_, c)| c.side == side);
            let (fields, indices): (Vec<_>, Vec<_>) =
                wanted.map(|(i, c)| (Arc::clone(&filter.schema.fields()[i]), c.index)).unzip();
            (indices, Arc::new(Schema::new(fields)))
        };
        let (build_columns, build_schema) = columns_of(JoinSide::Left);
        let (probe_columns, probe_schema) = columns_of(JoinSide::Right);
        Ok(Residual {
            predicate: Predicate::new(&ctx.bind(&filter.expression).await?, &filter.schema),
            column_indices: filter.column_indices.clone(),
            schema: Arc::clone(&filter.schema),
            build: build.project(&build_columns, build_schema)?,
            build_columns,
            probe_columns,
            probe_schema,
        })
    }

    /// The columns of a probe batch that the condition reads.
    pub(crate) fn probe_side(&self, probe: &Batch) -> Result<Batch> {
        probe.project(&self.probe_columns, Arc::clone(&self.probe_schema))
    }

    /// The columns of a batch of the left side that the condition reads, of a join without a
    /// build side.
    pub(crate) fn left_side(&self, left: &Batch) -> Result<Batch> {
        left.project(&self.build_columns, Arc::clone(self.build.schema()))
    }

    /// The columns of the build side that the condition reads.
    pub(crate) fn build_side(&self) -> &Batch {
        &self.build
    }

    /// Keeps of the pairs `(build[i], probe[i])` those for which the condition is true. `probe`
    /// indexes `probe_side`.
    pub(crate) fn retain(
        &self,
        probe_side: &Batch,
        build: &mut Vec<u32>,
        probe: &mut Vec<u32>,
    ) -> Result<()> {
        if build.is_empty() {
            return Ok(());
        }
        let left = self.build.select(&Arc::new(Selection::rows(build.clone())));
        let right = probe_side.select(&Arc::new(Selection::rows(probe.clone())));
        let kept = self.evaluate(&left, &right)?;
        if kept.count_set_bits() < build.len() {
            let (mut b, mut p) = (kept.iter(), kept.iter());
            build.retain(|_| b.next() == Some(true));
            probe.retain(|_| p.next() == Some(true));
        }
        Ok(())
    }

    /// For each row of `left` beside `right` (columns that the condition reads, of equally many
    /// rows), whether the condition is true.
    pub(crate) fn evaluate(&self, left: &Batch, right: &Batch) -> Result<BooleanBuffer> {
        let (mut of_left, mut of_right) = (left.columns().iter(), right.columns().iter());
        let columns = self
            .column_indices
            .iter()
            .filter_map(|c| {
                if c.side == JoinSide::Left { of_left.next() } else { of_right.next() }.cloned()
            })
            .collect();
        let rows = left.num_rows();
        let pairs = Batch::try_new(Arc::clone(&self.schema), columns, rows)?;
        Ok(self.predicate.clone().passing(&pairs)?.into_bits(rows))
    }
}

impl fmt::Display for JoinFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.expression)
    }
}
