//! What is known about the rows of a stream: orders, equal expressions, constants.
//!
//! The question later rules live on is [`EquivalenceProperties::ordering_satisfied`]. It is
//! answered on *normalized* keys: each expression replaced by the representative of its class of
//! equals, constants and repeated keys dropped. Following Simmen, Shekita and Malkemus,
//! "Fundamental Techniques for Order Optimization" (SIGMOD 1996).

use crate::expressions::{CastExpr, Column};
use crate::projection::ProjectionMapping;
use crate::{LexOrdering, PhysicalExprRef, PhysicalSortExpr, order_source};
use arrow::datatypes::SchemaRef;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use std::sync::Arc;

/// Orders, equalities and constants of a stream, per partition: each partition is ordered as
/// claimed, and a constant has the same value in all partitions.
#[derive(Clone, Debug)]
pub struct EquivalenceProperties {
    schema: SchemaRef,
    orderings: Vec<LexOrdering>,
    /// Classes of expressions that are equal in every row; disjoint, each at least two long.
    classes: Vec<Vec<PhysicalExprRef>>,
    constants: Vec<PhysicalExprRef>,
}

impl EquivalenceProperties {
    /// Nothing known about rows of `schema`.
    pub fn new(schema: SchemaRef) -> Self {
        EquivalenceProperties { schema, orderings: vec![], classes: vec![], constants: vec![] }
    }

    /// The same facts, with `ordering` as a further order.
    #[must_use]
    pub fn with_ordering(mut self, ordering: LexOrdering) -> Self {
        self.add_ordering(ordering);
        self
    }

    /// The rows' schema.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The known orders.
    pub fn orderings(&self) -> &[LexOrdering] {
        &self.orderings
    }

    /// The first of the known orders, if any: what `EXPLAIN` shows.
    pub fn output_ordering(&self) -> Option<&LexOrdering> {
        self.orderings.first()
    }

    /// The classes of equal expressions.
    pub fn classes(&self) -> &[Vec<PhysicalExprRef>] {
        &self.classes
    }

    /// The expressions with one value in all rows of all partitions.
    pub fn constants(&self) -> &[PhysicalExprRef] {
        &self.constants
    }

    /// Adds an order; an empty one, or one already implied, adds nothing.
    pub fn add_ordering(&mut self, ordering: LexOrdering) {
        if !ordering.is_empty() && !self.ordering_satisfied(&ordering) {
            self.orderings.push(ordering);
        }
    }

    /// Drops all orders, for an operator that keeps none.
    pub fn clear_orderings(&mut self) {
        self.orderings.clear();
    }

    /// Notes that `a` equals `b` in every row.
    pub fn add_equal(&mut self, a: &PhysicalExprRef, b: &PhysicalExprRef) {
        if a == b {
            return;
        }
        let of_a = self.classes.iter().position(|class| class.contains(a));
        let of_b = self.classes.iter().position(|class| class.contains(b));
        match (of_a, of_b) {
            (Some(i), Some(j)) if i != j => {
                let (low, high) = (i.min(j), i.max(j));
                let moved = self.classes.remove(high);
                self.classes[low].extend(moved);
            }
            (Some(_), Some(_)) => {}
            (Some(i), None) => self.classes[i].push(Arc::clone(b)),
            (None, Some(j)) => self.classes[j].push(Arc::clone(a)),
            (None, None) => self.classes.push(vec![Arc::clone(a), Arc::clone(b)]),
        }
    }

    /// Notes that `expr` has one value in all rows of all partitions.
    pub fn add_constant(&mut self, expr: PhysicalExprRef) {
        if !self.is_constant(&expr) {
            self.constants.push(expr);
        }
    }

