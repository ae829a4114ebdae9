//! Which casts hold every value of their source type.

use arrow::datatypes::{DataType, TimeUnit};

/// Whether casting some value of type `from` to `to` ends in an error.
pub(super) fn cast_can_fail(from: &DataType, to: &DataType) -> bool {
    use DataType::{
        Boolean, Date32, Date64, Decimal128, Decimal256, Dictionary, LargeUtf8, Null, Timestamp,
        Utf8, Utf8View,
    };
    if from == to || *from == Null {
        return false;
    }
    match (from, to) {
        (Dictionary(_, value), _) => cast_can_fail(value, to),
        (_, Dictionary(..)) => true,
        (Utf8 | LargeUtf8 | Utf8View, Utf8 | LargeUtf8 | Utf8View) => false,
        (Boolean, _) => !(to.is_integer() || to.is_floating() || is_string(to)),
        (_, Boolean) => !from.is_numeric() || matches!(from, Decimal128(..) | Decimal256(..)),
        (l, r) if l.is_integer() && r.is_integer() => !integer_fits(l, r),
        // Rounds, or becomes infinite; neither is an error.
        (l, r) if l.is_integer() && r.is_floating() => false,
        (l, r) if l.is_floating() && r.is_floating() => false,
        (Decimal128(..) | Decimal256(..), r) if r.is_floating() => false,
        (l, Decimal128(p, s) | Decimal256(p, s)) if l.is_integer() => {
            i16::from(*p) - i16::from(*s) < digits(l) || *s < 0
        }
        (Decimal128(p1, s1) | Decimal256(p1, s1), Decimal128(p2, s2) | Decimal256(p2, s2)) => {
            // A smaller scale rounds, which may carry into one more digit.
            let carry = i16::from(s2 < s1);
            i16::from(*p2) - i16::from(*s2) < i16::from(*p1) - i16::from(*s1) + carry
        }
        (Decimal128(..) | Decimal256(..), r) => !is_string(r),
        (l, r) if (l.is_integer() || l.is_floating()) && is_string(r) => false,
        (Date32, Date64) => false,
        (Timestamp(from_unit, from_zone), Timestamp(to_unit, to_zone)) => {
            from_zone.is_some() != to_zone.is_some() || rank(*from_unit) < rank(*to_unit)
        }
        _ => true,
    }
}

fn is_string(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn integer_fits(from: &DataType, to: &DataType) -> bool {
    let bits = |t: &DataType| t.primitive_width().unwrap_or(0) * 8;
    match (from.is_signed_integer(), to.is_signed_integer()) {
        (true, true) | (false, false) => bits(from) <= bits(to),
        (false, true) => bits(from) < bits(to),
        (true, false) => false,
    }
}

/// Decimal digits that every value of an integer type fits in.
fn digits(data_type: &DataType) -> i16 {
    match data_type.primitive_width() {
        Some(1) => 3,
        Some(2) => 5,
        Some(4) => 10,
        _ => 20,
    }
}

fn rank(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    }
}
