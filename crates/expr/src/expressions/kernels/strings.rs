//! `||` and the regular expression operators.

use super::apply_binary;
use arrow::array::{
    Array, ArrayAccessor, ArrayRef, AsArray, BinaryBuilder, BooleanArray, GenericStringBuilder,
    OffsetSizeTrait, StringArray, StringArrayType, StringViewBuilder, new_null_array,
};
use arrow::compute::cast;
use arrow::compute::kernels::concat_elements::concat_elements_dyn;
use arrow::compute::kernels::regexp::{regexp_is_match, regexp_is_match_scalar};
use arrow::datatypes::DataType;
use datafusion_common::{Result, internal_err};
use datafusion_expr::ColumnarValue;
use std::fmt::Write;
use std::sync::Arc;

/// `left || right`; NULL when either is.
pub(in crate::expressions) fn concat_strings(
    left: &ColumnarValue,
    right: &ColumnarValue,
) -> Result<ColumnarValue> {
    apply_binary(left, right, |l, r| {
        let ((l, l_scalar), (r, r_scalar)) = (l.get(), r.get());
        if l_scalar == r_scalar {
            return Ok(concat_elements_dyn(l, r)?);
        }
        let (scalar, array) = if l_scalar { (l, r) } else { (r, l) };
        if scalar.is_null(0) {
            return Ok(new_null_array(array.data_type(), array.len()));
        }
        match (scalar.data_type(), array.data_type()) {
            (DataType::Utf8, DataType::Utf8) => Ok(with_constant::<i32>(scalar, array, l_scalar)),
            (DataType::LargeUtf8, DataType::LargeUtf8) => {
                Ok(with_constant::<i64>(scalar, array, l_scalar))
            }
            (DataType::Utf8View, DataType::Utf8View) => {
                let (constant, array) = (scalar.as_string_view().value(0), array.as_string_view());
                let mut out = StringViewBuilder::with_capacity(array.len());
                let mut joined = String::new();
                for value in array {
                    out.append_option(value.map(|value| {
                        joined.clear();
                        let (a, b) = if l_scalar { (constant, value) } else { (value, constant) };
                        joined.push_str(a);
                        joined.push_str(b);
                        joined.as_str()
                    }));
                }
                Ok(Arc::new(out.finish()))
            }
            (DataType::Binary, DataType::Binary) => {
                let (constant, array) =
                    (scalar.as_binary::<i32>().value(0), array.as_binary::<i32>());
                let mut out = BinaryBuilder::with_capacity(array.len(), array.values().len());
                for value in array {
                    out.append_option(value.map(|value| {
                        if l_scalar {
                            [constant, value].concat()
                        } else {
                            [value, constant].concat()
                        }
                    }));
                }
                Ok(Arc::new(out.finish()))
            }
            (s, a) => internal_err!("{s} || {a} of a constant"),
        }
    })
}

fn with_constant<O: OffsetSizeTrait>(
    scalar: &dyn Array,
    array: &dyn Array,
    constant_first: bool,
) -> ArrayRef {
    let (constant, array) = (scalar.as_string::<O>().value(0), array.as_string::<O>());
    let bytes = array.values().len() + array.len() * constant.len();
    let mut out = GenericStringBuilder::<O>::with_capacity(array.len(), bytes);
    for value in array {
        let Some(value) = value else {
            out.append_null();
            continue;
        };
        let (a, b) = if constant_first { (constant, value) } else { (value, constant) };
        // Writing to a builder, unlike its `append_value`, joins pieces without a copy; it
        // cannot fail.
        let written = out.write_str(a).and_then(|()| out.write_str(b));
        debug_assert!(written.is_ok());
        out.append_value("");
    }
    Arc::new(out.finish())
}

/// Whether strings of `left` match the regular expressions `right` anywhere.
pub(in crate::expressions) fn regex_match(
    left: &ColumnarValue,
    right: &ColumnarValue,
    case_insensitive: bool,
    negated: bool,
) -> Result<ColumnarValue> {
    apply_binary(left, right, |l, r| {
        let ((l, l_scalar), (r, r_scalar)) = (l.get(), r.get());
        let rows = super::rows((l, l_scalar), (r, r_scalar));
        if (l_scalar && l.is_null(0)) || (r_scalar && r.is_null(0)) {
            return Ok(new_null_array(&DataType::Boolean, rows));
        }
        let (l, r) = (plain(l)?, plain(r)?);
        let matches = match (l.data_type(), r.data_type()) {
            (DataType::Utf8, DataType::Utf8) => {
                let (l, r) = ((l.as_string::<i32>(), l_scalar), (r.as_string::<i32>(), r_scalar));
                matches(l, r, rows, case_insensitive)?
            }
            (DataType::LargeUtf8, DataType::LargeUtf8) => {
                let (l, r) = ((l.as_string::<i64>(), l_scalar), (r.as_string::<i64>(), r_scalar));
                matches(l, r, rows, case_insensitive)?
            }
            (DataType::Utf8View, DataType::Utf8View) => {
                let (l, r) = ((l.as_string_view(), l_scalar), (r.as_string_view(), r_scalar));
                matches(l, r, rows, case_insensitive)?
            }
            (l, r) => return internal_err!("{l} ~ {r}"),
        };
        let matches = if negated { arrow::compute::not(&matches)? } else { matches };
        Ok(Arc::new(matches))
    })
}

fn plain(array: &dyn Array) -> Result<ArrayRef> {
    let to = match array.data_type() {
        DataType::Dictionary(_, value) => value.as_ref(),
        other => other,
    };
    Ok(cast(array, to)?)
}

fn matches<'a, A: Array>(
    (l, l_scalar): (&'a A, bool),
    (r, r_scalar): (&'a A, bool),
    rows: usize,
    case_insensitive: bool,
) -> Result<BooleanArray>
where
    &'a A: StringArrayType<'a>,
{
    let flag = case_insensitive.then_some("i");
    if r_scalar {
        return Ok(regexp_is_match_scalar(l, ArrayAccessor::value(&r, 0), flag)?);
    }
    // Patterns per row: the one place where a constant (the text) is expanded, since a pattern
    // costs far more to compile than a text to copy.
    let flags = flag.map(|flag| StringArray::from(vec![flag; rows]));
    let patterns = StringArray::from_iter(r.iter());
    let texts = if l_scalar {
        StringArray::from(vec![ArrayAccessor::value(&l, 0); rows])
    } else {
        StringArray::from_iter(l.iter())
    };
    match_rows(&texts, &patterns, flags.as_ref())
}

fn match_rows(
    texts: &StringArray,
    patterns: &StringArray,
    flags: Option<&StringArray>,
) -> Result<BooleanArray> {
    Ok(regexp_is_match(texts, patterns, flags)?)
}

/// Whether `pattern` is a valid regular expression.
pub(in crate::expressions) fn regex_compiles(pattern: &str, case_insensitive: bool) -> bool {
    let flag = case_insensitive.then_some("i");
    regexp_is_match_scalar(&StringArray::from(Vec::<&str>::new()), pattern, flag).is_ok()
}