    /// Whether `expr` is known to have one value: it is noted as constant, equals one that is,
    /// or is built from such alone.
    pub fn is_constant(&self, expr: &PhysicalExprRef) -> bool {
        if expr.is::<crate::expressions::Literal>() || self.constants.contains(expr) {
            return true;
        }
        if let Some(class) = self.classes.iter().find(|class| class.contains(expr))
            && class
                .iter()
                .any(|e| self.constants.contains(e) || e.is::<crate::expressions::Literal>())
        {
            return true;
        }
        let children = expr.children();
        !children.is_empty()
            && !expr.is_volatile_node()
            && children.into_iter().all(|c| self.is_constant(c))
    }

    /// `expr` with every node replaced by the first member of its class.
    pub fn normalize_expr(&self, expr: &PhysicalExprRef) -> PhysicalExprRef {
        if self.classes.is_empty() {
            return Arc::clone(expr);
        }
        let normalized = Arc::clone(expr)
            .transform_up(|node| {
                Ok(match self.classes.iter().find(|class| class.contains(&node)) {
                    Some(class) if class[0].ne(&node) => Transformed::yes(Arc::clone(&class[0])),
                    _ => Transformed::no(node),
                })
            })
            .data();
        normalized.unwrap_or_else(|_| Arc::clone(expr))
    }

    /// Whether rows are known to be ordered by `required`.
    pub fn ordering_satisfied(&self, required: &[PhysicalSortExpr]) -> bool {
        let required = self.normalize_ordering(required);
        required.is_empty()
            || self.orderings.iter().any(|known| {
                let known = self.normalize_ordering(known);
                required.len() <= known.len()
                    && required.iter().zip(&known).all(|(r, k)| self.same_key(r, k))
            })
    }

    /// How many leading keys of `required` the rows are already ordered by.
    pub fn common_prefix(&self, required: &[PhysicalSortExpr]) -> usize {
        (1..=required.len()).rev().find(|&n| self.ordering_satisfied(&required[..n])).unwrap_or(0)
    }

    /// The keys that still say something: representatives, without constants, repeats, and casts
    /// that keep the order.
    pub fn normalize_ordering(&self, ordering: &[PhysicalSortExpr]) -> LexOrdering {
        let mut out: LexOrdering = Vec::with_capacity(ordering.len());
        for key in ordering {
            let expr = self.normalize_expr(order_source(&key.expr, &self.schema));
            let expr = Arc::clone(order_source(&expr, &self.schema));
            if self.is_constant(&expr) || out.iter().any(|seen| seen.expr.eq(&expr)) {
                continue;
            }
            out.push(PhysicalSortExpr::new(expr, key.options));
        }
        out
    }

    fn same_key(&self, a: &PhysicalSortExpr, b: &PhysicalSortExpr) -> bool {
        a.expr.eq(&b.expr)
            && a.options.descending == b.options.descending
            && (a.options.nulls_first == b.options.nulls_first
                || a.expr.nullable(&self.schema).is_ok_and(|nullable| !nullable))
    }

    /// The facts that survive a projection, over its output of schema `output`. An order
    /// survives up to the first key that the projection does not show.
    #[must_use]
    pub fn project(&self, mapping: &ProjectionMapping, output: SchemaRef) -> Self {
        let mut projected = EquivalenceProperties::new(output);
        for class in &self.classes {
            let shown: Vec<_> = class.iter().filter_map(|e| mapping.project(e)).collect();
            for pair in shown.windows(2) {
                projected.add_equal(&pair[0], &pair[1]);
            }
        }
        for (_, targets) in mapping.iter() {
            for pair in targets.windows(2) {
                projected.add_equal(&as_expr(&pair[0]), &as_expr(&pair[1]));
            }
        }
        for (source, targets) in mapping.iter() {
            if self.is_constant(source) {
                projected.add_constant(as_expr(&targets[0]));
            }
        }
        for ordering in &self.orderings {
            let keys = self.normalize_ordering(ordering);
            let shown: LexOrdering = keys
                .iter()
                .map_while(|key| {
                    let expr = self.project_key(&key.expr, mapping).next()?;
                    Some(PhysicalSortExpr::new(expr, key.options))
                })
                .collect();
            projected.add_ordering(shown.clone());
            // Columns that order rows as a key does, in its place.
            for (i, key) in keys.iter().take(shown.len()).enumerate() {
                for other in self.project_key(&key.expr, mapping).skip(1) {
                    let mut ordering = shown.clone();
                    ordering[i].expr = other;
                    projected.add_ordering(ordering);
                }
            }
        }
        projected
    }

