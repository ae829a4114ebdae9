//! A set of literals that rows are looked up in.

use super::Literal;
use super::kernels::Bools;
use crate::PhysicalExprRef;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArrayType};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{cast, take};
use arrow::datatypes::{ArrowNativeType, DataType, i256};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::ColumnarValue;
use hashbrown::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

/// Up to this many values are compared one by one; hashing costs more.
const FEW: usize = 4;

/// Literals of one type, NULLs noted apart.
#[derive(Debug)]
pub(super) struct LiteralSet {
    values: Option<Values>,
    has_null: bool,
    is_empty: bool,
}

#[derive(Debug)]
struct Values {
    data_type: DataType,
    lookup: Box<dyn Lookup>,
}

/// Values of one type, in the form that is fastest to look up.
trait Lookup: Debug + Send + Sync {
    /// Which values of `array`, of the set's type, are members. (What it says of NULLs is void.)
    fn members(&self, array: &dyn Array) -> BooleanBuffer;
}

impl LiteralSet {
    /// The set of `list`; `None` when an item is not a literal, or there is no set for the type.
    pub(super) fn try_new(list: &[PhysicalExprRef]) -> Option<Self> {
        let mut literals = Vec::with_capacity(list.len());
        let mut has_null = false;
        for item in list {
            let mut value = item.downcast_ref::<Literal>()?.value();
            while let ScalarValue::Dictionary(_, inner) = value {
                value = inner;
            }
            if value.is_null() {
                has_null = true;
            } else {
                literals.push(value.clone());
            }
        }
        let values = match literals.first().map(ScalarValue::data_type) {
            None => None,
            Some(data_type) => {
                if literals.iter().any(|l| l.data_type() != data_type) {
                    return None;
                }
                let array = ScalarValue::iter_to_array(literals).ok()?;
                Some(Values { data_type, lookup: lookup_for(&array)? })
            }
        };
        Some(LiteralSet { values, has_null, is_empty: list.is_empty() })
    }

    /// Whether `value` is in the set, by the rules of SQL: NULL when it is NULL, and when it is
    /// not found beside a NULL. `None` when types differ.
    pub(super) fn lookup(&self, value: &ColumnarValue) -> Result<Option<Bools>> {
        if self.is_empty {
            return Ok(Some(Bools::Scalar(Some(false))));
        }
        let Some(values) = &self.values else {
            return Ok(Some(Bools::Scalar(None)));
        };
        let array = match value {
            ColumnarValue::Array(array) => Arc::clone(array),
            ColumnarValue::Scalar(scalar) => scalar.to_array_of_size(1)?,
        };
        let Some(found) = self.lookup_array(values, &array)? else { return Ok(None) };
        Ok(Some(match value {
            ColumnarValue::Array(_) => Bools::Array(found),
            ColumnarValue::Scalar(_) => Bools::Scalar(found.is_valid(0).then(|| found.value(0))),
        }))
    }

    fn lookup_array(&self, values: &Values, array: &ArrayRef) -> Result<Option<BooleanArray>> {
        match array.data_type() {
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let Some(found) = self.lookup_array(values, dictionary.values())? else {
                    return Ok(None);
                };
                let found = take(&found, dictionary.keys(), None)?;
                return Ok(Some(found.as_boolean().clone()));
            }
            DataType::RunEndEncoded(_, of) => {
                return self.lookup_array(values, &cast(array, of.data_type())?);
            }
            DataType::Null => return Ok(Some(BooleanArray::new_null(array.len()))),
            data_type if *data_type != values.data_type => return Ok(None),
            _ => {}
        }
        let members = values.lookup.members(array);
        let valid = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let nulls = if self.has_null {
            NullBuffer::union(valid.as_ref(), Some(&NullBuffer::new(members.clone())))
        } else {
            valid
        };
        Ok(Some(BooleanArray::new(members, nulls)))
    }
}

fn lookup_for(values: &dyn Array) -> Option<Box<dyn Lookup>> {
    Some(match values.data_type() {
        DataType::Boolean => Box::new(Booleans {
            has_true: values.as_boolean().has_true(),
            has_false: values.as_boolean().has_false(),
        }),
        DataType::Utf8 => Box::new(Bytes::of_strings(&values.as_string::<i32>())),
        DataType::LargeUtf8 => Box::new(Bytes::of_strings(&values.as_string::<i64>())),
        DataType::Utf8View => Box::new(Bytes::of_strings(&values.as_string_view())),
        DataType::Binary => Box::new(Bytes::new(values.as_binary::<i32>().iter())),
        DataType::LargeBinary => Box::new(Bytes::new(values.as_binary::<i64>().iter())),
        DataType::BinaryView => Box::new(Bytes::new(values.as_binary_view().iter())),
        DataType::Float16 => return None,
        DataType::Float32 => Box::new(Primitives::<f32>::new(values)),
        DataType::Float64 => Box::new(Primitives::<f64>::new(values)),
        other => match other.primitive_width()? {
            1 => Box::new(Primitives::<u8>::new(values)),
            2 => Box::new(Primitives::<u16>::new(values)),
            4 => Box::new(Primitives::<u32>::new(values)),
            8 => Box::new(Primitives::<u64>::new(values)),
            16 => Box::new(Primitives::<i128>::new(values)),
            32 => Box::new(Primitives::<i256>::new(values)),
            _ => return None,
        },
    })
}

