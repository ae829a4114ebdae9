//! The schema of CSV files, guessed from their first records.

use super::CsvOptions;
use super::records::{FieldText, Records};
use arrow::compute::kernels::cast_utils::{Parser, string_to_datetime};
use arrow::datatypes::{DataType, Date32Type, Field, Schema, TimeUnit};
use chrono::Utc;

/// What the texts of a column have looked like so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Only NULLs.
    Nothing,
    Boolean,
    Integer,
    Float,
    Date,
    Timestamp(TimeUnit),
    Text,
}

impl Kind {
    fn of(text: &str) -> Kind {
        let starts_number =
            text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
        if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
            Kind::Boolean
        } else if !starts_number {
            match text {
                "NaN" | "nan" | "inf" | "Infinity" => Kind::Float,
                _ => Kind::Text,
            }
        } else if text.trim_start_matches(['-', '+']).bytes().all(|b| b.is_ascii_digit()) {
            // Longer numbers are names of things more often than quantities.
            if text.parse::<i64>().is_ok() { Kind::Integer } else { Kind::Text }
        } else if text.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b))
            && text.parse::<f64>().is_ok()
        {
            Kind::Float
        } else {
            Kind::of_time(text)
        }
    }

    fn of_time(text: &str) -> Kind {
        let shape = text.as_bytes();
        let dashes = shape.len() >= 10 && shape[4] == b'-' && shape[7] == b'-';
        if dashes && shape.len() == 10 && Date32Type::parse(text).is_some() {
            return Kind::Date;
        }
        if !dashes || shape.len() < 19 || string_to_datetime(&Utc, text).is_err() {
            return Kind::Text;
        }
        let fraction = text[19..]
            .strip_prefix('.')
            .map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
        Kind::Timestamp(match fraction {
            0 => TimeUnit::Second,
            1..=3 => TimeUnit::Millisecond,
            4..=6 => TimeUnit::Microsecond,
            _ => TimeUnit::Nanosecond,
        })
    }

    /// What both fit into.
    fn join(self, other: Kind) -> Kind {
        match (self, other) {
            (a, b) if a == b => a,
            (Kind::Nothing, kind) | (kind, Kind::Nothing) => kind,
            (Kind::Integer, Kind::Float) | (Kind::Float, Kind::Integer) => Kind::Float,
            (Kind::Timestamp(a), Kind::Timestamp(b)) => Kind::Timestamp(a.max(b)),
            (Kind::Date, Kind::Timestamp(unit)) | (Kind::Timestamp(unit), Kind::Date) => {
                Kind::Timestamp(unit)
            }
            _ => Kind::Text,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Kind::Boolean => DataType::Boolean,
            Kind::Integer => DataType::Int64,
            Kind::Float => DataType::Float64,
            Kind::Date => DataType::Date32,
            Kind::Timestamp(unit) => DataType::Timestamp(unit, None),
            Kind::Nothing | Kind::Text => DataType::Utf8View,
        }
    }
}

/// The columns of one file: their names, and what their values look like.
#[derive(Debug)]
pub(super) struct Guess {
    columns: Vec<(String, Kind)>,
}

impl Guess {
    /// From a file's header (if it has one) and first records.
    pub(super) fn new(
        header: Option<Vec<String>>,
        records: &Records,
        data: &[u8],
        options: &CsvOptions,
    ) -> Self {
        let width = header.as_ref().map_or(records.width(), Vec::len);
        let names = header.unwrap_or_else(|| (1..=width).map(|i| format!("column_{i}")).collect());
        let mut kinds = vec![Kind::Nothing; width];
        for row in 0..records.len() {
            for (column, kind) in kinds.iter_mut().enumerate() {
                let field = records.field(data, row, column);
                if !is_null(&field, options) {
                    *kind =
                        kind.join(std::str::from_utf8(field.bytes).map_or(Kind::Text, Kind::of));
                }
            }
        }
        Guess { columns: names.into_iter().zip(kinds).collect() }
    }

    /// Adds the columns of another file, by name.
    pub(super) fn merge(&mut self, other: Guess) {
        for (name, kind) in other.columns {
            match self.columns.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = known.join(kind),
                None => self.columns.push((name, kind)),
            }
        }
    }

    pub(super) fn schema(&self) -> Schema {
        let field = |(name, kind): &(String, Kind)| Field::new(name, kind.data_type(), true);
        Schema::new(self.columns.iter().map(field).collect::<Vec<_>>())
    }
}

fn is_null(field: &FieldText<'_>, options: &CsvOptions) -> bool {
    match &options.null_value {
        _ if field.bytes.is_empty() => true,
        Some(marker) => !field.quoted && field.bytes == marker.as_bytes(),
        None => false,
    }
}

/// The names of a header's columns: none empty, none twice.
pub(super) fn column_names(header: &Records, data: &[u8]) -> Vec<String> {
    let mut names: Vec<String> = vec![];
    for column in 0..header.width() {
        let bytes = header.field(data, 0, column).bytes;
        let mut name = String::from_utf8_lossy(bytes).trim().to_owned();
        if name.is_empty() {
            name = format!("column_{}", column + 1);
        }
        let mut unique = name.clone();
        let mut copy = 1;
        while names.contains(&unique) {
            unique = format!("{name}_{copy}");
            copy += 1;
        }
        names.push(unique);
    }
    names
}