    /// What orders the projection's output as `key` does the input: the key, or an equal of it,
    /// and casts of it that keep the order.
    fn project_key<'a>(
        &'a self,
        key: &'a PhysicalExprRef,
        mapping: &'a ProjectionMapping,
    ) -> impl Iterator<Item = PhysicalExprRef> + 'a {
        let casts = mapping.iter().filter(move |(source, _)| {
            source.is::<CastExpr>() && order_source(source, &self.schema).eq(key)
        });
        self.project_expr(key, mapping).into_iter().chain(casts.map(|(_, to)| as_expr(&to[0])))
    }

    /// `expr`, or an equal of it, over the projection's output.
    pub fn project_expr(
        &self,
        expr: &PhysicalExprRef,
        mapping: &ProjectionMapping,
    ) -> Option<PhysicalExprRef> {
        mapping.project(expr).or_else(|| {
            let class = self.classes.iter().find(|class| class.contains(expr))?;
            class.iter().find_map(|e| mapping.project(e))
        })
    }

    /// The facts of a stream whose rows are those of `self` beside columns of another one, the
    /// columns of `self` starting at `offset` of `schema`.
    ///
    /// # Errors
    /// When an expression cannot be moved.
    pub fn shifted(&self, offset: usize, schema: SchemaRef) -> datafusion_common::Result<Self> {
        let by = offset as isize;
        let shift = |e: &PhysicalExprRef| crate::utils::shift_columns(e, by);
        Ok(EquivalenceProperties {
            schema,
            orderings: self
                .orderings
                .iter()
                .map(|o| crate::utils::shift_ordering(o, by))
                .collect::<datafusion_common::Result<_>>()?,
            classes: self
                .classes
                .iter()
                .map(|class| class.iter().map(shift).collect())
                .collect::<datafusion_common::Result<_>>()?,
            constants: self
                .constants
                .iter()
                .map(shift)
                .collect::<datafusion_common::Result<_>>()?,
        })
    }

    /// Adds the equalities and constants (not the orders) of `other`, which has the same schema.
    pub fn extend_equalities(&mut self, other: &EquivalenceProperties) {
        for class in &other.classes {
            for pair in class.windows(2) {
                self.add_equal(&pair[0], &pair[1]);
            }
        }
        for constant in &other.constants {
            self.add_constant(Arc::clone(constant));
        }
    }
}

