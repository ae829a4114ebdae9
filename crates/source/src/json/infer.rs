//! What columns records have: names in the order in which they first appear, and types.
//!
//! Whole and other numbers meet as doubles, scalars of different kinds as text.

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result, plan_err};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::sync::Arc;

/// The columns seen so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Guess {
    columns: Vec<(String, Shape)>,
}

/// What the values of a column look like.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Null,
    Boolean,
    Integer,
    Float,
    Text,
    List(Box<Shape>),
    Object(Guess),
    /// Scalars here, lists or objects there.
    Mixed,
}

impl Guess {
    pub(super) fn merge(&mut self, other: Guess) {
        for (name, shape) in other.columns {
            match self.columns.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => known.merge(shape),
                None => self.columns.push((name, shape)),
            }
        }
    }

    /// The columns as fields of a table: text as views.
    ///
    /// # Errors
    /// A plan error for a column whose values have no common type.
    pub(super) fn fields(&self) -> Result<Vec<FieldRef>> {
        self.fields_of(&DataType::Utf8View)
    }

    fn fields_of(&self, text: &DataType) -> Result<Vec<FieldRef>> {
        let field = |(name, shape): &(String, Shape)| {
            let Some(data_type) = shape.data_type(text)? else {
                return plan_err!("{name} is an object or a list in some records, not in others");
            };
            Ok(Arc::new(Field::new(name, data_type, true)))
        };
        self.columns.iter().map(field).collect()
    }
}

impl Shape {
    fn merge(&mut self, other: Shape) {
        use Shape::{Boolean, Float, Integer, List, Mixed, Null, Object, Text};
        *self = match (std::mem::replace(self, Null), other) {
            (Null, shape) | (shape, Null) => shape,
            (a, b) if a == b => a,
            (Integer | Float, Integer | Float) => Float,
            (Boolean | Integer | Float | Text, Boolean | Integer | Float | Text) => Text,
            (List(mut a), List(b)) => {
                a.merge(*b);
                List(a)
            }
            (Object(mut a), Object(b)) => {
                a.merge(b);
                Object(a)
            }
            _ => Mixed,
        };
    }

    /// `None` for mixed values. What was never seen is text.
    fn data_type(&self, text: &DataType) -> Result<Option<DataType>> {
        Ok(Some(match self {
            Shape::Null | Shape::Text => text.clone(),
            Shape::Boolean => DataType::Boolean,
            Shape::Integer => DataType::Int64,
            Shape::Float => DataType::Float64,
            Shape::List(items) => match items.data_type(&DataType::Utf8)? {
                Some(items) => DataType::new_list(items, true),
                None => return Ok(None),
            },
            Shape::Object(fields) => DataType::Struct(fields.fields_of(&DataType::Utf8)?.into()),
            Shape::Mixed => return Ok(None),
        }))
    }
}

impl<'de> Deserialize<'de> for Guess {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        match Shape::deserialize(deserializer)? {
            Shape::Object(columns) => Ok(columns),
            _ => Err(serde::de::Error::custom("a record is not an object")),
        }
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(OfValue)
    }
}

struct OfValue;

impl<'de> Visitor<'de> for OfValue {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> std::result::Result<Shape, E> {
        Ok(Shape::Null)
    }

    fn visit_bool<E>(self, _: bool) -> std::result::Result<Shape, E> {
        Ok(Shape::Boolean)
    }

    fn visit_i64<E>(self, _: i64) -> std::result::Result<Shape, E> {
        Ok(Shape::Integer)
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Shape, E> {
        Ok(if i64::try_from(value).is_ok() { Shape::Integer } else { Shape::Float })
    }

    fn visit_f64<E>(self, _: f64) -> std::result::Result<Shape, E> {
        Ok(Shape::Float)
    }

    fn visit_str<E>(self, _: &str) -> std::result::Result<Shape, E> {
        Ok(Shape::Text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> std::result::Result<Shape, A::Error> {
        let mut all = Shape::Null;
        while let Some(item) = items.next_element()? {
            all.merge(item);
        }
        Ok(Shape::List(Box::new(all)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Shape, A::Error> {
        let mut columns = Guess::default();
        while let Some((name, shape)) = map.next_entry::<String, Shape>()? {
            columns.merge(Guess { columns: vec![(name, shape)] });
        }
        Ok(Shape::Object(columns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(records: &[&str]) -> Result<Vec<String>> {
        let mut all = Guess::default();
        for record in records {
            all.merge(serde_json::from_str(record).unwrap());
        }
        let show = |f: &FieldRef| format!("{} {}", f.name(), f.data_type());
        Ok(all.fields()?.iter().map(show).collect())
    }

    #[test]
    fn columns_come_in_the_order_of_first_appearance() {
        let found = types(&[
            r#"{"z": 1, "a": null, "m": true}"#,
            r#"{"a": 1.5, "n": "x", "z": 9223372036854775808}"#,
        ]);
        assert_eq!(found.unwrap(), ["z Float64", "a Float64", "m Boolean", "n Utf8View"]);
    }

    #[test]
    fn scalars_meet_as_text_and_nested_values_by_part() {
        let found = types(&[
            r#"{"s": 1, "l": [1, null], "o": {"x": 1, "w": "a"}, "e": []}"#,
            r#"{"s": "one", "l": [2.5], "o": {"y": [true]}}"#,
        ]);
        let expected = [
            "s Utf8View",
            "l List(Float64)",
            "o Struct(\"x\": Int64, \"w\": Utf8, \"y\": List(Boolean))",
            "e List(Utf8)",
        ];
        assert_eq!(found.unwrap(), expected);
        assert!(types(&[r#"{"s": 1}"#, r#"{"s": [1]}"#]).is_err());
        assert!(serde_json::from_str::<Guess>("[1]").is_err());
    }
}
