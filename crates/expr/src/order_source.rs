//! Casts that neither reorder values nor make two of them one.

use crate::PhysicalExprRef;
use crate::expressions::CastExpr;
use arrow::datatypes::{DataType, Schema};

/// What `expr` orders rows by: `expr` itself, or the operand of a cast to a type that holds every
/// value of the operand's type and compares them alike. Rows sorted by the one are sorted by the
/// other, and rows equal in the one are equal in the other.
pub fn order_source<'a>(expr: &'a PhysicalExprRef, schema: &Schema) -> &'a PhysicalExprRef {
    let Some(cast) = expr.downcast_ref::<CastExpr>() else { return expr };
    match cast.expr().data_type(schema) {
        Ok(from) if embeds(&from, cast.cast_type()) => order_source(cast.expr(), schema),
        _ => expr,
    }
}

fn embeds(from: &DataType, to: &DataType) -> bool {
    use DataType::{
        Date32, Date64, Decimal128, Decimal256, Float32, Float64, LargeUtf8, Utf8, Utf8View,
    };
    let bits = |t: &DataType| t.primitive_width().unwrap_or(0) * 8;
    match (from, to) {
        _ if from == to => true,
        (Utf8 | LargeUtf8 | Utf8View, Utf8 | LargeUtf8 | Utf8View) => true,
        (Float32, Float64) | (Date32, Date64) => true,
        (Decimal128(p, s), Decimal128(q, t) | Decimal256(q, t)) => {
            s <= t && i16::from(*p) - i16::from(*s) <= i16::from(*q) - i16::from(*t)
        }
        _ if from.is_integer() && to.is_integer() => {
            match (from.is_signed_integer(), to.is_signed_integer()) {
                (false, true) => bits(from) < bits(to),
                (true, false) => false,
                _ => bits(from) <= bits(to),
            }
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expressions::{Column, NegativeExpr};
    use arrow::datatypes::{Field, TimeUnit};
    use std::sync::Arc;

    fn is_kept(from: DataType, to: DataType) -> bool {
        let schema = Schema::new(vec![Field::new("a", from, true)]);
        let a: PhysicalExprRef = Arc::new(Column::new("a", 0));
        let cast: PhysicalExprRef = Arc::new(CastExpr::new(Arc::clone(&a), to));
        order_source(&cast, &schema).eq(&a)
    }

    #[test]
    fn wider_types_keep_the_order() {
        use DataType::{
            Date32, Date64, Decimal128, Float32, Float64, Int8, Int32, Int64, UInt32, Utf8,
            Utf8View,
        };
        for (from, to) in [
            (Int32, Int64),
            (UInt32, Int64),
            (Float32, Float64),
            (Date32, Date64),
            (Utf8, Utf8View),
            (Decimal128(5, 2), Decimal128(9, 3)),
            (Int8, Int8),
        ] {
            assert!(is_kept(from.clone(), to.clone()), "{from} to {to}");
        }
    }

    #[test]
    fn what_reorders_rounds_or_fails_does_not() {
        use DataType::{Date32, Decimal128, Float64, Int8, Int32, Int64, Timestamp, UInt32, Utf8};
        let zoned = Timestamp(TimeUnit::Second, Some("Europe/Berlin".into()));
        for (from, to) in [
            (Int64, Int32),
            (Int32, UInt32),
            (UInt32, Int32),
            // Large integers become one number.
            (Int64, Float64),
            (Int64, Utf8),
            (Utf8, Int64),
            (Decimal128(9, 3), Decimal128(9, 2)),
            (Decimal128(9, 3), Decimal128(9, 4)),
            (zoned, Timestamp(TimeUnit::Second, None)),
            (Timestamp(TimeUnit::Second, None), Date32),
            (DataType::Boolean, Int8),
        ] {
            assert!(!is_kept(from.clone(), to.clone()), "{from} to {to}");
        }
    }

    #[test]
    fn casts_of_casts_and_of_computations() {
        let schema = Schema::new(vec![Field::new("a", DataType::Int8, true)]);
        let a: PhysicalExprRef = Arc::new(Column::new("a", 0));
        let cast = |e: &PhysicalExprRef, to| -> PhysicalExprRef {
            Arc::new(CastExpr::new(Arc::clone(e), to))
        };
        let twice = cast(&cast(&a, DataType::Int32), DataType::Int64);
        assert!(order_source(&twice, &schema).eq(&a));
        let negative: PhysicalExprRef = Arc::new(NegativeExpr::new(Arc::clone(&a)));
        assert!(order_source(&cast(&negative, DataType::Int64), &schema).eq(&negative));
        let back = cast(&cast(&a, DataType::Int64), DataType::Int8);
        assert!(order_source(&back, &schema).eq(&back));
    }
}