fn as_expr(column: &Column) -> PhysicalExprRef {
    Arc::new(column.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::compute::SortOptions;
    use arrow::datatypes::{DataType, Field, Schema};

    fn schema() -> SchemaRef {
        let field = |n: &str| Field::new(n, DataType::Int64, true);
        Arc::new(Schema::new(vec![field("a"), field("b"), field("c")]))
    }

    fn col(i: usize) -> PhysicalExprRef {
        Arc::new(Column::new(["a", "b", "c"][i], i))
    }

    fn asc(i: usize) -> PhysicalSortExpr {
        PhysicalSortExpr::new(col(i), SortOptions { descending: false, nulls_first: false })
    }

    fn nulls_first(i: usize) -> PhysicalSortExpr {
        PhysicalSortExpr::new(col(i), SortOptions { descending: false, nulls_first: true })
    }

    #[test]
    fn a_prefix_of_a_known_order_is_satisfied_and_nothing_more() {
        let p = EquivalenceProperties::new(schema()).with_ordering(vec![asc(0), asc(1)]);
        assert!(p.ordering_satisfied(&[asc(0)]));
        assert!(p.ordering_satisfied(&[asc(0), asc(1)]));
        assert!(p.ordering_satisfied(&[]));
        assert!(!p.ordering_satisfied(&[asc(1)]));
        assert!(!p.ordering_satisfied(&[asc(0), asc(1), asc(2)]));
        assert!(!p.ordering_satisfied(&[nulls_first(0)]), "NULLs are elsewhere");
        assert_eq!(p.common_prefix(&[asc(0), asc(2)]), 1);
    }

    #[test]
    fn constants_and_equals_do_not_count() {
        let mut p = EquivalenceProperties::new(schema()).with_ordering(vec![asc(0), asc(1)]);
        p.add_constant(col(2));
        assert!(p.ordering_satisfied(&[asc(2), asc(0), asc(2), asc(1)]));
        p.add_equal(&col(0), &col(1));
        assert!(p.ordering_satisfied(&[asc(1)]));
    }

    #[test]
    fn an_order_survives_a_projection_up_to_the_first_hidden_key() {
        let p = EquivalenceProperties::new(schema()).with_ordering(vec![asc(0), asc(1), asc(2)]);
        let output: SchemaRef = Arc::new(schema().project(&[2, 0]).unwrap());
        let exprs = crate::ProjectionExprs::from_indices(&[2, 0], &schema());
        let mapping = exprs.projection_mapping(&schema()).unwrap();
        let q = p.project(&mapping, output);
        assert!(q.ordering_satisfied(&[asc(1)]), "a is now column 1");
        assert!(!q.ordering_satisfied(&[asc(1), asc(0)]), "b, between a and c, is gone");
    }

    /// The facts of a stream ordered by `ordering`, through `exprs`.
    fn through(
        known: &EquivalenceProperties,
        exprs: Vec<(PhysicalExprRef, &str)>,
    ) -> EquivalenceProperties {
        let exprs: crate::ProjectionExprs =
            exprs.into_iter().map(|(e, n)| crate::ProjectionExpr::new(e, n)).collect();
        let output = Arc::new(exprs.project_schema(known.schema()).unwrap());
        known.project(&exprs.projection_mapping(known.schema()).unwrap(), output)
    }

    fn x(i: usize) -> PhysicalSortExpr {
        PhysicalSortExpr::new(
            Arc::new(Column::new("x", i)),
            SortOptions { descending: false, nulls_first: false },
        )
    }

    fn plus_one(e: PhysicalExprRef) -> PhysicalExprRef {
        let one = crate::expressions::lit(1i64);
        Arc::new(crate::expressions::BinaryExpr::new(e, datafusion_expr::Operator::Plus, one))
    }

    fn as_decimal(e: PhysicalExprRef, precision: u8) -> PhysicalExprRef {
        Arc::new(CastExpr::new(e, DataType::Decimal128(precision, 2)))
    }

    #[test]
    fn an_order_by_a_computed_key_survives_where_the_key_is_shown() {
        let key = PhysicalSortExpr::new(plus_one(col(0)), asc(0).options);
        let p = EquivalenceProperties::new(schema()).with_ordering(vec![key, asc(1)]);
        let q = through(&p, vec![(col(1), "b"), (plus_one(col(0)), "next")]);
        assert!(q.ordering_satisfied(&[x(1), x(0)]));
        let q = through(&p, vec![(col(1), "b"), (col(0), "a")]);
        let shown = PhysicalSortExpr::new(plus_one(Arc::new(Column::new("a", 1))), x(0).options);
        assert!(q.ordering_satisfied(&[shown, x(0)]), "it can be computed again");
        assert!(!q.ordering_satisfied(&[x(1)]), "a + 1 wraps around");
        let q = through(&p, vec![(col(1), "b")]);
        assert!(q.orderings().is_empty());
    }

    #[test]
    fn casts_that_keep_the_order_stand_in_for_the_key() {
        let ints = |name: &str| Field::new(name, DataType::Int32, true);
        let schema: SchemaRef = Arc::new(Schema::new(vec![ints("a"), ints("b"), ints("c")]));
        let wide =
            |e: PhysicalExprRef| -> PhysicalExprRef { Arc::new(CastExpr::new(e, DataType::Int64)) };
        let p = EquivalenceProperties::new(schema).with_ordering(vec![asc(0), asc(1)]);
        let by = |e: PhysicalExprRef| PhysicalSortExpr::new(e, asc(0).options);
        assert!(p.ordering_satisfied(&[by(wide(col(0))), by(wide(col(1)))]));
        let text = Arc::new(CastExpr::new(col(0), DataType::Utf8));
        assert!(!p.ordering_satisfied(&[by(text)]), "as text, 10 comes before 9");
        let q = through(&p, vec![(wide(col(0)), "w"), (col(1), "b")]);
        assert!(q.ordering_satisfied(&[x(0), x(1)]));
        let q = through(&p, vec![(wide(col(0)), "w"), (col(1), "b"), (col(0), "a")]);
        assert!(q.ordering_satisfied(&[x(0), x(1)]) && q.ordering_satisfied(&[x(2), x(1)]));
        // Known by the cast, asked by the column.
        let p = EquivalenceProperties::new(Arc::clone(p.schema()))
            .with_ordering(vec![by(wide(col(0)))]);
        assert!(p.ordering_satisfied(&[asc(0)]));
        let rounded = by(as_decimal(col(0), 4));
        assert!(!p.ordering_satisfied(&[rounded]), "this cast may fail");
    }

    #[test]
    fn constants_survive_as_what_is_made_of_them() {
        let mut p = EquivalenceProperties::new(schema());
        p.add_constant(col(0));
        let q = through(&p, vec![(col(1), "b"), (plus_one(col(0)), "next")]);
        assert!(q.is_constant(&(Arc::new(Column::new("next", 1)) as PhysicalExprRef)));
        assert!(!q.is_constant(&(Arc::new(Column::new("b", 0)) as PhysicalExprRef)));
        let q = through(&p, vec![(crate::expressions::lit(7i64), "seven")]);
        assert!(q.is_constant(&(Arc::new(Column::new("seven", 0)) as PhysicalExprRef)));
    }

    #[test]
    fn a_hidden_key_may_be_shown_by_its_equal_or_be_constant() {
        let mut p = EquivalenceProperties::new(schema()).with_ordering(vec![asc(0), asc(1)]);
        p.add_equal(&col(0), &col(2));
        let q = through(&p, vec![(col(1), "b"), (col(2), "c")]);
        assert!(q.ordering_satisfied(&[x(1), x(0)]));
        let mut p = EquivalenceProperties::new(schema()).with_ordering(vec![asc(0), asc(1)]);
        p.add_constant(col(0));
        let q = through(&p, vec![(col(1), "b")]);
        assert!(q.ordering_satisfied(&[x(0)]));
    }

    #[test]
    fn equals_survive_and_repeated_columns_are_equal() {
        let mut p = EquivalenceProperties::new(schema());
        p.add_equal(&col(0), &col(1));
        let q = through(&p, vec![(col(1), "b"), (col(2), "c"), (col(0), "a"), (col(2), "d")]);
        let same = |i, j| {
            let of = |i| q.normalize_expr(&(Arc::new(Column::new("x", i)) as PhysicalExprRef));
            of(i).eq(&of(j))
        };
        assert!(same(0, 2) && same(1, 3) && !same(0, 1));
        // One of them gone, nothing is left to be equal to.
        let q = through(&p, vec![(col(1), "b"), (col(2), "c")]);
        assert!(q.classes().is_empty());
    }
}
