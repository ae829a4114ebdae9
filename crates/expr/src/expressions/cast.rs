//! `CAST` and `TRY_CAST`.

use super::cast_safety::cast_can_fail;
use super::zoned::local_to_zoned;
use super::{exactly, or_empty};
use crate::{PhysicalExpr, PhysicalExprRef, structural_eq};
use arrow::array::AsArray;
use arrow::compute::{CastOptions, take};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion_common::format::{DEFAULT_CAST_OPTIONS, DEFAULT_FORMAT_OPTIONS};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::ColumnarValue;
use planish_batch::Batch;
use std::fmt;
use std::sync::Arc;

/// The metadata keys of an extension type.
const EXTENSION_KEYS: [&str; 2] = ["ARROW:extension:name", "ARROW:extension:metadata"];

const TRY: CastOptions<'static> =
    CastOptions { safe: true, format_options: DEFAULT_FORMAT_OPTIONS };

/// `CAST(expr AS type)`: an error for a value that the type cannot hold.
#[derive(Clone, Debug)]
pub struct CastExpr {
    expr: PhysicalExprRef,
    target: FieldRef,
}

structural_eq!(CastExpr { expr, target });

impl CastExpr {
    /// `CAST(expr AS data_type)`.
    pub fn new(expr: PhysicalExprRef, data_type: DataType) -> Self {
        CastExpr::new_with_field(expr, &untyped(data_type))
    }

    /// As [`Self::new`], with a target field: one with a name or metadata sets the result's
    /// metadata, one without leaves the operand's.
    pub fn new_with_field(expr: PhysicalExprRef, target: &FieldRef) -> Self {
        CastExpr { expr, target: Arc::clone(target) }
    }

    /// The operand.
    pub fn expr(&self) -> &PhysicalExprRef {
        &self.expr
    }

    /// The type cast to.
    pub fn cast_type(&self) -> &DataType {
        self.target.data_type()
    }
}

/// `TRY_CAST(expr AS type)`: NULL for a value that the type cannot hold.
#[derive(Clone, Debug)]
pub struct TryCastExpr {
    expr: PhysicalExprRef,
    target: FieldRef,
}

structural_eq!(TryCastExpr { expr, target });

impl TryCastExpr {
    /// `TRY_CAST(expr AS data_type)`.
    pub fn new(expr: PhysicalExprRef, data_type: DataType) -> Self {
        TryCastExpr::new_with_field(expr, &untyped(data_type))
    }

    /// As [`CastExpr::new_with_field`].
    pub fn new_with_field(expr: PhysicalExprRef, target: &FieldRef) -> Self {
        TryCastExpr { expr, target: Arc::clone(target) }
    }

    /// The operand.
    pub fn expr(&self) -> &PhysicalExprRef {
        &self.expr
    }

    /// The type cast to.
    pub fn cast_type(&self) -> &DataType {
        self.target.data_type()
    }
}

fn untyped(data_type: DataType) -> FieldRef {
    Arc::new(Field::new("", data_type, true))
}

/// The result's field: a target that is but a type keeps the source's metadata, save for the
/// extension type, which the new type is not.
fn result_field(source: &FieldRef, target: &FieldRef) -> Field {
    let bare = target.name().is_empty() && target.is_nullable() && target.metadata().is_empty();
    let metadata = if bare {
        let mut metadata = source.metadata().clone();
        EXTENSION_KEYS.iter().for_each(|key| {
            metadata.remove(*key);
        });
        metadata
    } else {
        target.metadata().clone()
    };
    let field = source.as_ref().clone();
    field.with_data_type(target.data_type().clone()).with_metadata(metadata)
}

fn cast(
    value: &ColumnarValue,
    to: &DataType,
    options: &CastOptions<'static>,
) -> Result<ColumnarValue> {
    let from = value.data_type();
    if from == *to {
        return Ok(value.clone());
    }
    if let (DataType::Timestamp(_, None), DataType::Timestamp(unit, Some(zone))) = (&from, to) {
        return match value {
            ColumnarValue::Array(array) => {
                Ok(ColumnarValue::Array(local_to_zoned(array, *unit, zone)?))
            }
            ColumnarValue::Scalar(scalar) => {
                let zoned = local_to_zoned(&scalar.to_array()?, *unit, zone)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&zoned, 0)?))
            }
        };
    }
    match (value, value.cast_to(to, Some(options))) {
        // The value at fault may be a dictionary entry that no row uses.
        (ColumnarValue::Array(array), Err(_))
            if matches!(array.data_type(), DataType::Dictionary(..)) =>
        {
            let dictionary = array.as_any_dictionary();
            let used = take(dictionary.values(), dictionary.keys(), None)?;
            ColumnarValue::Array(used).cast_to(to, Some(options))
        }
        (_, result) => result,
    }
}

impl fmt::Display for CastExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CAST({} AS {})", self.expr, self.target.data_type())
    }
}

impl PhysicalExpr for CastExpr {
    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        let source = self.expr.return_field(input_schema)?;
        Ok(Arc::new(result_field(&source, &self.target)))
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        let value = self.expr.evaluate(batch)?;
        or_empty(cast(&value, self.cast_type(), &DEFAULT_CAST_OPTIONS), self, batch)
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![&self.expr]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        let [expr] = exactly(children)?;
        Ok(Arc::new(CastExpr::new_with_field(expr, &self.target)))
    }

    fn can_fail_node(&self, input_schema: &Schema) -> bool {
        self.expr
            .data_type(input_schema)
            .map_or(true, |from| cast_can_fail(&from, self.target.data_type()))
    }
}

impl fmt::Display for TryCastExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TRY_CAST({} AS {})", self.expr, self.target.data_type())
    }
}

impl PhysicalExpr for TryCastExpr {
    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        let source = self.expr.return_field(input_schema)?;
        Ok(Arc::new(result_field(&source, &self.target).with_nullable(true)))
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        let value = self.expr.evaluate(batch)?;
        or_empty(cast(&value, self.cast_type(), &TRY), self, batch)
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![&self.expr]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        let [expr] = exactly(children)?;
        Ok(Arc::new(TryCastExpr::new_with_field(expr, &self.target)))
    }

    fn can_fail_node(&self, input_schema: &Schema) -> bool {
        self.expr
            .data_type(input_schema)
            .map_or(true, |from| !arrow::compute::can_cast_types(&from, self.target.data_type()))
    }
}
