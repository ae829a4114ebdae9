//! [`PhysicalExpr`]: what every expression must say about itself.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion_common::Result;
use datafusion_common::tree_node::DynTreeNode;
use datafusion_expr::{ColumnarValue, ExpressionPlacement};
use planish_batch::{Batch, Column};
use std::any::Any;
use std::fmt::{Debug, Display};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A shared expression.
pub type PhysicalExprRef = Arc<dyn PhysicalExpr>;

/// An expression over the columns of a batch, which it names by index.
///
/// Expressions are immutable and pure: no state of a running query lives in them.
pub trait PhysicalExpr: Any + Send + Sync + Debug + Display + DynEq + DynHash {
    /// The field this expression yields over `input_schema`: type, nullability and metadata.
    ///
    /// # Errors
    /// When the expression does not fit the schema.
    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef>;

    /// The type this expression yields.
    ///
    /// # Errors
    /// As [`Self::return_field`].
    fn data_type(&self, input_schema: &Schema) -> Result<DataType> {
        Ok(self.return_field(input_schema)?.data_type().clone())
    }

    /// Whether this expression may yield NULL.
    ///
    /// # Errors
    /// As [`Self::return_field`].
    fn nullable(&self, input_schema: &Schema) -> Result<bool> {
        Ok(self.return_field(input_schema)?.is_nullable())
    }

    /// One value per row of `batch`, or one scalar that stands for all of them.
    ///
    /// # Errors
    /// Those of the expression itself (division by zero, a failed cast, ...).
    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue>;

    /// As [`Self::evaluate`], in the form in which batches carry columns. A column reference
    /// hands on the column as it is, selections included.
    ///
    /// # Errors
    /// As [`Self::evaluate`].
    fn evaluate_column(&self, batch: &Batch) -> Result<Column> {
        Ok(match self.evaluate(batch)? {
            ColumnarValue::Array(array) => Column::flat(array),
            ColumnarValue::Scalar(value) => Column::constant(value, batch.num_rows()),
        })
    }

    /// As [`Self::evaluate`], as an array with one value per row.
    ///
    /// # Errors
    /// As [`Self::evaluate`].
    fn evaluate_array(&self, batch: &Batch) -> Result<ArrayRef> {
        self.evaluate(batch)?.into_array(batch.num_rows())
    }

    /// The direct subexpressions.
    fn children(&self) -> Vec<&PhysicalExprRef>;

    /// The same expression over other subexpressions, as many as [`Self::children`] gave.
    ///
    /// # Errors
    /// When the number of children does not fit.
    fn with_new_children(
        self: Arc<Self>,
        children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef>;

    /// Whether this node (its children aside) may yield another value at each evaluation.
    fn is_volatile_node(&self) -> bool {
        false
    }

    /// Whether evaluating this node (its children aside) over columns of `input_schema` can
    /// end in an error. The default is the safe answer.
    fn can_fail_node(&self, _input_schema: &Schema) -> bool {
        true
    }

    /// Which children are evaluated only on some rows (branches of `CASE`, later operands of
    /// `AND`/`OR`/`COALESCE`), by position; nothing that can fail may be hoisted out of them.
    fn conditional_children(&self) -> Vec<usize> {
        vec![]
    }

    /// Whether this is a lambda: its children are evaluated for other rows than the batch's (the
    /// elements of lists), so that nothing is taken out of it.
    fn is_lambda(&self) -> bool {
        false
    }

    /// Where the expression is best evaluated.
    fn placement(&self) -> ExpressionPlacement {
        ExpressionPlacement::KeepInPlace
    }
}

impl dyn PhysicalExpr {
    /// This expression as a `T`, if it is one.
    pub fn downcast_ref<T: PhysicalExpr>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref::<T>()
    }

    /// Whether this expression is a `T`.
    pub fn is<T: PhysicalExpr>(&self) -> bool {
        (self as &dyn Any).is::<T>()
    }
}

/// Whether any node of `expr` is volatile.
pub fn is_volatile(expr: &PhysicalExprRef) -> bool {
    expr.is_volatile_node() || expr.children().into_iter().any(is_volatile)
}

/// Whether evaluating `expr` over columns of `input_schema` can end in an error.
pub fn can_fail(expr: &PhysicalExprRef, input_schema: &Schema) -> bool {
    expr.can_fail_node(input_schema)
        || expr.children().into_iter().any(|child| can_fail(child, input_schema))
}

/// Structural equality through `dyn`; implemented for every `Eq` type.
pub trait DynEq {
    /// Whether `other` is the same expression.
    fn dyn_eq(&self, other: &dyn Any) -> bool;
}

impl<T: Eq + Any> DynEq for T {
    fn dyn_eq(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>().is_some_and(|other| self == other)
    }
}

/// Structural hashing through `dyn`; implemented for every `Hash` type.
pub trait DynHash {
    /// Feeds this expression to `state`.
    fn dyn_hash(&self, state: &mut dyn Hasher);
}

impl<T: Hash + Any> DynHash for T {
    fn dyn_hash(&self, mut state: &mut dyn Hasher) {
        std::any::TypeId::of::<T>().hash(&mut state);
        self.hash(&mut state);
    }
}

impl PartialEq for dyn PhysicalExpr {
    fn eq(&self, other: &Self) -> bool {
        self.dyn_eq(other as &dyn Any)
    }
}

impl Eq for dyn PhysicalExpr {}

/// Implements `PartialEq`, `Eq` and `Hash` field by field. `derive` cannot: `==` on `Arc<dyn Trait>`
/// moves out of its right operand (rust-lang/rust#31740), `eq` does not.
#[macro_export]
macro_rules! structural_eq {
    ($type:ident { $($field:tt),+ $(,)? }) => {
        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                $(self.$field.eq(&other.$field))&&+
            }
        }

        impl Eq for $type {}

        impl std::hash::Hash for $type {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                $(self.$field.hash(state);)+
            }
        }
    };
}

impl Hash for dyn PhysicalExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.dyn_hash(state);
    }
}

impl DynTreeNode for dyn PhysicalExpr {
    fn arc_children(&self) -> Vec<&Arc<Self>> {
        self.children()
    }

    fn with_new_arc_children(
        &self,
        arc_self: Arc<Self>,
        new_children: Vec<Arc<Self>>,
    ) -> Result<Arc<Self>> {
        arc_self.with_new_children(new_children)
    }
}