/// A few keys in a row, or many hashed.
#[derive(Debug)]
enum Keys<K> {
    Few(Vec<K>),
    Many(HashSet<K>),
}

impl<K: Eq + Hash> Keys<K> {
    fn new(keys: impl Iterator<Item = K>) -> Self {
        let set: HashSet<K> = keys.collect();
        if set.len() <= FEW { Keys::Few(set.into_iter().collect()) } else { Keys::Many(set) }
    }
}

/// What makes two native values equal in SQL. Of types other than floats, the bits do.
trait Key: ArrowNativeType {
    type Key: Eq + Hash + Debug + Send + Sync;
    fn key(self) -> Self::Key;
}

macro_rules! impl_key {
    ($($native:ty),+) => {
        $(impl Key for $native {
            type Key = $native;
            #[inline]
            fn key(self) -> $native {
                self
            }
        })+
    };
}
impl_key!(u8, u16, u32, u64, i128, i256);

macro_rules! impl_float_key {
    ($($native:ty => $bits:ty),+) => {
        $(impl Key for $native {
            type Key = $bits;
            /// One key for both zeros, one for all NaNs.
            #[inline]
            fn key(self) -> $bits {
                let bits = self.to_bits();
                if bits << 1 == 0 {
                    0
                } else if self.is_nan() {
                    <$bits>::MAX
                } else {
                    bits
                }
            }
        })+
    };
}
impl_float_key!(f32 => u32, f64 => u64);

#[derive(Debug)]
struct Primitives<N: Key>(Keys<N::Key>);

impl<N: Key> Primitives<N> {
    fn new(array: &dyn Array) -> Self {
        let data = array.to_data();
        Primitives(Keys::new(data.buffer::<N>(0)[..array.len()].iter().map(|v| v.key())))
    }
}

impl<N: Key> Lookup for Primitives<N> {
    fn members(&self, array: &dyn Array) -> BooleanBuffer {
        let data = array.to_data();
        let values = &data.buffer::<N>(0)[..array.len()];
        match &self.0 {
            Keys::Few(keys) => BooleanBuffer::collect_bool(values.len(), |i| {
                let key = values[i].key();
                keys.iter().fold(false, |found, k| found | (*k == key))
            }),
            Keys::Many(set) => {
                BooleanBuffer::collect_bool(values.len(), |i| set.contains(&values[i].key()))
            }
        }
    }
}

#[derive(Debug)]
struct Booleans {
    has_true: bool,
    has_false: bool,
}

impl Lookup for Booleans {
    fn members(&self, array: &dyn Array) -> BooleanBuffer {
        let values = array.as_boolean().values();
        match (self.has_true, self.has_false) {
            (true, true) => BooleanBuffer::new_set(values.len()),
            (true, false) => values.clone(),
            (false, true) => !values,
            (false, false) => BooleanBuffer::new_unset(values.len()),
        }
    }
}

#[derive(Debug)]
struct Bytes(Keys<Box<[u8]>>);

impl Bytes {
    fn new<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> Self {
        Bytes(Keys::new(values.flatten().map(Box::from)))
    }

    fn of_strings<'a>(values: &impl StringArrayType<'a>) -> Self {
        Bytes::new(values.iter().map(|value| value.map(str::as_bytes)))
    }

    fn contains(&self, value: &[u8]) -> bool {
        match &self.0 {
            Keys::Few(keys) => keys.iter().any(|key| key.as_ref() == value),
            Keys::Many(set) => set.contains(value),
        }
    }

    fn strings<'a>(&self, array: &impl StringArrayType<'a>) -> BooleanBuffer {
        BooleanBuffer::collect_bool(array.len(), |i| self.contains(array.value(i).as_bytes()))
    }
}

impl Lookup for Bytes {
    fn members(&self, array: &dyn Array) -> BooleanBuffer {
        macro_rules! binary {
            ($array:expr) => {{
                let array = $array;
                BooleanBuffer::collect_bool(array.len(), |i| self.contains(array.value(i)))
            }};
        }
        match array.data_type() {
            DataType::Utf8 => self.strings(&array.as_string::<i32>()),
            DataType::LargeUtf8 => self.strings(&array.as_string::<i64>()),
            DataType::Utf8View => self.strings(&array.as_string_view()),
            DataType::Binary => binary!(array.as_binary::<i32>()),
            DataType::LargeBinary => binary!(array.as_binary::<i64>()),
            _ => binary!(array.as_binary_view()),
        }
    }
}
