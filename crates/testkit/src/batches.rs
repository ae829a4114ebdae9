//! Deterministic data: a table of mixed types, and ways to disguise the same rows (slices,
//! dictionaries, selections).

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray, StringViewArray,
};
use arrow::compute::{cast, concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use planish_batch::{Batch, Column, Selection};
use std::sync::Arc;

/// A small deterministic random number generator (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator; equal seeds give equal sequences.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// The schema of [`mixed`].
pub fn mixed_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("i", DataType::Int32, true),
        Field::new("l", DataType::Int64, true),
        Field::new("f", DataType::Float64, true),
        Field::new("b", DataType::Boolean, true),
        Field::new("d", DataType::Date32, true),
        Field::new("n", DataType::Decimal128(15, 2), true),
        Field::new("s", DataType::Utf8, true),
        Field::new("v", DataType::Utf8View, true),
    ]))
}

/// `rows` rows of mixed types with NULLs, repeats, extreme values, zeros of both signs and NaN;
/// `id` counts from 0.
///
/// # Panics
/// Never for valid sizes.
pub fn mixed(rows: usize, seed: u64) -> RecordBatch {
    let mut random = Random::new(seed);
    let mut nullable = |make: &mut dyn FnMut(&mut Random) -> u64| -> Vec<Option<u64>> {
        (0..rows).map(|_| (!random.one_in(8)).then(|| make(&mut random))).collect()
    };
    let small = nullable(&mut |r| r.below(10));
    let large = nullable(&mut |r| match r.below(20) {
        0 => i64::MIN as u64,
        1 => i64::MAX as u64,
        _ => r.next_u64(),
    });
    let floats = nullable(&mut |r| match r.below(12) {
        0 => 0.0f64.to_bits(),
        1 => (-0.0f64).to_bits(),
        2 => f64::NAN.to_bits(),
        3 => f64::NEG_INFINITY.to_bits(),
        _ => (r.below(2000) as f64 / 8.0 - 100.0).to_bits(),
    });
    let booleans = nullable(&mut |r| r.below(2));
    let days = nullable(&mut |r| r.below(30_000));
    let decimals = nullable(&mut |r| r.below(1_000_000));
    let strings = nullable(&mut |r| r.below(60));
    let views = nullable(&mut |r| r.below(1000));
    let text = |n: u64| match n % 6 {
        0 => String::new(),
        1 => format!("{n}"),
        _ => format!("a common prefix, longer than twelve bytes, then {n:04}"),
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(0..rows as i64)),
        Arc::new(small.iter().map(|v| v.map(|v| v as i32 - 5)).collect::<Int32Array>()),
        Arc::new(large.iter().map(|v| v.map(|v| v as i64)).collect::<Int64Array>()),
        Arc::new(floats.iter().map(|v| v.map(f64::from_bits)).collect::<Float64Array>()),
        Arc::new(booleans.iter().map(|v| v.map(|v| v == 1)).collect::<BooleanArray>()),
        Arc::new(days.iter().map(|v| v.map(|v| v as i32 - 100)).collect::<Date32Array>()),
        Arc::new(
            decimals
                .iter()
                .map(|v| v.map(|v| i128::from(v) - 500_000))
                .collect::<Decimal128Array>()
                .with_precision_and_scale(15, 2)
                .unwrap(),
        ),
        Arc::new(strings.iter().map(|v| v.map(text)).collect::<StringArray>()),
        Arc::new(views.iter().map(|v| v.map(text)).collect::<StringViewArray>()),
    ];
    RecordBatch::try_new(mixed_schema(), columns).unwrap()
}

/// As [`mixed`], with every nullable column NULL throughout.
///
/// # Panics
/// Never for valid sizes.
pub fn all_null(rows: usize) -> RecordBatch {
    let schema = mixed_schema();
    let columns = schema
        .fields()
        .iter()
        .map(|f| match f.is_nullable() {
            true => arrow::array::new_null_array(f.data_type(), rows),
            false => Arc::new(Int64Array::from_iter_values(0..rows as i64)) as ArrayRef,
        })
        .collect();
    RecordBatch::try_new(schema, columns).unwrap()
}

/// `data` cut into batches of `rows` rows; each is a slice of one array.
pub fn split(data: &RecordBatch, rows: usize) -> Vec<RecordBatch> {
    (0..data.num_rows())
        .step_by(rows.max(1))
        .map(|offset| data.slice(offset, rows.min(data.num_rows() - offset)))
        .collect()
}

/// The rows of `data` dealt to `partitions` lists in turn, `rows` at a time.
pub fn deal(data: &RecordBatch, partitions: usize, rows: usize) -> Vec<Vec<RecordBatch>> {
    let mut out = vec![vec![]; partitions.max(1)];
    for (i, batch) in split(data, rows).into_iter().enumerate() {
        out[i % partitions.max(1)].push(batch);
    }
    out
}

/// How the same rows may come along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disguise {
    /// Flat arrays.
    Flat,
    /// Strings as dictionary codes under their plain type.
    Dictionary,
    /// A selection over a base with twice the rows, in another order.
    Selected,
}

/// All disguises.
pub const DISGUISES: [Disguise; 3] = [Disguise::Flat, Disguise::Dictionary, Disguise::Selected];

/// `batch` in a disguise.
///
/// # Panics
/// When a column cannot be encoded.
pub fn disguised(batch: &RecordBatch, disguise: Disguise) -> Batch {
    match disguise {
        Disguise::Flat => Batch::from_record_batch(batch),
        Disguise::Dictionary => {
            let columns = batch
                .columns()
                .iter()
                .map(|array| match array.data_type() {
                    string @ (DataType::Utf8 | DataType::Utf8View) => {
                        let dictionary = DataType::Dictionary(
                            Box::new(DataType::Int32),
                            Box::new(string.clone()),
                        );
                        Column::encoded(cast(array, &dictionary).unwrap(), string)
                    }
                    _ => Column::flat(Arc::clone(array)),
                })
                .collect();
            Batch::try_new(batch.schema(), columns, batch.num_rows()).unwrap()
        }
        Disguise::Selected => {
            let rows = batch.num_rows() as u32;
            let reversed = arrow::array::UInt32Array::from_iter_values((0..rows).rev());
            let reversed = take_record_batch(batch, &reversed).unwrap();
            let base = concat_batches(&batch.schema(), [batch, &reversed]).unwrap();
            let wanted = (0..rows).map(|i| if i % 2 == 0 { i } else { 2 * rows - 1 - i });
            Batch::from_record_batch(&base).select(&Arc::new(Selection::rows(wanted.collect())))
        }
    }
}
