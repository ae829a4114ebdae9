//! From fields to columns.

use super::CsvOptions;
use super::records::{FieldText, RecordError, Records};
use arrow::array::builder::{
    BinaryViewBuilder, BooleanBuilder, PrimitiveBuilder, StringBuilder, StringViewBuilder,
};
use arrow::array::{ArrayRef, new_null_array};
use arrow::buffer::Buffer;
use arrow::compute::kernels::cast_utils::{Parser, parse_decimal, string_to_datetime};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Date64Type, Decimal128Type, Field, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use chrono::{DateTime, Utc};
use std::sync::Arc;

type Decoded = Result<ArrayRef, RecordError>;

/// One column of a batch of records.
pub(super) struct ColumnDecoder<'a> {
    pub(super) records: &'a Records,
    pub(super) data: &'a Buffer,
    /// Position in the records.
    pub(super) position: usize,
    /// What it becomes.
    pub(super) field: &'a Field,
    pub(super) options: &'a CsvOptions,
}

impl ColumnDecoder<'_> {
    /// The column's values.
    pub(super) fn decode(&self) -> Decoded {
        match self.field.data_type() {
            DataType::Utf8View => self.strings(),
            DataType::Boolean => self.booleans(),
            DataType::Int8 => self.parsed::<Int8Type>(),
            DataType::Int16 => self.parsed::<Int16Type>(),
            DataType::Int32 => self.parsed::<Int32Type>(),
            DataType::Int64 => self.parsed::<Int64Type>(),
            DataType::UInt8 => self.parsed::<UInt8Type>(),
            DataType::UInt16 => self.parsed::<UInt16Type>(),
            DataType::UInt32 => self.parsed::<UInt32Type>(),
            DataType::UInt64 => self.parsed::<UInt64Type>(),
            DataType::Float32 => self.parsed::<Float32Type>(),
            DataType::Float64 => self.parsed::<Float64Type>(),
            DataType::Date32 => self.parsed::<Date32Type>(),
            DataType::Date64 => self.parsed::<Date64Type>(),
            DataType::Time32(TimeUnit::Second) => self.parsed::<Time32SecondType>(),
            DataType::Time32(TimeUnit::Millisecond) => self.parsed::<Time32MillisecondType>(),
            DataType::Time64(TimeUnit::Microsecond) => self.parsed::<Time64MicrosecondType>(),
            DataType::Time64(TimeUnit::Nanosecond) => self.parsed::<Time64NanosecondType>(),
            DataType::Decimal128(precision, scale) if *scale >= 0 => self
                .primitive::<Decimal128Type>(|text| {
                    parse_decimal::<Decimal128Type>(text, *precision, *scale).ok()
                }),
            DataType::Timestamp(unit, zone) => self.timestamps(*unit, zone.as_deref()),
            DataType::Null => Ok(new_null_array(&DataType::Null, self.records.len())),
            DataType::BinaryView => self.binaries(),
            other => self.cast_to(other),
        }
    }

    /// The field of `row`, or `None` where it stands for NULL.
    fn text(&self, row: usize, is_string: bool) -> Result<Option<FieldText<'_>>, RecordError> {
        let field = self.records.field(self.data, row, self.position);
        let null = match &self.options.null_value {
            _ if field.bytes.is_empty() && !is_string => true,
            _ if field.quoted => false,
            Some(marker) => field.bytes == marker.as_bytes(),
            None => field.bytes.is_empty(),
        };
        if null && !self.field.is_nullable() {
            return Err(self.error(row, "is NULL and may not be"));
        }
        Ok((!null).then_some(field))
    }

    fn error(&self, row: usize, what: &str) -> RecordError {
        RecordError {
            line: self.records.line(row),
            message: format!("column {} {what}", self.field.name()),
        }
    }

    fn cannot_parse(&self, row: usize, bytes: &[u8]) -> RecordError {
        let text = String::from_utf8_lossy(bytes);
        let shown: String = text.chars().take(40).collect();
        self.error(row, &format!("is {}, and '{shown}' is not", self.field.data_type()))
    }

    fn utf8<'a>(&self, row: usize, bytes: &'a [u8]) -> Result<&'a str, RecordError> {
        std::str::from_utf8(bytes).map_err(|_| self.error(row, "is not UTF-8"))
    }

    fn parsed<T: Parser>(&self) -> Decoded {
        self.primitive::<T>(T::parse)
    }

    fn primitive<T: ArrowPrimitiveType>(
        &self,
        parse: impl Fn(&str) -> Option<T::Native>,
    ) -> Decoded {
        let rows = self.records.len();
        let data_type = self.field.data_type().clone();
        let mut out = PrimitiveBuilder::<T>::with_capacity(rows).with_data_type(data_type);
        for row in 0..rows {
            let Some(field) = self.text(row, false)? else {
                out.append_null();
                continue;
            };
            match parse(self.utf8(row, field.bytes)?) {
                Some(value) => out.append_value(value),
                None => return Err(self.cannot_parse(row, field.bytes)),
            }
        }
        Ok(Arc::new(out.finish()))
    }

    fn timestamps(&self, unit: TimeUnit, zone: Option<&str>) -> Decoded {
        let zone: arrow::array::timezone::Tz = match zone.unwrap_or("+00:00").parse() {
            Ok(zone) => zone,
            Err(_) => return Err(self.error(0, &format!("has an unknown time zone {zone:?}"))),
        };
        let instant = |text: &str| -> Option<DateTime<Utc>> {
            string_to_datetime(&zone, text).ok().map(|time| time.to_utc())
        };
        match unit {
            TimeUnit::Second => {
                self.primitive::<TimestampSecondType>(|t| Some(instant(t)?.timestamp()))
            }
            TimeUnit::Millisecond => {
                self.primitive::<TimestampMillisecondType>(|t| Some(instant(t)?.timestamp_millis()))
            }
            TimeUnit::Microsecond => {
                self.primitive::<TimestampMicrosecondType>(|t| Some(instant(t)?.timestamp_micros()))
            }
            TimeUnit::Nanosecond => {
                self.primitive::<TimestampNanosecondType>(|t| instant(t)?.timestamp_nanos_opt())
            }
        }
    }

    fn booleans(&self) -> Decoded {
        let mut out = BooleanBuilder::with_capacity(self.records.len());
        for row in 0..self.records.len() {
            let Some(field) = self.text(row, false)? else {
                out.append_null();
                continue;
            };
            let is = |names: [&str; 3]| {
                names.iter().any(|name| field.bytes.eq_ignore_ascii_case(name.as_bytes()))
            };
            if is(["true", "t", "1"]) {
                out.append_value(true);
            } else if is(["false", "f", "0"]) {
                out.append_value(false);
            } else {
                return Err(self.cannot_parse(row, field.bytes));
            }
        }
        Ok(Arc::new(out.finish()))
    }

    /// Strings are views into the file's own bytes.
    fn strings(&self) -> Decoded {
        let rows = self.records.len();
        let mut out = StringViewBuilder::with_capacity(rows);
        let block = out.append_block(self.data.clone());
        for row in 0..rows {
            let Some(field) = self.text(row, true)? else {
                out.append_null();
                continue;
            };
            let appended = match field.offset {
                Some(offset) => {
                    out.try_append_view(block, offset, field.bytes.len() as u32).is_ok()
                }
                None => {
                    let text = self.utf8(row, field.bytes)?;
                    out.append_value(text);
                    true
                }
            };
            if !appended {
                return Err(self.error(row, "is not UTF-8"));
            }
        }
        Ok(Arc::new(out.finish()))
    }

    fn binaries(&self) -> Decoded {
        let mut out = BinaryViewBuilder::with_capacity(self.records.len());
        for row in 0..self.records.len() {
            match self.text(row, true)? {
                Some(field) => out.append_value(field.bytes),
                None => out.append_null(),
            }
        }
        Ok(Arc::new(out.finish()))
    }

    /// Rare types, through a cast from strings.
    fn cast_to(&self, to: &DataType) -> Decoded {
        let mut out = StringBuilder::new();
        for row in 0..self.records.len() {
            match self.text(row, false)? {
                Some(field) => out.append_value(self.utf8(row, field.bytes)?),
                None => out.append_null(),
            }
        }
        let options = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(&out.finish(), to, &options)
            .map_err(|e| self.error(0, &format!("cannot be read as {to}: {e}")))
    }
}
